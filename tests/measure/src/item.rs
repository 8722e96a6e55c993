//! The objects that actions are called with, as Velero sends them: about 2 kB each.

use serde_json::{Value, json};

use crate::subject::Item;

/// What a real object carries beside what matters, up to its usual size.
const TEXT: &str =
    "a value of the length that annotations of operators and field managers have in real clusters";

impl Item {
    /// The plural name with its group, as selectors have it.
    pub(crate) fn resource(self) -> &'static str {
        match self {
            Self::Pod => "pods",
            Self::Content => "volumesnapshotcontents.snapshot.storage.k8s.io",
        }
    }

    /// The object. The content belongs to no backup, so that an action on it has nothing to do.
    pub(crate) fn object(self) -> Value {
        match self {
            Self::Pod => json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": metadata("web-0"),
                "spec": {
                    "nodeName": "node-1", "serviceAccountName": "default", "restartPolicy": "Always",
                    "containers": [{
                        "name": "web", "image": "registry.example.io/web:1.2.3",
                        "env": (0..5).map(|n| json!({"name": format!("VARIABLE_{n}"), "value": TEXT})).collect::<Vec<_>>(),
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    }],
                    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
                },
                "status": {"phase": "Running", "podIP": "10.0.0.7", "qosClass": "BestEffort"},
            }),
            Self::Content => json!({
                "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
                "metadata": metadata("snapcontent-1"),
                "spec": {
                    "driver": "csi.example.io", "deletionPolicy": "Retain",
                    "source": {"volumeHandle": "volume-1"},
                    "volumeSnapshotClassName": "snapshots",
                    "volumeSnapshotRef": {"namespace": "app", "name": "snapshot-1", "uid": "6a2f"},
                },
                "status": {
                    "creationTime": 1_767_225_600_000_000_000_u64, "readyToUse": true,
                    "restoreSize": 1_073_741_824, "snapshotHandle": "snapshot-handle-1",
                },
            }),
        }
    }
}

fn metadata(name: &str) -> Value {
    let annotations = (0..10).map(|n| (format!("example.io/annotation-{n}"), Value::from(TEXT)));
    json!({
        "namespace": if name.starts_with("snapcontent") { Value::Null } else { "app".into() },
        "name": name, "uid": "0b9c8d3e-1f5a-4f52-9f0e-3a2b1c4d5e6f", "resourceVersion": "123456",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "web-production"},
        "annotations": annotations.collect::<serde_json::Map<_, _>>(),
    })
}

/// The backup that all calls are made for.
pub(crate) fn backup(phase: &str) -> Value {
    json!({
        "apiVersion": "velero.io/v1", "kind": "Backup",
        "metadata": {"namespace": "velero", "name": "nightly", "uid": "3d0f6c0a-87a1-4b52-8f7f-5d2f3f1f9b11"},
        "spec": {"csiSnapshotTimeout": "10m0s", "includedNamespaces": ["*"]},
        "status": {"phase": phase},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_the_size_that_the_table_states() {
        for item in [Item::Pod, Item::Content] {
            let bytes = item.object().to_string().len();
            assert!((1_500..2_500).contains(&bytes), "{item:?}: {bytes}");
        }
    }
}
