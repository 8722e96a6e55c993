//! The plugin side of [Velero](https://velero.io)'s plugin protocol: write backup and restore plugins in Rust.
//!
//! A plugin is a binary that Velero starts from its plugin directory. It registers actions by name; Velero calls them for
//! the items of a backup, a restore or a deletion:
//!
//! ```no_run
//! use velero_plugin::backup::{BackupItemActionV2, Outcome};
//! use velero_plugin::{Backup, Item, ResourceSelector, Result, async_trait, name, plugin};
//!
//! struct Stamp;
//!
//! #[async_trait]
//! impl BackupItemActionV2 for Stamp {
//!     fn applies_to(&self) -> ResourceSelector {
//!         ResourceSelector::resources(["pods"])
//!     }
//!
//!     async fn execute(&self, item: Item, backup: Backup) -> Result<Outcome> {
//!         let stamp = ["metadata", "annotations", "example.io/in-backup"];
//!         Ok(Outcome::changed(item.edited(|pod| pod.set(&stamp, backup.name()))?))
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     plugin!().backup_item_action_v2(name!("example.io/stamp"), || Stamp).run()
//! }
//! ```
//!
//! # When Velero calls what
//!
//! | event | process | calls |
//! |---|---|---|
//! | the server starts | one per binary, ended at once | the list of what is registered; nothing of an action |
//! | a backup runs | one | [`applies_to`] of each action, then [`execute`] for each item, possibly several at once; at the end [`progress`] once for each operation |
//! | operations are awaited | **a new one every ten seconds** | [`progress`], and [`cancel`] of what is overdue |
//! | all operations have ended | a new one | [`execute`] again for their post-operation items, with the backup in phase Finalizing |
//! | a restore runs | one | `applies_to`, `execute`, [`are_additional_items_ready`] every second, `progress` |
//! | a backup is deleted | one | [`DeleteItemAction`](backup::DeleteItemAction)'s `execute`, one item after the other |
//!
//! So **nothing that a process remembers is there at the next stage**: state lives in the operation's id, in labels and
//! annotations, or in the storage. And start-up is the hot path: actions are made when they are first called.
//!
//! # What an error does
//!
//! | returned from | effect |
//! |---|---|
//! | `execute` of a backup or restore | that item is left out, and the whole ends `PartiallyFailed` |
//! | `execute` while finalizing | nothing visible; the archive keeps the item's first version |
//! | `progress` | **the operation failed, for good** |
//! | `are_additional_items_ready` | the item is restored all the same, and the restore counts an error |
//! | `execute` of a deletion | a line in the server's log; the backup is gone all the same |
//!
//! A panic fails the one call that it is in. Logging has rules of its own: see [`log`].
//!
//! # What can't be done wrongly
//!
//! A name that Velero would refuse does not compile ([`name!`]). An item that is not changed goes back as the bytes that
//! came, and an edit leaves every byte alone that it doesn't name ([`Item::edited`]). A [`Progress`] always says what state it is in,
//! and a time that is not known is not 1970. An id can't be empty, a selector can't be unreadable, an operation can't
//! start while finalizing, and a log line can't end the server.
//!
//! # Servers
//!
//! | | since Velero |
//! |---|---|
//! | [`BackupItemAction`](backup::BackupItemAction), [`RestoreItemAction`](restore::RestoreItemAction), [`DeleteItemAction`](backup::DeleteItemAction), [`ObjectStore`](storage::ObjectStore), [`VolumeSnapshotter`](storage::VolumeSnapshotter) | 1.5 |
//! | [`BackupItemActionV2`](backup::BackupItemActionV2), [`RestoreItemActionV2`](restore::RestoreItemActionV2) | 1.11 |
//! | [`ItemBlockAction`](backup::ItemBlockAction) | 1.15; not listed to a server whose arguments look older |
//! | [`VolumeSnapshotterV2`](storage::VolumeSnapshotterV2) | none; listed only on demand |
//!
//! The environment variable `VELERO_PLUGIN_KINDS` (in the server's container) restricts the kinds that are listed, as a
//! comma-separated list: a server does not start with a plugin that lists a kind unknown to it.
//!
//! # Features
//!
//! | feature | gives |
//! |---|---|
//! | none | what a plugin's binary needs, without any client of Kubernetes or a cloud |
//! | `client` | [`client`]: starts a plugin's process and calls it |
//! | `testing` | [`testing`]: calls a plugin from its own unit tests, without a process |
//!
//! # One thread
//!
//! All calls run on one thread, so an action that blocks it (a `std::thread::sleep`, a file on a mount that hangs, a client
//! that isn't async) holds up the other calls and the host's request to end, which has no time limit: hand such work
//! to `tokio::task::spawn_blocking`.
//!
//! # Standard streams
//!
//! From the handshake on, file descriptors 1 and 2 are `/dev/null`, for the plugin and for its children: text on stdout
//! would break the protocol, and Velero takes a plugin for running as long as anyone holds its stderr. So `println!` and
//! `eprintln!` say nothing; log with [`tracing`], and give a child a pipe for what it has to say.
//!
//! [`applies_to`]: backup::BackupItemActionV2::applies_to
//! [`execute`]: backup::BackupItemActionV2::execute
//! [`progress`]: backup::BackupItemActionV2::progress
//! [`cancel`]: backup::BackupItemActionV2::cancel
//! [`are_additional_items_ready`]: restore::RestoreItemActionV2::are_additional_items_ready

#[cfg(panic = "abort")]
compile_error!(
    "build with panic = \"unwind\": a panic in one call must not end the process under the others"
);

#[cfg(feature = "client")]
pub mod client;
pub mod config;
pub mod duration;
pub mod label;
pub mod log;
pub mod retry;
#[cfg(feature = "testing")]
pub mod testing;

mod error;
mod generated;
mod grpc;
mod kind;
mod model;
mod name;
mod panic;
mod plugin;
mod process;

pub use async_trait::async_trait;
pub use error::{AsyncNotSupported, Context, Error, InvalidOperationId, Result};
pub use kind::{Kind, UnknownKind};
pub use model::{
    Backup, BackupPhase, Document, EditError, IdentifierError, Item, ItemError, LabelSelector, OperationId,
    OperationIdError, Progress, ResourceIdentifier, ResourceSelector, Restore, SelectorError,
};
pub use name::{NameError, PluginName};
pub use plugin::{Plugin, RegistrationError};
pub use process::HostArgs;

/// Actions on the items of a backup.
pub mod backup {
    pub use crate::kind::backup_item_action::{BackupItemAction, Changes};
    pub use crate::kind::backup_item_action_v2::{BackupItemActionV2, Outcome};
    pub use crate::kind::delete_item_action::DeleteItemAction;
    pub use crate::kind::item_block_action::ItemBlockAction;
}

/// Actions on the items of a restore.
pub mod restore {
    pub use crate::kind::restore_item_action::{Changes, RestoreInput, RestoreItemAction};
    pub use crate::kind::restore_item_action_v2::{Outcome, RestoreItemActionV2};
}

/// Storage of backups and snapshots of volumes.
pub mod storage {
    pub use crate::kind::object_store::{ObjectStore, ObjectStream};
    pub use crate::kind::volume_snapshotter::{VolumeInfo, VolumeSnapshotter};
    pub use crate::kind::volume_snapshotter_v2::VolumeSnapshotterV2;
}
