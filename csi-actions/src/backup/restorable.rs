//! What an archived snapshot says of its content: from that any server can restore it, with this plugin or without.

use serde_json::{Map, Value};
use velero_plugin::{Document, EditError};

use crate::object::{Content, name};
use crate::{keys, quantity};

/// Writes it into a snapshot on its way into the archive.
///
/// # Errors
///
/// When the snapshot's annotations or its status are no map.
pub(super) fn write(document: &mut Document, content: &Value) -> Result<(), EditError> {
    for (key, value) in annotations(content) {
        document.set(&["metadata", "annotations", &key], value)?;
    }
    // The snapshot controller may not have written it yet.
    document.set(&["status", "boundVolumeSnapshotContentName"], name(content))
}

/// The annotations that Velero's restore action reads, and its users.
pub(super) fn annotations(content: &Value) -> Map<String, Value> {
    let view = Content(content);
    let size = view.restore_size().map(quantity::format);
    let handle = view.reported_handle();
    let all = [
        (keys::DELETION_POLICY, Some(view.deletion_policy()).filter(|policy| !policy.is_empty())),
        (keys::SNAPSHOT_HANDLE, handle),
        (keys::DRIVER_NAME, handle.map(|_| view.driver())),
        (keys::RESTORE_SIZE, size.as_deref()),
        (keys::GROUP_HANDLE, view.group_handle()),
    ];
    all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.into()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use velero_plugin::Item;

    fn content() -> Value {
        json!({"metadata": {"name": "c"}, "spec": {"driver": "d.csi", "deletionPolicy": "Delete"},
            "status": {"snapshotHandle": "h", "restoreSize": 1_073_741_824, "volumeSnapshotGroupHandle": null}})
    }

    #[test]
    fn the_annotations_are_those_that_a_stock_server_restores_from() {
        let expected = json!({
            "velero.io/csi-vsc-deletion-policy": "Delete",
            "velero.io/csi-volumesnapshot-handle": "h",
            "velero.io/csi-driver-name": "d.csi",
            "velero.io/csi-volumesnapshot-restore-size": "1Gi",
        });
        assert_eq!(Value::Object(annotations(&content())), expected);
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        assert!(annotations(&json!({"spec": {"driver": "d.csi"}})).is_empty());
    }

    #[test]
    fn a_snapshot_that_does_not_name_its_content_yet_does_so_in_the_archive() {
        let snapshot = json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": {"name": "s"}});
        let item = Item::try_from(snapshot).unwrap();
        let archived = item.edited(|document| write(document, &content())).unwrap();
        assert_eq!(archived.object()["status"]["boundVolumeSnapshotContentName"], "c");
        assert_eq!(archived.object()["metadata"]["annotations"]["velero.io/csi-volumesnapshot-handle"], "h");
    }
}
