//! The deletion of a backup, beside what is in its archive: what killed processes left in the cluster.
//!
//! Velero calls delete actions for what is archived alone. A snapshot whose item failed, since the process was killed, is not; so
//! this action is for objects that every archive has, and looks at the first of them for all.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tokio::time::Instant;
use velero_plugin::backup::DeleteItemAction;
use velero_plugin::{Backup, Context as _, Item, ResourceSelector, Result};

use super::{Patience, left_groups, leftovers};
use crate::cluster::{Cluster, PATIENCE};
use crate::environment::Environment;

/// The action on what a backup left in the cluster. A process, and so the action, lives as long as one deletion.
#[derive(Debug)]
pub struct SnapshotDelete {
    cluster: Cluster,
    is_done: AtomicBool,
}

impl SnapshotDelete {
    /// The action in `environment`.
    pub fn new(environment: &Environment) -> Self {
        Self { cluster: environment.cluster.patient(PATIENCE), is_done: AtomicBool::new(false) }
    }
}

#[async_trait]
impl DeleteItemAction for SnapshotDelete {
    fn applies_to(&self) -> ResourceSelector {
        // A claim whose snapshot failed is not archived; its volume and its namespace are, unless the backup leaves them out.
        ResourceSelector::resources(["namespaces", "persistentvolumes", "persistentvolumeclaims"])
    }

    async fn execute(&self, _: Item, backup: Backup) -> Result<()> {
        if self.is_done.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let end = Instant::now() + Patience::default().first;
        let of_backup = leftovers::of_backup(&self.cluster, &backup, end).await;
        let of_deletions = leftovers::of_deletions(&self.cluster, end).await;
        let of_groups = left_groups::take_away(&self.cluster, &backup, end).await;
        of_backup
            .and(of_deletions)
            .and(of_groups)
            .context("look for snapshots that the backup left in the cluster")
    }
}
