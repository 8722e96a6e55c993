//! The cluster that is backed up, as far as the server needs it.

mod api;
mod memory;

pub use api::{ApiCluster, ConnectError};
pub use memory::MemoryCluster;

use async_trait::async_trait;
use serde_json::Value;

use crate::discovery::{Discovery, Resource};
use crate::select::Labels;

/// Why the cluster did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The API server refused, or was not reached.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// A test's cluster was told to fail.
    #[error("{0}")]
    Ordered(String),
}

/// Which release the API server is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerVersion {
    /// As in "v1.36.3".
    pub git_version: String,
    /// As in "1".
    pub major: String,
    /// As in "36".
    pub minor: String,
}

/// Reads objects, and keeps the Backups.
#[async_trait]
pub trait Cluster: Send + Sync {
    /// What the cluster serves now.
    async fn discover(&self) -> Result<Discovery, ClusterError>;

    /// Which release it is.
    async fn version(&self) -> Result<ServerVersion, ClusterError>;

    /// The objects of a resource in a namespace, or in all where it is empty, with `apiVersion` and `kind`.
    async fn list(
        &self,
        resource: &Resource,
        namespace: &str,
        labels: &Labels,
    ) -> Result<Vec<Value>, ClusterError>;

    /// An object, or `None` where there is none.
    async fn get(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ClusterError>;

    /// Puts a Backup as it is now into the cluster, where that has such objects.
    async fn record(&self, backup: &Value) -> Result<(), ClusterError>;

    /// Takes a Backup out of the cluster.
    async fn forget(&self, namespace: &str, backup: &str) -> Result<(), ClusterError>;
}
