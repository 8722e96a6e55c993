//! The operation of a restore that keeps the new volume of a claim: the old one was to stay when the claim goes (policy
//! Retain), and the new one has the policy of its class.

use std::time::{Duration, SystemTime};

use serde_json::json;
use velero_plugin::{OperationId, Progress, Restore, Result};

use super::binding::{Binding, decide};
use crate::cluster::resource::{CLAIMS, STORAGE_CLASSES, VOLUMES};
use crate::cluster::{ApiError, Cluster};
use crate::object::text;
use crate::operation::{Operation, Subject};

/// The policy by which a volume stays when its claim goes.
pub(super) const RETAIN: &str = "Retain";

/// The operation for the claim of these names in the archive.
pub(super) fn operation(restore: &Restore, namespace: &str, claim: &str) -> Result<OperationId> {
    let operation = Operation::on_object(restore.target_namespace(namespace), claim, SystemTime::now());
    Ok(OperationId::new(operation.to_string())?)
}

/// One poll: keeps the volume as soon as the claim has one.
pub(super) async fn progress(cluster: &Cluster, operation: &OperationId) -> Result<Progress> {
    let operation = Operation::parse(operation)?;
    let Subject::Object(namespace, claim) = &operation.subject else {
        return Ok(Progress::failed(format!("operation {operation} is not on a claim")));
    };
    let age = operation.started.elapsed().unwrap_or_default();
    let progress = match keep(cluster, namespace, claim, age).await {
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

/// Keeps the new volume of a claim, if it has one.
async fn keep(cluster: &Cluster, namespace: &str, claim: &str, age: Duration) -> Result<Binding, ApiError> {
    let found = cluster.find(CLAIMS, namespace, claim).await?;
    let class = match found.as_ref().and_then(|claim| text(claim, &["spec", "storageClassName"])) {
        Some(class) => cluster.find(STORAGE_CLASSES, "", class).await?,
        None => None,
    };
    let binding = decide(found.as_ref(), class.as_ref(), age);
    if let Binding::Bound(volume) = &binding {
        let patch = json!({"spec": {"persistentVolumeReclaimPolicy": RETAIN}});
        cluster.patch(VOLUMES, "", volume, &patch).await?;
    }
    Ok(binding)
}
