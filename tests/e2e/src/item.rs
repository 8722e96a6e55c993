//! Kubernetes objects for the specimen: their annotations order what it does with them.

use bytes::Bytes;
use serde_json::{Map, Value, json};

/// The annotation that names a behaviour.
pub const DO: &str = "specimen.example/do";
/// The annotation that says more about it.
pub const WITH: &str = "specimen.example/with";

/// A pod under construction.
#[derive(Debug, Clone)]
pub struct Pod {
    object: Value,
}

/// A pod in namespace `shop` that orders nothing: the specimen leaves it as it is.
pub fn pod(name: &str) -> Pod {
    let metadata = json!({"namespace": "shop", "name": name, "annotations": Map::new()});
    Pod { object: json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}) }
}

impl Pod {
    /// Orders a behaviour; the specimen's module `order` lists them.
    #[must_use]
    pub fn doing(self, order: &str) -> Self {
        self.annotated(DO, order)
    }

    /// Says more about the order.
    #[must_use]
    pub fn with(self, text: impl Into<String>) -> Self {
        self.annotated(WITH, text)
    }

    /// Adds an annotation.
    #[must_use]
    pub fn annotated(mut self, key: &str, value: impl Into<String>) -> Self {
        self.object["metadata"]["annotations"][key] = Value::from(value.into());
        self
    }

    /// Adds the field `spec.data` with so many bytes.
    #[must_use]
    pub fn weighing(mut self, bytes: usize) -> Self {
        self.object["spec"] = json!({"data": "x".repeat(bytes)});
        self
    }

    /// The object's text.
    pub fn bytes(&self) -> Bytes {
        Bytes::from(self.object.to_string())
    }
}

impl From<Pod> for Bytes {
    fn from(pod: Pod) -> Self {
        pod.bytes()
    }
}

/// The text of a backup in this phase.
pub fn backup(phase: &str) -> Bytes {
    let backup = json!({"metadata": {"namespace": "velero", "name": "nightly", "uid": "b-1"}, "status": {"phase": phase}});
    Bytes::from(backup.to_string())
}

/// The text of a restore.
pub fn restore() -> Bytes {
    let restore = json!({"metadata": {"namespace": "velero", "name": "again", "uid": "r-1"}, "spec": {"backupName": "nightly"}});
    Bytes::from(restore.to_string())
}
