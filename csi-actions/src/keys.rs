//! Labels, annotations and finalizers: our own, Velero's, and those of the snapshot controllers.

/// Label of Velero: the backup that an object belongs to, as a label value ([`velero_plugin::label::valid_value`]).
pub const BACKUP_NAME: &str = "velero.io/backup-name";
/// Label of Velero: the UID of that backup. Restored objects carry it too.
pub const BACKUP_UID: &str = "velero.io/backup-uid";
/// Label of Velero: the UID of the claim that a snapshot was taken of.
pub const PVC_UID: &str = "velero.io/pvc-uid";
/// Label of Velero: the UID of the restore that made an object.
pub const RESTORE_UID: &str = "velero.io/restore-uid";
/// Label of Velero on every object that a restore made.
pub const RESTORE_NAME: &str = "velero.io/restore-name";
/// Label and annotation of Velero on an archived claim: the name of its snapshot.
pub const VOLUME_SNAPSHOT_NAME: &str = "velero.io/volume-snapshot-name";

/// Annotation of Velero on a snapshot: its handle in the storage.
pub const SNAPSHOT_HANDLE: &str = "velero.io/csi-volumesnapshot-handle";
/// Annotation of Velero on a snapshot: the handle of the group it was cut with.
pub const GROUP_HANDLE: &str = "velero.io/csi-volumegroupsnapshot-handle";
/// Annotation of Velero on a snapshot: the driver that made it.
pub const DRIVER_NAME: &str = "velero.io/csi-driver-name";
/// Annotation of Velero on a snapshot: the least size of a volume made from it, as a quantity.
pub const RESTORE_SIZE: &str = "velero.io/csi-volumesnapshot-restore-size";
/// The same annotation as velero-plugin-for-csi up to 0.7 wrote it.
pub const RESTORE_SIZE_BEFORE: &str = "velero.io/vsi-volumesnapshot-restore-size";
/// Annotation of Velero on a snapshot: the deletion policy of its content.
pub const DELETION_POLICY: &str = "velero.io/csi-vsc-deletion-policy";
/// Annotation of Velero on an archived claim: a data mover has its data.
pub const DATA_UPLOAD_NAME: &str = "velero.io/data-upload-name";
/// Annotation of Velero on a returned item: its additional items are archived whatever the filters of the backup say.
pub const MUST_INCLUDE: &str = "backup.velero.io/must-include-additional-items";

/// Annotation on a claim and label on a class: the class to take for snapshots.
pub const SNAPSHOT_CLASS: &str = "velero.io/csi-volumesnapshot-class";
/// Start of an annotation on a backup; the driver in lower case follows: the class to take for that driver.
pub const SNAPSHOT_CLASS_OF_DRIVER: &str = "velero.io/csi-volumesnapshot-class_";
/// Annotation of Kubernetes on the class to take where none is named.
pub const DEFAULT_CLASS: &str = "snapshot.storage.kubernetes.io/is-default-class";

/// Annotation of the snapshot controllers on a content: the name of the Secret that deletes it.
pub const DELETION_SECRET_NAME: &str = "snapshot.storage.kubernetes.io/deletion-secret-name";
/// Annotation of the snapshot controllers on a content: the namespace of that Secret.
pub const DELETION_SECRET_NAMESPACE: &str = "snapshot.storage.kubernetes.io/deletion-secret-namespace";
/// Annotation of the snapshot controllers on a content: the driver is cutting the snapshot at this moment.
pub const BEING_CREATED: &str = "snapshot.storage.kubernetes.io/volumesnapshot-being-created";
/// Annotation of the snapshot controllers on a content: the snapshot it is bound to is being deleted, so it may go.
pub const BEING_DELETED: &str = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted";
/// Label on a content whose driver runs per node: the node that looks after it.
pub const MANAGED_BY: &str = "snapshot.storage.kubernetes.io/managed-by";
/// Finalizer on a content: the driver's sidecar takes it away once the snapshot is handled.
pub const CONTENT_FINALIZER: &str = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection";

/// Finalizer on a snapshot: the snapshot controller takes it away once no volume is being made from the snapshot.
pub const SNAPSHOT_SOURCE_FINALIZER: &str =
    "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection";
/// Finalizer on a snapshot: the snapshot controller takes it away once the content is gone, or stays for good.
pub const SNAPSHOT_BOUND_FINALIZER: &str = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection";

/// Finalizer on the content of a group: the driver's sidecar takes it away once the group is handled.
pub const GROUP_CONTENT_FINALIZER: &str =
    "groupsnapshot.storage.kubernetes.io/volumegroupsnapshotcontent-bound-protection";
/// Annotation of the snapshot controllers on the content of a group: the name of the Secret that deletes it.
pub const GROUP_SECRET_NAME: &str = "groupsnapshot.storage.kubernetes.io/deletion-secret-name";
/// Annotation of the snapshot controllers on the content of a group: the namespace of that Secret.
pub const GROUP_SECRET_NAMESPACE: &str = "groupsnapshot.storage.kubernetes.io/deletion-secret-namespace";
/// Annotation of the snapshot controllers on the content of a group: its group is being deleted, so it may go.
pub const GROUP_BEING_DELETED: &str = "groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-being-deleted";

/// Annotation of the snapshot controllers on the content of a group: the driver is cutting the group at this moment.
pub const GROUP_BEING_CREATED: &str = "groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-being-created";
/// Annotation on a claim: the class to take for its group.
pub const GROUP_CLASS_OF_CLAIM: &str = "velero.io/csi-volume-group-snapshot-class";
/// Label on a class for groups: the class to take. Velero spells it otherwise than the annotation.
pub const GROUP_CLASS: &str = "velero.io/csi-volumegroupsnapshot-class";
/// Start of an annotation on a backup; the driver follows: the class to take for groups of that driver.
pub const GROUP_CLASS_OF_DRIVER: &str = "velero.io/csi-volumegroupsnapshot-class_";
/// Annotation of Kubernetes on the class to take for groups where none is named.
pub const DEFAULT_GROUP_CLASS: &str = "groupsnapshot.storage.kubernetes.io/is-default-class";

/// Label of ours on a group: tells it from the other groups of its backup, whatever the label of the claims is.
pub const GROUP: &str = "csi-actions.velero-rs.io/group";
/// Annotation of ours on a snapshot that was cut with a group, and on its content: the handles of all members of the
/// group, as a JSON list. A driver deletes a group only as a whole, and asks for all of them.
pub const GROUP_MEMBERS: &str = "csi-actions.velero-rs.io/group-members";
/// Annotation of ours on a snapshot and its content: the capacity of the volume in bytes, the total of the progress
/// until the driver tells the real size.
pub const CAPACITY: &str = "csi-actions.velero-rs.io/capacity-bytes";
/// Label of ours on an archived content, in place of [`BACKUP_NAME`], where only this plugin is to delete its snapshot.
pub const ARCHIVED_BY: &str = "csi-actions.velero-rs.io/backup-name";
/// Label of ours on a content: its snapshot was given up, so finalizing must not keep it. No annotation, since the
/// controllers replace all of those by what they saw last, as a sidecar does with each attempt to cut the snapshot.
pub const CANCELLED: &str = "csi-actions.velero-rs.io/cancelled";
/// Annotation of ours on a content that is being deleted: a change to it makes the sidecar look again.
pub const NUDGE: &str = "csi-actions.velero-rs.io/nudge";
/// Driver of ours on a content that is to be deleted, which its own driver must not see before that is ordered. Nobody has it.
pub const NO_DRIVER: &str = "deletion.csi-actions.velero-rs.io";
/// Annotation of ours on such a content: the driver that it gets then.
pub const HIDDEN_FROM: &str = "csi-actions.velero-rs.io/driver";
/// Annotation of ours on an archived content: the name of the claim that the snapshot was taken of.
pub const CLAIM: &str = "csi-actions.velero-rs.io/claim";
/// Annotation of ours on a restored content: the handle of the volume that the snapshot was taken of.
pub const VOLUME_HANDLE: &str = "csi-actions.velero-rs.io/volume-handle";
/// Annotation of ours on an archived volume that stays when its claim goes: its real policy.
pub const RECLAIM_POLICY: &str = "csi-actions.velero-rs.io/reclaim-policy";
/// Annotation of ours on an archived claim: the name of the snapshot that the next five are of. They may be those of an
/// earlier backup, on a claim that Velero's own actions restored and backed up again.
pub const CLAIM_SNAPSHOT: &str = "csi-actions.velero-rs.io/snapshot-name";
/// Annotation of ours on an archived claim: the driver of its snapshot. With the next two it can be restored from the claim
/// alone.
pub const CLAIM_DRIVER: &str = "csi-actions.velero-rs.io/snapshot-driver";
/// Annotation of ours on an archived claim: the handle of its snapshot in the storage.
pub const CLAIM_HANDLE: &str = "csi-actions.velero-rs.io/snapshot-handle";
/// Annotation of ours on an archived claim: the class of its snapshot.
pub const CLAIM_CLASS: &str = "csi-actions.velero-rs.io/snapshot-class";
/// Annotation of ours on an archived claim: the least size of a volume made from its snapshot, as a quantity.
pub const CLAIM_SIZE: &str = "csi-actions.velero-rs.io/restore-size";
/// Annotation of ours on an archived claim: the policy that the volume made from its snapshot gets.
pub const CLAIM_RECLAIM_POLICY: &str = "csi-actions.velero-rs.io/volume-reclaim-policy";
