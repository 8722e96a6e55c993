//! Snapshots at backup: marks the content as the backup's and has it archived; at the end removes both from the cluster.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use velero_plugin::backup::{BackupItemActionV2, Outcome};
use velero_plugin::{
    Backup, Error, Item, OperationId, Progress, ResourceIdentifier, ResourceSelector, Result,
};

use super::tracking::{Tracking, begin};
use super::{discard_after, finalize};
use crate::cluster::resource::{CLASSES, CONTENTS, SNAPSHOT_GROUP, SNAPSHOTS};
use crate::cluster::{ApiError, Cluster};
use crate::environment::Environment;
use crate::object::{Content, Snapshot, annotation, name};
use crate::operation::Operation;
use crate::pair::Pair;
use crate::settings::OperationOn;
use crate::{keys, labels, ownership, quantity};

/// For how long a request is tried again when the API server is busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// The action on snapshots.
#[derive(Debug)]
pub struct SnapshotBackup {
    environment: Arc<Environment>,
    cluster: Cluster,
    tracking: Tracking,
}

impl SnapshotBackup {
    /// The action in `environment`.
    pub fn new(environment: Arc<Environment>) -> Self {
        let cluster = environment.cluster.patient(PATIENCE);
        let tracking = Tracking::new(Arc::clone(&environment));
        Self { environment, cluster, tracking }
    }

    /// Gives the content the labels of the backup, by which Progress finds it and deletion knows it, and the snapshot
    /// the annotations from which Velero can restore it. The content's name and the annotations.
    async fn mark(&self, item: &Item, backup: &Backup) -> Result<(String, Map<String, Value>), ApiError> {
        let snapshot = item.object();
        let content = Pair::snapshot().content_name(snapshot);
        let mut metadata = json!({"labels": labels::of_backup(backup)});
        let of_ours = [
            (keys::CAPACITY, annotation(snapshot, keys::CAPACITY)),
            (keys::CLAIM, Snapshot(snapshot).claim()),
            (keys::GROUP_MEMBERS, annotation(snapshot, keys::GROUP_MEMBERS)),
        ];
        for (key, value) in of_ours.into_iter().filter_map(|(key, value)| Some((key, value?))) {
            metadata["annotations"][key] = value.into();
        }
        let marked = self.cluster.patch(CONTENTS, "", &content, &json!({"metadata": metadata})).await?;
        let annotations = annotations_of(&marked);
        let patch = json!({"metadata": {"annotations": annotations}});
        self.cluster.patch(SNAPSHOTS, item.namespace(), item.name(), &patch).await?;
        Ok((content, annotations))
    }

    async fn finalize(&self, item: &Item) {
        if let Err(error) = finalize::keep_in_storage(&self.cluster, item.object()).await {
            // An error would only keep the final version of the snapshot out of the archive.
            tracing::warn!(
                "VolumeSnapshot {}/{} is still in the cluster; set the deletionPolicy of its content to Retain before you \
                 delete it, or the backup's data goes with it: {error}",
                item.namespace(),
                item.name()
            );
        }
    }
}

#[async_trait]
impl BackupItemActionV2 for SnapshotBackup {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::resources(["volumesnapshots.snapshot.storage.k8s.io"])
    }

    async fn execute(&self, item: Item, backup: Backup) -> Result<Outcome> {
        if self.environment.is_alongside() || !ownership::is_of_backup(item.object(), &backup) {
            tracing::debug!(
                snapshot = item.name(),
                "the snapshot is archived as it is: this action did not take it"
            );
            return Ok(Outcome::unchanged());
        }
        if backup.phase().is_finalizing() {
            self.finalize(&item).await;
            return Ok(Outcome::unchanged());
        }
        let (content, annotations) = match self.mark(&item, &backup).await {
            Ok(marked) => marked,
            Err(error) => {
                let what = format!("VolumeSnapshot {}/{}", item.namespace(), item.name());
                let error = Error::from(error).context(what);
                if annotation(item.object(), keys::GROUP_MEMBERS).is_some() {
                    let kept = "it stays in the storage, since a driver deletes a group as a whole only";
                    return Err(Error::new(format!("{error}; {kept}")));
                }
                return Err(discard_after(error, &self.cluster, Pair::snapshot(), item.object()).await);
            }
        };
        let changed = item.edited(|document| {
            for (key, value) in annotations {
                document.set(&["metadata", "annotations", &key], value)?;
            }
            // The snapshot controller may not have written it yet, and no other server restores a snapshot without it.
            document.set(&["status", "boundVolumeSnapshotContentName"], content.as_str())?;
            document.set(&["metadata", "annotations", keys::MUST_INCLUDE], "true")
        })?;
        let mut additional = Vec::new();
        if let Some(class) = Snapshot(item.object()).class() {
            additional.push(ResourceIdentifier::new(SNAPSHOT_GROUP, CLASSES.plural, "", class)?);
        }
        additional.push(ResourceIdentifier::new(SNAPSHOT_GROUP, CONTENTS.plural, "", content.as_str())?);
        let outcome = Outcome::changed(changed).with_additional_items(additional);
        if !self.tracking.starts_on(OperationOn::Snapshots) {
            return Ok(outcome);
        }
        let operation = Operation::on_object(item.namespace(), item.name(), SystemTime::now());
        begin(outcome, &operation, &content, Some((item.namespace(), item.name())))
    }

    async fn progress(&self, operation: OperationId, backup: Backup) -> Result<Progress> {
        self.tracking.progress(&operation, &backup).await
    }

    async fn cancel(&self, operation: OperationId, backup: Backup) -> Result<()> {
        self.tracking.cancel(&operation, &backup).await
    }
}

/// What Velero's restore action reads from a snapshot, and its users.
fn annotations_of(content: &Value) -> Map<String, Value> {
    let view = Content(content);
    let size = view.restore_size().map(quantity::format);
    let handle = view.reported_handle();
    let all = [
        (keys::DELETION_POLICY, Some(view.deletion_policy()).filter(|policy| !policy.is_empty())),
        (keys::SNAPSHOT_HANDLE, handle),
        (keys::DRIVER_NAME, handle.map(|_| view.driver())),
        (keys::RESTORE_SIZE, size.as_deref()),
        (keys::GROUP_HANDLE, view.group_handle()),
    ];
    let present = all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.into())));
    tracing::debug!(content = name(content), "marked as the backup's");
    present.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_annotations_are_those_that_a_stock_server_restores_from() {
        let content = json!({"spec": {"driver": "d.csi", "deletionPolicy": "Delete"},
            "status": {"snapshotHandle": "h", "restoreSize": 1_073_741_824, "volumeSnapshotGroupHandle": null}});
        let expected = json!({
            "velero.io/csi-vsc-deletion-policy": "Delete",
            "velero.io/csi-volumesnapshot-handle": "h",
            "velero.io/csi-driver-name": "d.csi",
            "velero.io/csi-volumesnapshot-restore-size": "1Gi",
        });
        assert_eq!(Value::Object(annotations_of(&content)), expected);
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        assert!(annotations_of(&json!({"spec": {"driver": "d.csi"}})).is_empty());
    }
}
