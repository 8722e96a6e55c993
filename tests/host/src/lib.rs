//! Plays the Velero server towards a plugin, in any language.
//!
//! The command `velero-host` lists plugins as a server does at its start, and calls one method of one:
//!
//! ```text
//! velero-host list ./my-plugin
//! velero-host call ./my-plugin execute --kind BackupItemActionV2 --name example.io/stamp --item pod.json
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`session`], [`log`], [`registry`], [`client`] | processes as a server starts, reads, lists and calls them |
//! | [`select`], [`discovery`], [`operation`], [`phase`], [`archive`], [`model`], [`go`] | the server's rules, without I/O |
//! | [`store`], [`cluster`] | where backups go and where objects come from |
//! | [`likeness`] | the files of two backups, compared |
//! | [`server`] | the stages of a backup, each with processes of its own |
//!
//! What stays with a real server: hooks in pods, resource policies, snapshots by a `VolumeSnapshotter` during a backup,
//! file-system backup, data movers, schedules and the waiting line of several backups; restores are to come.

pub mod archive;
pub mod client;
pub mod cluster;
pub mod discovery;
pub mod event;
pub mod go;
pub mod likeness;
pub mod log;
pub mod minor;
pub mod model;
pub mod operation;
pub mod phase;
pub mod registry;
pub mod select;
pub mod server;
pub mod session;
pub mod store;
