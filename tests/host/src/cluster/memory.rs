//! A cluster in memory, for tests of the engines alone.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::Value;

use super::{Cluster, ClusterError, ServerVersion};
use crate::discovery::{Discovery, Resource};
use crate::select::Labels;

/// Holds the objects that it was given.
#[derive(Debug, Default)]
pub struct MemoryCluster {
    discovery: Discovery,
    objects: Mutex<BTreeMap<Key, Value>>,
}

/// Resource, namespace, name.
type Key = (String, String, String);

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

impl MemoryCluster {
    /// An empty one that serves these resources.
    pub fn new(discovery: Discovery) -> Self {
        Self { discovery, objects: Mutex::default() }
    }

    /// Adds or replaces an object; one of a kind that is not served is not kept.
    pub fn put(&self, object: Value) {
        let (version, kind) = (text(&object, "/apiVersion"), text(&object, "/kind"));
        let serves = |resource: &&Resource| resource.kind == kind && resource.api_version() == version;
        if let Some(resource) = self.discovery.resources().iter().find(serves) {
            let (namespace, name) = (text(&object, "/metadata/namespace"), text(&object, "/metadata/name"));
            self.objects().insert((resource.group_resource(), namespace, name), object);
        }
    }

    fn objects(&self) -> std::sync::MutexGuard<'_, BTreeMap<Key, Value>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Cluster for MemoryCluster {
    async fn discover(&self) -> Result<Discovery, ClusterError> {
        Ok(self.discovery.clone())
    }

    async fn version(&self) -> Result<ServerVersion, ClusterError> {
        let [git_version, major, minor] = ["v1.36.3", "1", "36"].map(str::to_owned);
        Ok(ServerVersion { git_version, major, minor })
    }

    async fn list(
        &self,
        resource: &Resource,
        namespace: &str,
        labels: &Labels,
    ) -> Result<Vec<Value>, ClusterError> {
        let wanted = resource.group_resource();
        let objects = self.objects();
        let fits = |((resource, within, _), object): &(&Key, &Value)| {
            *resource == wanted && (namespace.is_empty() || within == namespace) && labels.matches(object)
        };
        Ok(objects.iter().filter(fits).map(|(_, object)| object.clone()).collect())
    }

    async fn get(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ClusterError> {
        let key = (resource.group_resource(), namespace.to_owned(), name.to_owned());
        Ok(self.objects().get(&key).cloned())
    }

    async fn record(&self, backup: &Value) -> Result<(), ClusterError> {
        let (namespace, name) = (text(backup, "/metadata/namespace"), text(backup, "/metadata/name"));
        self.objects().insert(("backups.velero.io".to_owned(), namespace, name), backup.clone());
        Ok(())
    }

    async fn forget(&self, namespace: &str, backup: &str) -> Result<(), ClusterError> {
        self.objects().remove(&("backups.velero.io".to_owned(), namespace.to_owned(), backup.to_owned()));
        Ok(())
    }
}
