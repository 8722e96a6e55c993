//! Plays the Velero server towards a plugin, in any language.

pub mod archive;
pub mod client;
pub mod cluster;
pub mod discovery;
pub mod event;
pub mod go;
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
