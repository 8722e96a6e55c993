//! Creates the snapshot of a claim, or finds the one that an earlier attempt of this backup created.

use serde_json::{Value, json};
use velero_plugin::{Backup, label};

use crate::cluster::resource::{Resource, SNAPSHOTS};
use crate::cluster::{ApiError, Cluster, Reason};
use crate::object::{self, is_deleting, name, namespace, uid};
use crate::{keys, labels, names, ownership};

/// How many names are tried. The first is taken by another object only if someone made it so, or while the snapshot
/// of a failed attempt is still being deleted.
const ATTEMPTS: u32 = 5;

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub(super) enum CreateError {
    /// The API server refused; a quota or an admission rule says so in its words.
    #[error("take a snapshot: {0}")]
    Api(#[from] ApiError),
    /// Every name is taken.
    #[error("take a snapshot: {0} and its successors exist and are not of this backup; delete them")]
    NamesTaken(String),
}

/// What the snapshot of a claim is made from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order<'a> {
    pub backup: &'a Backup,
    pub claim: &'a Value,
    /// The class to take.
    pub class: &'a str,
    /// Of the volume, in bytes.
    pub capacity: Option<u64>,
    /// Whether it gets the finalizers of the snapshot controller right away. That saves the controller two of the eight
    /// requests that it makes for a snapshot, of five in a second; but where no controller runs, nothing takes them off again.
    pub is_held: bool,
}

/// The snapshot that was ordered. Called twice for one claim it returns the same snapshot.
pub(super) async fn snapshot(cluster: &Cluster, order: Order<'_>) -> Result<Value, CreateError> {
    let claim_uid = uid(order.claim).unwrap_or_default();
    let object = |attempt| {
        let name = names::snapshot(order.backup.uid(), name(order.claim), claim_uid, attempt);
        snapshot_of(order, &name)
    };
    create_or_adopt(cluster, SNAPSHOTS, object, |existing| is_same(existing, claim_uid, order.backup)).await
}

/// Creates the object of the first attempt whose name is free, or takes one of them that exists and `is_same`.
pub(super) async fn create_or_adopt(
    cluster: &Cluster,
    resource: Resource,
    object: impl Fn(u32) -> Value,
    is_same: impl Fn(&Value) -> bool,
) -> Result<Value, CreateError> {
    for attempt in 0..ATTEMPTS {
        let object = object(attempt);
        match cluster.create(resource, namespace(&object), &object).await {
            Ok(created) => return Ok(created),
            Err(error) if error.reason == Reason::AlreadyExists => {
                let existing = cluster.find(resource, namespace(&object), name(&object)).await?;
                if let Some(existing) = existing.filter(|existing| is_same(existing)) {
                    return Ok(existing);
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    let first = object(0);
    Err(CreateError::NamesTaken(resource.object(namespace(&first), name(&first))))
}

/// Whether `existing` is the snapshot of the claim in this backup, and is to stay.
fn is_same(existing: &Value, claim_uid: &str, backup: &Backup) -> bool {
    ownership::is_of_backup(existing, backup)
        && object::label(existing, keys::PVC_UID) == Some(&label::valid_value(claim_uid))
        && !is_deleting(existing)
}

fn snapshot_of(order: Order<'_>, name: &str) -> Value {
    let Order { backup, claim, class, capacity, is_held } = order;
    let mut snapshot = json!({
        "apiVersion": "snapshot.storage.k8s.io/v1",
        "kind": "VolumeSnapshot",
        "metadata": {"namespace": namespace(claim), "name": name, "labels": labels::of_snapshot(backup, claim)},
        "spec": {
            "source": {"persistentVolumeClaimName": object::name(claim)},
            "volumeSnapshotClassName": class,
        },
    });
    if let Some(capacity) = capacity {
        snapshot["metadata"]["annotations"] = json!({keys::CAPACITY: capacity.to_string()});
    }
    if is_held {
        snapshot["metadata"]["finalizers"] =
            json!([keys::SNAPSHOT_SOURCE_FINALIZER, keys::SNAPSHOT_BOUND_FINALIZER]);
    }
    snapshot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_living_snapshot_of_this_claim_and_backup_is_adopted() {
        let backup = Backup::from(json!({"metadata": {"name": "b", "uid": "u"}}));
        let claim = json!({"metadata": {"namespace": "a", "name": "data", "uid": "c"}});
        let order = Order { backup: &backup, claim: &claim, class: "k", capacity: Some(5), is_held: false };
        let ours = snapshot_of(order, "s");
        assert_eq!(ours["metadata"]["annotations"]["csi-actions.velero-rs.io/capacity-bytes"], "5");
        assert!(is_same(&ours, "c", &backup));
        assert!(!is_same(&ours, "another claim", &backup));
        assert!(!is_same(&ours, "c", &Backup::from(json!({"metadata": {"name": "b", "uid": "u2"}}))));
        let mut going = ours.clone();
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert!(!is_same(&going, "c", &backup));
    }
}
