//! Volumes at restore: one whose claim comes back from a snapshot stays out, and the new one is kept as it was.
//!
//! Velero restores a volume of policy Retain as it was, reserved for its claim. The claim would take it at once, and with it
//! the data of today in place of those of the backup. The volume that the claim gets instead has the policy of its class,
//! so an operation waits for it and gives it that of the old one: it must not go with its claim either.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use serde_json::{Value, json};
use velero_plugin::restore::{Outcome, RestoreInput, RestoreItemActionV2};
use velero_plugin::{
    Context as _, LabelSelector, OperationId, Progress, ResourceSelector, Restore, Result, label,
};

use super::PATIENCE;
use super::binding::{Binding, decide};
use crate::cluster::resource::{CLAIMS, CONTENTS, STORAGE_CLASSES, VOLUMES};
use crate::cluster::{ApiError, Cluster, Query};
use crate::environment::Environment;
use crate::keys;
use crate::object::{Content, annotation, text};
use crate::operation::{Operation, Subject};

const POLICY: &[&str] = &["spec", "persistentVolumeReclaimPolicy"];
/// The policy by which a volume stays when its claim goes.
const RETAIN: &str = "Retain";

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

    /// Keeps the new volume of a claim, if it has one.
    async fn keep(&self, namespace: &str, claim: &str, age: Duration) -> Result<Binding, ApiError> {
        let found = self.cluster.find(CLAIMS, namespace, claim).await?;
        let class = match found.as_ref().and_then(|claim| text(claim, &["spec", "storageClassName"])) {
            Some(class) => self.cluster.find(STORAGE_CLASSES, "", class).await?,
            None => None,
        };
        let binding = decide(found.as_ref(), class.as_ref(), age);
        if let Binding::Bound(volume) = &binding {
            let patch = json!({"spec": {"persistentVolumeReclaimPolicy": RETAIN}});
            self.cluster.patch(VOLUMES, "", volume, &patch).await?;
        }
        Ok(binding)
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
        let operation = Operation::on_object(restore.target_namespace(namespace), claim, SystemTime::now());
        Ok(Outcome::skip().with_operation(OperationId::new(operation.to_string())?))
    }

    async fn progress(&self, operation: OperationId, _: Restore) -> Result<Progress> {
        let operation = Operation::parse(&operation)?;
        let Subject::Object(namespace, claim) = &operation.subject else {
            return Ok(Progress::failed(format!("operation {operation} is not on a claim")));
        };
        let age = operation.started.elapsed().unwrap_or_default();
        let progress = match self.keep(namespace, claim, age).await {
            Ok(Binding::Bound(volume)) => {
                Progress::completed().description(format!("{volume} is kept when its claim goes"))
            }
            Ok(Binding::Awaited(what)) => Progress::running().description(what),
            Ok(Binding::Left(why)) => {
                tracing::warn!("PersistentVolumeClaim {namespace}/{claim}: {why}");
                Progress::completed().description(why)
            }
            Err(error) if error.ends_a_wait() => Progress::failed(format!(
                "{error}; set persistentVolumeReclaimPolicy of the volume of claim {namespace}/{claim} to {RETAIN} by hand"
            )),
            Err(error) => Progress::running().description(error.to_string()),
        };
        Ok(progress.started(operation.started))
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
