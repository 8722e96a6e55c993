//! The classes of the cluster, listed once: a process lives as long as one restore.

use serde_json::Value;
use tokio::sync::OnceCell;

use super::class;
use crate::cluster::resource::CLASSES;
use crate::cluster::{Cluster, Query};

/// The classes.
#[derive(Debug)]
pub(super) struct Classes {
    cluster: Cluster,
    listed: OnceCell<Vec<Value>>,
}

impl Classes {
    /// Those of `cluster`.
    pub(super) fn of(cluster: Cluster) -> Self {
        Self { cluster, listed: OnceCell::new() }
    }

    /// The class for a content of `driver` that was `archived` with a class of that name. Most drivers need none, so
    /// trouble here ends no restore.
    pub(super) async fn choose(&self, driver: &str, archived: Option<&str>) -> Option<&Value> {
        let list = || async {
            self.cluster.list(CLASSES, &Query::default()).await.unwrap_or_else(|error| {
                tracing::warn!("contents are restored without a VolumeSnapshotClass: {error}");
                Vec::new()
            })
        };
        class::choose(self.listed.get_or_init(list).await, driver, archived)
    }
}
