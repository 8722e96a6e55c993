//! Volumes at backup: one that stays when its claim goes is archived so that the claim is restored from its snapshot.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use velero_plugin::backup::{BackupItemActionV2, Outcome};
use velero_plugin::{Backup, Item, ResourceSelector, Result};

use super::retained::{POLICY, RETAIN, is_rewritten};
use crate::cluster::Cluster;
use crate::cluster::resource::CLAIMS;
use crate::environment::Environment;
use crate::keys;
use crate::object::{text, uid};
use crate::policy::{Decision, PolicyError};

/// For how long a request is tried again when the API server is busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// The action on volumes.
#[derive(Debug)]
pub struct VolumeBackup {
    environment: Arc<Environment>,
    cluster: Cluster,
}

impl VolumeBackup {
    /// The action in `environment`.
    pub fn new(environment: Arc<Environment>) -> Self {
        let cluster = environment.cluster.patient(PATIENCE);
        Self { environment, cluster }
    }

    /// Whether the volume is archived with another policy. Velero archives it before its claim is looked at, so this comes to
    /// the decision that the action on claims will come to.
    async fn is_rewritten(&self, volume: &Value, backup: &Backup) -> Result<bool, PolicyError> {
        let reference = |field| text(volume, &["spec", "claimRef", field]);
        let (Some(namespace), Some(name)) = (reference("namespace"), reference("name")) else {
            return Ok(false);
        };
        let claim = self.cluster.find(CLAIMS, namespace, name).await?;
        let Some(claim) = claim.filter(|claim| uid(claim) == reference("uid")) else { return Ok(false) };
        if !is_rewritten(&self.environment, volume, &claim, backup).await? {
            return Ok(false);
        }
        let decision = self.environment.decisions.of(&claim, backup).await?;
        Ok(matches!(decision, Decision::Take(taken) if uid(&taken) == uid(volume)))
    }
}

#[async_trait]
impl BackupItemActionV2 for VolumeBackup {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::resources(["persistentvolumes"])
    }

    async fn execute(&self, item: Item, backup: Backup) -> Result<Outcome> {
        if item.text_at(&POLICY) != Some(RETAIN) || self.environment.is_alongside() {
            return Ok(Outcome::unchanged());
        }
        match self.is_rewritten(item.object(), &backup).await {
            Ok(true) => {}
            Ok(false) => return Ok(Outcome::unchanged()),
            Err(error) => {
                // The claim fails by the same trouble, and says so; without it the volume had better stay as it is.
                tracing::debug!("PersistentVolume {}: archived as it is: {error}", item.name());
                return Ok(Outcome::unchanged());
            }
        }
        tracing::info!(
            "PersistentVolume {}: archived with policy Delete, so that a restore takes the snapshot; the new volume gets {RETAIN}",
            item.name()
        );
        Ok(Outcome::changed(item.edited(|document| {
            document.set(&["metadata", "annotations", keys::RECLAIM_POLICY], RETAIN)?;
            document.set(&POLICY, "Delete")
        })?))
    }
}
