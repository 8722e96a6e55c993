//! What controllers left on an object while it was archived, and must not come back with it.

use serde_json::Value;
use velero_plugin::Document;

use crate::keys;

/// Start of the finalizers of the snapshot controllers. They add their own again where one is due; an archived one would
/// have nobody to take it away.
const SNAPSHOT_FINALIZERS: &str = "snapshot.storage.kubernetes.io/";
/// The provisioner's finalizer on a claim that was being cloned.
const CLONE_FINALIZER: &str = "provisioner.storage.kubernetes.io/cloning-protection";

/// Annotations that are about the moment of the backup.
const ANNOTATIONS: [&str; 5] =
    [keys::BEING_CREATED, keys::BEING_DELETED, keys::MUST_INCLUDE, keys::NUDGE, keys::CLAIM];

/// Takes them away from `document`, which holds `object`.
pub(super) fn remove(document: &mut Document, object: &Value) -> Result<(), velero_plugin::EditError> {
    for key in ANNOTATIONS {
        document.remove(&["metadata", "annotations", key]);
    }
    // What is restored belongs to the restore, whose labels Velero adds.
    for key in [keys::ARCHIVED_BY, keys::CANCELLED] {
        document.remove(&["metadata", "labels", key]);
    }
    let Some(finalizers) = object.pointer("/metadata/finalizers").and_then(Value::as_array) else {
        return Ok(());
    };
    let kept: Vec<Value> = finalizers.iter().filter(|finalizer| !is_trace(finalizer)).cloned().collect();
    if kept.is_empty() {
        document.remove(&["metadata", "finalizers"]);
        return Ok(());
    }
    if kept.len() == finalizers.len() { Ok(()) } else { document.set(&["metadata", "finalizers"], kept) }
}

fn is_trace(finalizer: &Value) -> bool {
    finalizer.as_str().is_some_and(|name| name.starts_with(SNAPSHOT_FINALIZERS) || name == CLONE_FINALIZER)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "a value written at the call reads best")]

    use super::*;
    use serde_json::json;
    use velero_plugin::Item;

    fn cleaned(metadata: Value) -> Value {
        let item = Item::try_from(json!({"kind": "X", "metadata": metadata})).unwrap();
        let cleaned = item.edited(|document| remove(document, item.object())).unwrap();
        cleaned.object()["metadata"].clone()
    }

    #[test]
    fn i57_finalizers_of_the_snapshot_controllers_do_not_come_back_and_others_do() {
        let (ours, theirs) =
            ("snapshot.storage.kubernetes.io/pvc-as-source-protection", "kubernetes.io/pvc-protection");
        assert_eq!(cleaned(json!({"finalizers": [ours, theirs]})), json!({"finalizers": [theirs]}));
        assert_eq!(cleaned(json!({"finalizers": [theirs]})), json!({"finalizers": [theirs]}));
        assert_eq!(
            cleaned(
                json!({"finalizers": ["snapshot.storage.kubernetes.io/volumesnapshot-in-group-protection"]})
            ),
            json!({})
        );
        for odd in [json!({}), json!({"finalizers": null}), json!({"finalizers": "x"})] {
            assert_eq!(cleaned(odd.clone()), odd);
        }
    }

    #[test]
    fn marks_of_the_backup_do_not_come_back_and_the_users_annotations_do() {
        let annotations = json!({
            "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted": "yes",
            "backup.velero.io/must-include-additional-items": "true",
            "snapshot.storage.kubernetes.io/deletion-secret-name": "s",
            "mine": "yes",
        });
        assert_eq!(
            cleaned(json!({"annotations": annotations})),
            json!({"annotations": {"snapshot.storage.kubernetes.io/deletion-secret-name": "s", "mine": "yes"}})
        );
    }
}
