//! The kinds of plugin that Velero knows: for each a trait to implement and the gRPC service that calls it.

pub(crate) mod backup_item_action;
pub(crate) mod backup_item_action_v2;
pub(crate) mod delete_item_action;
pub(crate) mod item_block_action;
pub(crate) mod object_store;
pub(crate) mod restore_item_action;
pub(crate) mod restore_item_action_v2;
pub(crate) mod volume_snapshotter;
pub(crate) mod volume_snapshotter_v2;

mod handlers;
mod service;

use bytes::Bytes;

use crate::error::Result;
use crate::generated::generated as wire;
use crate::model::{Backup, Item, OperationId, ResourceIdentifier, Restore};
pub(crate) use handlers::Handlers;
pub(crate) use service::{Answer, KindService, LARGEST_MESSAGE, not_registered};

/// A kind of plugin, as `ListPlugins` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "Velero's own words")]
pub enum Kind {
    BackupItemAction,
    /// Since Velero 1.11.
    BackupItemActionV2,
    VolumeSnapshotter,
    ObjectStore,
    RestoreItemAction,
    /// Since Velero 1.11.
    RestoreItemActionV2,
    DeleteItemAction,
    /// Since Velero 1.15; an older server does not start with a plugin that lists it.
    ItemBlockAction,
    /// Designed, but in no release of Velero: a server that is told of it does not start. Served always, listed
    /// only on demand.
    VolumeSnapshotterV2,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::BackupItemAction,
        Self::BackupItemActionV2,
        Self::VolumeSnapshotter,
        Self::ObjectStore,
        Self::RestoreItemAction,
        Self::RestoreItemActionV2,
        Self::DeleteItemAction,
        Self::ItemBlockAction,
        Self::VolumeSnapshotterV2,
    ];

    /// The kind's name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BackupItemAction => "BackupItemAction",
            Self::BackupItemActionV2 => "BackupItemActionV2",
            Self::VolumeSnapshotter => "VolumeSnapshotter",
            Self::ObjectStore => "ObjectStore",
            Self::RestoreItemAction => "RestoreItemAction",
            Self::RestoreItemActionV2 => "RestoreItemActionV2",
            Self::DeleteItemAction => "DeleteItemAction",
            Self::ItemBlockAction => "ItemBlockAction",
            Self::VolumeSnapshotterV2 => "VolumeSnapshotterV2",
        }
    }

    /// The gRPC service of the kind.
    pub(crate) const fn service(self) -> &'static str {
        match self {
            Self::BackupItemAction => "generated.BackupItemAction",
            Self::BackupItemActionV2 => "v2.BackupItemAction",
            Self::VolumeSnapshotter => "generated.VolumeSnapshotter",
            Self::ObjectStore => "generated.ObjectStore",
            Self::RestoreItemAction => "generated.RestoreItemAction",
            Self::RestoreItemActionV2 => "v2.RestoreItemAction",
            Self::DeleteItemAction => "generated.DeleteItemAction",
            Self::ItemBlockAction => "v1.ItemBlockAction",
            Self::VolumeSnapshotterV2 => "v2.VolumeSnapshotter",
        }
    }

    /// The other version of this kind, in which Velero would find a plugin of the same name in place of this one's.
    pub const fn other_version(self) -> Option<Self> {
        match self {
            Self::BackupItemAction => Some(Self::BackupItemActionV2),
            Self::BackupItemActionV2 => Some(Self::BackupItemAction),
            Self::RestoreItemAction => Some(Self::RestoreItemActionV2),
            Self::RestoreItemActionV2 => Some(Self::RestoreItemAction),
            _ => None,
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> std::result::Result<Self, UnknownKind> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| UnknownKind(text.to_owned()))
    }
}

/// A text that names no kind of plugin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no kind of plugin: Velero knows BackupItemAction, BackupItemActionV2 and so on")]
pub struct UnknownKind(String);

// === from and to the wire, alike in every kind ===

fn item(text: Bytes) -> Result<Item> {
    Item::parse(text).map_err(|error| crate::Error::from(error).context("read the item of the request"))
}

fn backup(text: &Bytes) -> Result<Backup> {
    Backup::parse(text).map_err(|error| crate::Error::from(error).context("read the backup of the request"))
}

fn restore(text: &Bytes) -> Result<Restore> {
    Restore::parse(text).map_err(|error| crate::Error::from(error).context("read the restore of the request"))
}

fn operation_id(id: String) -> Result<OperationId> {
    Ok(OperationId::new(id).map_err(|_| crate::InvalidOperationId(String::new()))?)
}

fn identifiers(items: Vec<ResourceIdentifier>) -> Vec<wire::ResourceIdentifier> {
    items.into_iter().map(ResourceIdentifier::into_wire).collect()
}
