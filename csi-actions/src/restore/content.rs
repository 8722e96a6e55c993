//! What a content must be to be restored: bound to nothing yet, made for one snapshot, and never the reason that the
//! backup's data is deleted.

use serde_json::{Map, Value, json};
use velero_plugin::{Document, EditError};

use super::stored::StoredSnapshot;
use super::traces;
use crate::cluster::resource::{CONTENTS, SNAPSHOT_GROUP};
use crate::object::{name, text};
use crate::{keys, secrets};

/// The restored snapshot that a content is for. The content gets its name too.
#[derive(Debug, Clone, Copy)]
pub(super) struct ForSnapshot<'a> {
    /// The namespace that it is restored into.
    pub namespace: &'a str,
    /// Its name, which follows from the restore.
    pub name: &'a str,
}

/// Turns the archived content in `document`, which is `object`, into one for `snapshot` that points at `handle`.
pub(super) fn rewrite(
    document: &mut Document,
    object: &Value,
    snapshot: ForSnapshot<'_>,
    handle: &str,
    class: Option<&Value>,
) -> Result<(), EditError> {
    traces::remove(document, object)?;
    document.set(&["metadata", "name"], snapshot.name)?;
    document.set(&["spec", "volumeSnapshotRef", "namespace"], snapshot.namespace)?;
    document.set(&["spec", "volumeSnapshotRef", "name"], snapshot.name)?;
    // With the old UID it would count as bound to another snapshot for ever.
    document.remove(&["spec", "volumeSnapshotRef", "uid"]);
    document.remove(&["spec", "volumeSnapshotRef", "resourceVersion"]);
    // Deleting the restored namespace must not delete the data of the backup.
    document.set(&["spec", "deletionPolicy"], "Retain")?;
    document.set(&["spec", "source"], json!({"snapshotHandle": handle}))?;
    if let Some(volume) = text(object, &["spec", "source", "volumeHandle"]) {
        document.set(&["metadata", "annotations", keys::VOLUME_HANDLE], volume)?;
    }
    match class {
        Some(class) => document.set(&["spec", "volumeSnapshotClassName"], name(class))?,
        None => _ = document.remove(&["spec", "volumeSnapshotClassName"]),
    }
    for (key, value) in secret_annotations(class) {
        document.set(&["metadata", "annotations", &key], value)?;
    }
    Ok(())
}

/// The content for `snapshot` where the archive has none, or the restore leaves it out.
pub(super) fn from_stored(
    stored: &StoredSnapshot,
    snapshot: ForSnapshot<'_>,
    class: Option<&Value>,
    labels: &Map<String, Value>,
) -> Value {
    let ForSnapshot { namespace, name: snapshot } = snapshot;
    let api_version = format!("{SNAPSHOT_GROUP}/{}", CONTENTS.version);
    let mut content = json!({
        "apiVersion": api_version,
        "kind": "VolumeSnapshotContent",
        "metadata": {"name": snapshot, "labels": labels, "annotations": secret_annotations(class)},
        "spec": {
            "driver": stored.driver,
            "deletionPolicy": "Retain",
            "source": {"snapshotHandle": stored.handle},
            "volumeSnapshotRef": {
                "apiVersion": api_version, "kind": "VolumeSnapshot", "namespace": namespace, "name": snapshot,
            },
        },
    });
    if let Some(class) = class {
        content["spec"]["volumeSnapshotClassName"] = name(class).into();
    }
    content
}

/// The Secret for the deletion, by the keys that the sidecar reads. The controllers set them on what they make; on a content
/// that was made by hand nobody does.
fn secret_annotations(class: Option<&Value>) -> Map<String, Value> {
    let pairs = class.and_then(secrets::deleting).map(|secret| {
        [(keys::DELETION_SECRET_NAME, secret.name), (keys::DELETION_SECRET_NAMESPACE, secret.namespace)]
    });
    pairs.into_iter().flatten().map(|(key, value)| (key.to_owned(), value.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use velero_plugin::Item;

    const SNAPSHOT: ForSnapshot<'static> = ForSnapshot { namespace: "a-copy", name: "hash" };

    fn archived() -> Value {
        json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
            "metadata": {"name": "snapcontent-1", "labels": {"velero.io/backup-name": "b1"},
                "annotations": {"snapshot.storage.kubernetes.io/deletion-secret-name": "old",
                    "snapshot.storage.kubernetes.io/deletion-secret-namespace": "sec"},
                "finalizers": ["snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"]},
            "spec": {"driver": "d.csi", "deletionPolicy": "Delete", "source": {"volumeHandle": "vol-1"},
                "sourceVolumeMode": "Block", "volumeSnapshotClassName": "gone", "future": {"field": 1},
                "volumeSnapshotRef": {"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
                    "namespace": "a", "name": "velero-data-abcde", "uid": "x", "resourceVersion": "7"}}})
    }

    fn rewritten(class: Option<&Value>) -> Value {
        let item = Item::try_from(archived()).unwrap();
        let edited =
            item.edited(|document| rewrite(document, item.object(), SNAPSHOT, "snap-1", class)).unwrap();
        edited.object().clone()
    }

    #[test]
    fn c22_c23_i13_i47_i56_a_restored_content_is_unbound_for_the_mapped_namespace_and_retained() {
        let content = rewritten(None);
        let reference = json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
            "namespace": "a-copy", "name": "hash"});
        assert_eq!(content["spec"]["volumeSnapshotRef"], reference);
        assert_eq!(content["metadata"]["name"], "hash");
        assert_eq!(content["spec"]["deletionPolicy"], "Retain");
        assert_eq!(content["spec"]["source"], json!({"snapshotHandle": "snap-1"}));
        assert_eq!(content["metadata"]["annotations"]["csi-actions.velero-rs.io/volume-handle"], "vol-1");
        assert_eq!(content["metadata"].get("finalizers"), None);
        assert_eq!(content["metadata"]["labels"], json!({"velero.io/backup-name": "b1"}));
    }

    #[test]
    fn i49_the_volume_mode_and_unknown_fields_stay() {
        let content = rewritten(None);
        assert_eq!(content["spec"]["sourceVolumeMode"], "Block");
        assert_eq!(content["spec"]["future"], json!({"field": 1}));
    }

    #[test]
    fn i48_the_class_of_this_cluster_brings_its_secret_and_without_one_the_archived_secret_stays() {
        let class = json!({"metadata": {"name": "zz"}, "parameters": {
            "csi.storage.k8s.io/snapshotter-secret-name": "s", "csi.storage.k8s.io/snapshotter-secret-namespace": "n"}});
        let content = rewritten(Some(&class));
        assert_eq!(content["spec"]["volumeSnapshotClassName"], "zz");
        let secret = |content: &Value| {
            let part = |part: &str| {
                content["metadata"]["annotations"]
                    [format!("snapshot.storage.kubernetes.io/deletion-secret-{part}")]
                .as_str()
                .map(str::to_owned)
            };
            (part("name"), part("namespace"))
        };
        assert_eq!(secret(&content), (Some("s".to_owned()), Some("n".to_owned())));
        let content = rewritten(None);
        assert_eq!(content["spec"].get("volumeSnapshotClassName"), None);
        assert_eq!(secret(&content), (Some("old".to_owned()), Some("sec".to_owned())));
        let stored = StoredSnapshot { driver: "d.csi".into(), handle: "h".into(), class: None };
        let made = from_stored(&stored, SNAPSHOT, Some(&class), &Map::new());
        assert_eq!(secret(&made), (Some("s".to_owned()), Some("n".to_owned())));
        assert_eq!(made["spec"]["volumeSnapshotClassName"], "zz");
    }

    #[test]
    fn i53_a_content_that_is_made_from_the_annotations_is_as_one_that_was_archived() {
        let stored = StoredSnapshot { driver: "d.csi".into(), handle: "snap-1".into(), class: None };
        let made = from_stored(&stored, SNAPSHOT, None, &Map::new());
        let restored = rewritten(None);
        for field in ["driver", "deletionPolicy", "source", "volumeSnapshotRef"] {
            assert_eq!(made["spec"][field], restored["spec"][field], "{field}");
        }
        assert_eq!(made["metadata"]["name"], restored["metadata"]["name"]);
    }
}
