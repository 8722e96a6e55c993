//! What becomes of an archived claim: where its data comes from, and what of its old volume must not come back.

use serde_json::{Value, json};
use velero_plugin::{Document, EditError, Restore, label};

use super::{traces, wants_empty_volumes};
use crate::cluster::resource::SNAPSHOT_GROUP;
use crate::keys;
use crate::object::{annotation, label as label_of, text};

/// Annotations that tie a claim to its volume, its node and its snapshot. On servers before 1.16 nothing else removes
/// them, and a claim that counts as bound but names no volume is Lost.
const TIES: [&str; 12] = [
    "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/bound-by-controller",
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/selected-node",
    keys::VOLUME_SNAPSHOT_NAME,
    keys::CLAIM_SNAPSHOT,
    keys::CLAIM_DRIVER,
    keys::CLAIM_HANDLE,
    keys::CLAIM_CLASS,
    keys::CLAIM_SIZE,
    keys::CLAIM_RECLAIM_POLICY,
];

/// What to do with a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan<'a> {
    /// Restore it as it is; the text says why.
    Leave(&'static str),
    /// Restore it without its data.
    Empty,
    /// Restore it from the archived snapshot of this name.
    FromSnapshot(&'a str),
}

/// Decides by the claim in the archive.
pub(super) fn plan<'a>(archived: &'a Value, restore: &Restore) -> Plan<'a> {
    if annotation(archived, keys::DATA_UPLOAD_NAME).is_some() {
        return Plan::Leave("a data mover has its data");
    }
    let Some(snapshot) = annotation(archived, keys::VOLUME_SNAPSHOT_NAME) else {
        return Plan::Leave("the backup took no snapshot of it");
    };
    // Each backup that takes a snapshot writes both. A claim that was restored before, and that this backup took no
    // snapshot of, carries those of the backup it came from.
    let backup = label_of(archived, keys::BACKUP_NAME);
    if backup.is_some_and(|backup| {
        backup != restore.backup_name() && backup != label::valid_value(restore.backup_name())
    }) {
        return Plan::Leave("the backup took no snapshot of it; it names that of an earlier backup");
    }
    if wants_empty_volumes(restore) { Plan::Empty } else { Plan::FromSnapshot(snapshot) }
}

/// Takes the old volume away from the claim in `document`, which is `object`.
pub(super) fn release(document: &mut Document, object: &Value) -> Result<(), EditError> {
    traces::remove(document, object)?;
    for key in TIES {
        document.remove(&["metadata", "annotations", key]);
    }
    document.remove(&["metadata", "labels", keys::VOLUME_SNAPSHOT_NAME]);
    // A selector asks for a volume that exists, so nothing would be provisioned.
    for field in ["volumeName", "selector", "dataSource", "dataSourceRef"] {
        document.remove(&["spec", field]);
    }
    Ok(())
}

/// Whether `volume` waits for the claim of this name and no other: named by its claimRef, and bound to none yet.
pub(super) fn is_reserved(volume: &Value, namespace: &str, claim: &str) -> bool {
    let reference = |field| text(volume, &["spec", "claimRef", field]);
    reference("namespace") == Some(namespace)
        && reference("name") == Some(claim)
        && reference("uid").is_none()
}

/// Has the claim made from the restored `snapshot`, with a request of `size` where its own is too small. The API server
/// writes the other form of the source itself, and refuses two that differ.
pub(super) fn fill(document: &mut Document, snapshot: &str, size: Option<String>) -> Result<(), EditError> {
    let source = json!({"apiGroup": SNAPSHOT_GROUP, "kind": "VolumeSnapshot", "name": snapshot});
    document.set(&["spec", "dataSource"], source)?;
    match size {
        Some(size) => document.set(&["spec", "resources", "requests", "storage"], size),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "a value written at the call reads best")]

    use super::*;
    use velero_plugin::Item;

    fn restore(spec: Value) -> Restore {
        let mut restore = json!({"metadata": {"name": "r", "uid": "ru"}, "spec": {"backupName": "b1"}});
        for (key, value) in spec.as_object().unwrap() {
            restore["spec"][key] = value.clone();
        }
        Restore::from(restore)
    }

    fn claim(annotations: Value, labels: Value) -> Value {
        json!({"kind": "PersistentVolumeClaim", "metadata": {"annotations": annotations, "labels": labels}})
    }

    #[test]
    fn a_claim_is_restored_from_the_snapshot_that_its_own_backup_took() {
        let named = json!({"velero.io/volume-snapshot-name": "s"});
        let of = |backup: &str| json!({"velero.io/backup-name": backup});
        let take = Plan::FromSnapshot("s");
        let table = [
            (claim(named.clone(), of("b1")), Some(take)),
            (claim(named.clone(), json!({})), Some(take)),
            (claim(named.clone(), of("earlier")), None),
            (claim(json!({}), of("b1")), None),
            (claim(json!(null), json!(null)), None),
            (claim(json!({"velero.io/volume-snapshot-name": ""}), of("b1")), None),
            (
                claim(
                    json!({"velero.io/volume-snapshot-name": "s", "velero.io/data-upload-name": "velero/d"}),
                    of("b1"),
                ),
                None,
            ),
        ];
        for (claim, plan_of_it) in table {
            let plan = plan(&claim, &restore(json!({})));
            assert_eq!(Some(plan).filter(|plan| !matches!(plan, Plan::Leave(_))), plan_of_it, "{claim}");
        }
    }

    #[test]
    fn a_long_backup_name_is_known_by_its_label_form() {
        let backup = "nightly-all-namespaces-production-cluster-eu-central-1-20260101010203";
        let label = "nightly-all-namespaces-production-cluster-eu-central-1-20f4862a";
        let claim =
            claim(json!({"velero.io/volume-snapshot-name": "s"}), json!({"velero.io/backup-name": label}));
        assert_eq!(plan(&claim, &restore(json!({"backupName": backup}))), Plan::FromSnapshot("s"));
    }

    #[test]
    fn c25_restore_pvs_false_means_an_empty_volume_and_null_does_not() {
        let claim = claim(json!({"velero.io/volume-snapshot-name": "s"}), json!({}));
        assert_eq!(plan(&claim, &restore(json!({"restorePVs": false}))), Plan::Empty);
        for other in [json!({"restorePVs": null}), json!({"restorePVs": true}), json!({})] {
            assert_eq!(plan(&claim, &restore(other)), Plan::FromSnapshot("s"));
        }
    }

    #[test]
    fn i50_a_volume_is_reserved_by_a_claim_ref_without_uid() {
        let volume = |reference: Value| json!({"spec": {"claimRef": reference}});
        assert!(is_reserved(&volume(json!({"namespace": "a", "name": "data"})), "a", "data"));
        for other in [
            json!({"namespace": "a", "name": "data", "uid": "of an earlier claim"}),
            json!({"namespace": "b", "name": "data"}),
            json!({"namespace": "a", "name": "other"}),
            Value::Null,
        ] {
            assert!(!is_reserved(&volume(other.clone()), "a", "data"), "{other}");
        }
    }

    fn restored(claim: Value, size: Option<&str>) -> Value {
        let item = Item::try_from(claim).unwrap();
        let edited = item.edited(|document| {
            release(document, item.object())?;
            fill(document, "hash", size.map(str::to_owned))
        });
        edited.unwrap().object().clone()
    }

    #[test]
    fn c26_i43_i44_every_earlier_source_is_replaced_by_the_snapshot() {
        let claim_source = json!({"kind": "PersistentVolumeClaim", "name": "src"});
        let importer = json!({"apiGroup": "cdi.kubevirt.io", "kind": "VolumeImportSource", "name": "disk"});
        for (source, reference) in
            [(claim_source.clone(), claim_source), (Value::Null, importer), (Value::Null, Value::Null)]
        {
            let claim = restored(
                json!({"kind": "PersistentVolumeClaim", "metadata": {},
                    "spec": {"dataSource": source, "dataSourceRef": reference, "volumeName": "pv1",
                        "selector": {"matchLabels": {"a": "b"}}}}),
                None,
            );
            let expected = json!({"dataSource": {
                "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "hash"}});
            assert_eq!(claim["spec"], expected);
        }
    }

    #[test]
    fn c28_the_size_is_raised_where_told_and_else_keeps_its_words() {
        let claim =
            |requests: Value| json!({"kind": "PersistentVolumeClaim", "spec": {"resources": requests}});
        let asked = json!({"requests": {"storage": "1Gi"}, "limits": {"storage": "9Gi"}});
        assert_eq!(
            restored(claim(asked.clone()), Some("2Gi"))["spec"]["resources"],
            json!({"requests": {"storage": "2Gi"}, "limits": {"storage": "9Gi"}})
        );
        assert_eq!(restored(claim(asked.clone()), None)["spec"]["resources"], asked);
        assert_eq!(
            restored(claim(Value::Null), Some("2Gi"))["spec"]["resources"],
            json!({"requests": {"storage": "2Gi"}})
        );
    }

    #[test]
    fn c32_i46_nothing_ties_the_claim_to_its_old_volume_node_or_snapshot() {
        let mut annotations: serde_json::Map<String, Value> =
            TIES.iter().map(|key| ((*key).to_owned(), "x".into())).collect();
        annotations.insert("backup.velero.io/must-include-additional-items".into(), "true".into());
        annotations.insert("mine".into(), "yes".into());
        let claim = restored(
            json!({"kind": "PersistentVolumeClaim", "metadata": {"annotations": annotations,
                "labels": {"velero.io/volume-snapshot-name": "s", "tier": "db"},
                "finalizers": ["kubernetes.io/pvc-protection", "snapshot.storage.kubernetes.io/pvc-as-source-protection"]}}),
            None,
        );
        let expected = json!({"annotations": {"mine": "yes"}, "labels": {"tier": "db"},
            "finalizers": ["kubernetes.io/pvc-protection"]});
        assert_eq!(claim["metadata"], expected);
    }
}
