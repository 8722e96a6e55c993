//! Names that the snapshot controllers leave on objects.

pub(super) const CONTENT_FINALIZER: &str =
    "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection";
pub(super) const BOUND_FINALIZER: &str = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection";
pub(super) const SOURCE_FINALIZER: &str =
    "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection";
pub(super) const CLAIM_FINALIZER: &str = "snapshot.storage.kubernetes.io/pvc-as-source-protection";
pub(super) const BEING_CREATED: &str = "snapshot.storage.kubernetes.io/volumesnapshot-being-created";
pub(super) const BEING_DELETED: &str = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted";
pub(super) const SECRET_NAME: &str = "snapshot.storage.kubernetes.io/deletion-secret-name";
pub(super) const SECRET_NAMESPACE: &str = "snapshot.storage.kubernetes.io/deletion-secret-namespace";
pub(super) const DEFAULT_CLASS: &str = "snapshot.storage.kubernetes.io/is-default-class";
/// On the content of a group's member: it was taken with the group.
pub(super) const GROUP_HANDLE: &str = "groupsnapshot.storage.k8s.io/volumeGroupSnapshotHandle";
pub(super) const MEMBER_FINALIZER: &str = "snapshot.storage.kubernetes.io/volumesnapshot-in-group-protection";
pub(super) const GROUP_CONTENT_FINALIZER: &str =
    "groupsnapshot.storage.kubernetes.io/volumegroupsnapshotcontent-bound-protection";
pub(super) const GROUP_BOUND_FINALIZER: &str =
    "groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-bound-protection";
pub(super) const GROUP_BEING_CREATED: &str =
    "groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-being-created";
pub(super) const GROUP_BEING_DELETED: &str =
    "groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-being-deleted";

pub(super) const SNAPSHOTS: &str = "volumesnapshots.snapshot.storage.k8s.io";
pub(super) const CONTENTS: &str = "volumesnapshotcontents.snapshot.storage.k8s.io";
pub(super) const CLASSES: &str = "volumesnapshotclasses.snapshot.storage.k8s.io";
pub(super) const GROUPS: &str = "volumegroupsnapshots.groupsnapshot.storage.k8s.io";
pub(super) const GROUP_CONTENTS: &str = "volumegroupsnapshotcontents.groupsnapshot.storage.k8s.io";
pub(super) const GROUP_CLASSES: &str = "volumegroupsnapshotclasses.groupsnapshot.storage.k8s.io";
pub(super) const CLAIMS: &str = "persistentvolumeclaims";
pub(super) const VOLUMES: &str = "persistentvolumes";
pub(super) const STORAGE_CLASSES: &str = "storageclasses.storage.k8s.io";
