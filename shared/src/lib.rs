//! The plugin side of Velero's plugin protocol.

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
