//! Volumes at restore: one whose claim comes back from a snapshot stays out, and the new one is kept as it was.
//!
//! Velero restores a volume of policy Retain as it was, reserved for its claim. The claim would take it at once, and with it
//! the data of today in place of those of the backup. The volume that the claim gets instead has the policy of its class,
//! so an operation waits for it and gives it that of the old one: it must not go with its claim either.
//!
//! Our backup archives such a volume as one of policy Delete, where it can. Then no action sees it here, and the claim brings the
//! operation.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use velero_plugin::restore::{Outcome, RestoreInput, RestoreItemActionV2};
use velero_plugin::{
    Context as _, LabelSelector, OperationId, Progress, ResourceSelector, Restore, Result, label,
};

use super::keep::RETAIN;
use super::{PATIENCE, keep};
use crate::cluster::resource::CONTENTS;
use crate::cluster::{Cluster, Query};
use crate::environment::Environment;
use crate::keys;
use crate::object::{Content, annotation, text};

const POLICY: &[&str] = &["spec", "persistentVolumeReclaimPolicy"];

/// The action on volumes.
#[derive(Debug)]
pub struct VolumeRestore {
    environment: Arc<Environment>,
    cluster: Cluster,
}

impl VolumeRestore {
    /// The action in `environment`.
    pub fn new(environment: Arc<Environment>) -> Self {
        let cluster = environment.cluster.patient(PATIENCE);
        Self { environment, cluster }
    }
}

#[async_trait]
impl RestoreItemActionV2 for VolumeRestore {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::resources(["persistentvolumes"])
    }

    async fn execute(&self, input: RestoreInput) -> Result<Outcome> {
        let RestoreInput { item, from_backup, restore } = input;
        if self.environment.is_alongside() || text(from_backup.object(), &["spec", "csi", "driver"]).is_none()
        {
            return Ok(Outcome::unchanged());
        }
        let volume = format!("PersistentVolume {}", item.name());
        // The contents of the restore are there by now: Velero restores them before the volumes.
        let of_restore = LabelSelector::equals(keys::RESTORE_UID, &label::valid_value(restore.uid()))?;
        let query = Query { labels: of_restore.as_query(), cached: false };
        let contents = self.cluster.list(CONTENTS, &query).await.context(&volume)?;
        if !contents.iter().any(|content| is_snapshot_of(content, from_backup.object())) {
            return Ok(Outcome::unchanged());
        }
        tracing::info!(
            "{volume}: not restored, since its claim comes back from a snapshot, with a new volume"
        );
        let reference = |field| text(from_backup.object(), &["spec", "claimRef", field]);
        let (Some(namespace), Some(claim)) = (reference("namespace"), reference("name")) else {
            return Ok(Outcome::skip());
        };
        if text(from_backup.object(), POLICY) != Some(RETAIN) {
            return Ok(Outcome::skip());
        }
        Ok(Outcome::skip().with_operation(keep::operation(&restore, namespace, claim)?))
    }

    async fn progress(&self, operation: OperationId, _: Restore) -> Result<Progress> {
        keep::progress(&self.cluster, &operation).await
    }
}

/// Whether the restored `content` is of a snapshot of `volume`.
fn is_snapshot_of(content: &Value, volume: &Value) -> bool {
    let part = |part| text(volume, &["spec", "csi", part]);
    part("driver") == Some(Content(content).driver())
        && part("volumeHandle").is_some_and(|handle| annotation(content, keys::VOLUME_HANDLE) == Some(handle))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn i50_a_content_belongs_to_the_volume_of_the_same_driver_and_handle() {
        let content = |driver: &str, handle: Value| json!({"metadata": {"annotations": {"csi-actions.velero-rs.io/volume-handle": handle}}, "spec": {"driver": driver}});
        let volume = json!({"spec": {"csi": {"driver": "d.csi", "volumeHandle": "vol-1"}}});
        assert!(is_snapshot_of(&content("d.csi", json!("vol-1")), &volume));
        assert!(!is_snapshot_of(&content("d.csi", json!("vol-2")), &volume));
        assert!(!is_snapshot_of(&content("e.csi", json!("vol-1")), &volume));
        assert!(!is_snapshot_of(&content("d.csi", Value::Null), &volume));
        assert!(!is_snapshot_of(
            &content("d.csi", Value::Null),
            &json!({"spec": {"csi": {"driver": "d.csi"}}})
        ));
    }
}
