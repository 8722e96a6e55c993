//! Snapshot classes at backup: the Secrets that a class names are archived with it.

use std::sync::Arc;

use async_trait::async_trait;
use velero_plugin::backup::{BackupItemActionV2, Outcome};
use velero_plugin::{Backup, Context as _, Item, ResourceSelector, Result};

use super::with_secrets;
use crate::environment::Environment;
use crate::secrets;

/// The action on classes. It asks the cluster for nothing.
#[derive(Debug)]
pub struct ClassBackup {
    environment: Arc<Environment>,
}

impl ClassBackup {
    /// The action in `environment`.
    pub fn new(environment: Arc<Environment>) -> Self {
        Self { environment }
    }
}

#[async_trait]
impl BackupItemActionV2 for ClassBackup {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::resources(["volumesnapshotclasses.snapshot.storage.k8s.io"])
    }

    async fn execute(&self, item: Item, backup: Backup) -> Result<Outcome> {
        if self.environment.is_alongside() || backup.phase().is_finalizing() {
            return Ok(Outcome::unchanged());
        }
        with_secrets(&item, secrets::of_class(item.object()))
            .context(format_args!("VolumeSnapshotClass {}", item.name()))
    }
}
