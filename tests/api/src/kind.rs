//! The kinds of objects that tests look at.
#![allow(missing_docs, reason = "the kinds' own names")]

use kube::api::{ApiResource, GroupVersionKind};

/// A resource type: its group, version, kind and plural.
#[derive(Clone, Copy, Debug)]
pub struct Kind(&'static str, &'static str, &'static str, &'static str);

impl Kind {
    pub(crate) fn resource(self) -> ApiResource {
        let Self(group, version, kind, plural) = self;
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
    }
}

pub const NAMESPACE: Kind = Kind("", "v1", "Namespace", "namespaces");
pub const CONFIG_MAP: Kind = Kind("", "v1", "ConfigMap", "configmaps");
pub const CLAIM: Kind = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims");
pub const POD: Kind = Kind("", "v1", "Pod", "pods");
pub const VOLUME: Kind = Kind("", "v1", "PersistentVolume", "persistentvolumes");
pub const SERVICE_ACCOUNT: Kind = Kind("", "v1", "ServiceAccount", "serviceaccounts");
pub const DEPLOYMENT: Kind = Kind("apps", "v1", "Deployment", "deployments");
pub const STORAGE_CLASS: Kind = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses");
pub const CSI_DRIVER: Kind = Kind("storage.k8s.io", "v1", "CSIDriver", "csidrivers");
pub const SNAPSHOT: Kind = Kind("snapshot.storage.k8s.io", "v1", "VolumeSnapshot", "volumesnapshots");
pub const SNAPSHOT_CONTENT: Kind =
    Kind("snapshot.storage.k8s.io", "v1", "VolumeSnapshotContent", "volumesnapshotcontents");
pub const SNAPSHOT_CLASS: Kind =
    Kind("snapshot.storage.k8s.io", "v1", "VolumeSnapshotClass", "volumesnapshotclasses");
pub const GROUP: Kind =
    Kind("groupsnapshot.storage.k8s.io", "v1", "VolumeGroupSnapshot", "volumegroupsnapshots");
pub const GROUP_CONTENT: Kind =
    Kind("groupsnapshot.storage.k8s.io", "v1", "VolumeGroupSnapshotContent", "volumegroupsnapshotcontents");
pub const GROUP_CLASS: Kind =
    Kind("groupsnapshot.storage.k8s.io", "v1", "VolumeGroupSnapshotClass", "volumegroupsnapshotclasses");
pub const BACKUP: Kind = Kind("velero.io", "v1", "Backup", "backups");
pub const RESTORE: Kind = Kind("velero.io", "v1", "Restore", "restores");
pub const DELETE_REQUEST: Kind = Kind("velero.io", "v1", "DeleteBackupRequest", "deletebackuprequests");
pub const STORAGE_LOCATION: Kind = Kind("velero.io", "v1", "BackupStorageLocation", "backupstoragelocations");
pub const SERVER_STATUS: Kind = Kind("velero.io", "v1", "ServerStatusRequest", "serverstatusrequests");
pub const SECRET: Kind = Kind("", "v1", "Secret", "secrets");
pub const NODE: Kind = Kind("", "v1", "Node", "nodes");
pub const CSI_NODE: Kind = Kind("storage.k8s.io", "v1", "CSINode", "csinodes");
pub const DOWNLOAD_REQUEST: Kind = Kind("velero.io", "v1", "DownloadRequest", "downloadrequests");
pub const EVENT: Kind = Kind("", "v1", "Event", "events");
