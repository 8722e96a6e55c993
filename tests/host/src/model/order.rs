//! The order in which the server writes the fields of a Backup: that of its Go types, not of the alphabet.

use serde::ser::{Serialize, SerializeMap as _, SerializeSeq as _, Serializer};
use serde_json::Value;

/// The fields of an object, by the name of the field that holds it; "" for the whole.
const ORDERS: [(&str, &[&str]); 10] = [
    ("", &["kind", "apiVersion", "metadata", "spec", "status"]),
    (
        "metadata",
        &[
            "name",
            "generateName",
            "namespace",
            "selfLink",
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "labels",
            "annotations",
            "ownerReferences",
            "finalizers",
            "managedFields",
        ],
    ),
    (
        "managedFields",
        &["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"],
    ),
    ("ownerReferences", &["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"]),
    (
        "spec",
        &[
            "metadata",
            "includedNamespaces",
            "excludedNamespaces",
            "includedResources",
            "excludedResources",
            "includedClusterScopedResources",
            "excludedClusterScopedResources",
            "includedNamespaceScopedResources",
            "excludedNamespaceScopedResources",
            "labelSelector",
            "orLabelSelectors",
            "snapshotVolumes",
            "ttl",
            "volumeGroupSnapshotLabelKey",
            "includeClusterResources",
            "hooks",
            "storageLocation",
            "volumeSnapshotLocations",
            "defaultVolumesToRestic",
            "defaultVolumesToFsBackup",
            "orderedResources",
            "csiSnapshotTimeout",
            "itemOperationTimeout",
            "resourcePolicy",
            "snapshotMoveData",
            "datamover",
            "uploaderConfig",
        ],
    ),
    (
        "status",
        &[
            "version",
            "formatVersion",
            "expiration",
            "phase",
            "queuePosition",
            "validationErrors",
            "startTimestamp",
            "completionTimestamp",
            "volumeSnapshotsAttempted",
            "volumeSnapshotsCompleted",
            "failureReason",
            "warnings",
            "errors",
            "progress",
            "csiVolumeSnapshotsAttempted",
            "csiVolumeSnapshotsCompleted",
            "backupItemOperationsAttempted",
            "backupItemOperationsCompleted",
            "backupItemOperationsFailed",
            "hookStatus",
        ],
    ),
    ("progress", &["totalItems", "itemsBackedUp"]),
    ("hookStatus", &["hooksAttempted", "hooksFailed"]),
    ("labelSelector", &["matchLabels", "matchExpressions"]),
    ("matchExpressions", &["key", "operator", "values"]),
];

/// A value whose objects are written in the order of Velero's types.
pub(crate) struct Ordered<'a> {
    value: &'a Value,
    field: &'a str,
}

impl<'a> Ordered<'a> {
    /// A whole Backup.
    pub(crate) fn backup(value: &'a Value) -> Self {
        Self { value, field: "" }
    }
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Array(values) => {
                let mut list = serializer.serialize_seq(Some(values.len()))?;
                for value in values {
                    list.serialize_element(&Self { value, field: self.field })?;
                }
                list.end()
            }
            Value::Object(fields) => {
                let order =
                    ORDERS.iter().find(|(field, _)| *field == self.field).map_or(&[][..], |(_, order)| order);
                let place = |name: &str| order.iter().position(|known| *known == name).unwrap_or(order.len());
                let mut sorted: Vec<_> = fields.iter().collect();
                sorted.sort_by(|(one, _), (other, _)| place(one).cmp(&place(other)).then(one.cmp(other)));
                let mut map = serializer.serialize_map(Some(sorted.len()))?;
                for (field, value) in sorted {
                    map.serialize_entry(field, &Self { value, field })?;
                }
                map.end()
            }
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_in_the_order_of_the_types_and_unknown_ones_last() {
        let backup = json!({
            "apiVersion": "velero.io/v1",
            "kind": "Backup",
            "metadata": {"labels": {"b": "1", "a": "2"}, "name": "n", "zzz": 1},
            "spec": {"hooks": {}, "metadata": {}, "ttl": "1h0m0s"},
            "status": {"progress": {"itemsBackedUp": 1, "totalItems": 2}, "phase": "New"},
        });
        let text = String::from_utf8(crate::go::json::compact(&Ordered::backup(&backup))).unwrap();
        assert_eq!(
            text,
            r#"{"kind":"Backup","apiVersion":"velero.io/v1","metadata":{"name":"n","labels":{"a":"2","b":"1"},"zzz":1},"spec":{"metadata":{},"ttl":"1h0m0s","hooks":{}},"status":{"phase":"New","progress":{"totalItems":2,"itemsBackedUp":1}}}"#
        );
    }
}
