//! Snapshots at backup: marks the content as the backup's and has it archived; at the end removes both from the cluster.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use serde_json::{Value, json};
use velero_plugin::backup::{BackupItemActionV2, Outcome};
use velero_plugin::{
    Backup, Context as _, Error, Item, OperationId, Progress, ResourceIdentifier, ResourceSelector, Result,
};

use super::tracking::{Tracking, begin};
use super::{discard_after, finalize, restorable};
use crate::cluster::resource::{CLASSES, CONTENTS, SNAPSHOT_GROUP};
use crate::cluster::{ApiError, Cluster};
use crate::environment::Environment;
use crate::object::{Snapshot, annotation, name};
use crate::operation::Operation;
use crate::pair::Pair;
use crate::settings::OperationOn;
use crate::{keys, labels, ownership};

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

    /// Gives the content the labels of the backup, by which Progress finds it and deletion knows it.
    ///
    /// The snapshot in the cluster is left alone: each change of it costs a snapshot controller that is throttled a request, and
    /// so the next snapshot a fifth of a second.
    async fn mark(&self, item: &Item, backup: &Backup) -> Result<Value, ApiError> {
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
        tracing::debug!(content, "marked as the backup's");
        Ok(marked)
    }

    /// The snapshot as it is archived in the end; then it leaves the cluster.
    async fn finalize(&self, item: &Item) -> Result<Outcome> {
        let what = format!("VolumeSnapshot {}/{}", item.namespace(), item.name());
        let content = finalize::content(&self.cluster, item.object()).await.context(format_args!(
            "{what} stays in the cluster, and in the archive as it was when it was cut"
        ))?;
        let outcome = match &content {
            Some(content) => Outcome::changed(item.edited(|document| restorable::write(document, content))?),
            None => Outcome::unchanged(),
        };
        if let Err(error) = finalize::keep_in_storage(&self.cluster, item.object(), content.as_ref()).await {
            // An error would only keep the final version of the snapshot out of the archive.
            tracing::warn!(
                "{what} is still in the cluster; set the deletionPolicy of its content to Retain before you delete it, or the \
                 backup's data goes with it: {error}"
            );
        }
        Ok(outcome)
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
            return self.finalize(&item).await;
        }
        let content = match self.mark(&item, &backup).await {
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
            restorable::write(document, &content)?;
            document.set(&["metadata", "annotations", keys::MUST_INCLUDE], "true")
        })?;
        let content = name(&content);
        let mut additional = Vec::new();
        if let Some(class) = Snapshot(item.object()).class() {
            additional.push(ResourceIdentifier::new(SNAPSHOT_GROUP, CLASSES.plural, "", class)?);
        }
        additional.push(ResourceIdentifier::new(SNAPSHOT_GROUP, CONTENTS.plural, "", content)?);
        let outcome = Outcome::changed(changed).with_additional_items(additional);
        if !self.tracking.starts_on(OperationOn::Snapshots) {
            return Ok(outcome);
        }
        let operation = Operation::on_object(item.namespace(), item.name(), SystemTime::now());
        begin(outcome, &operation, content, Some((item.namespace(), item.name())))
    }

    async fn progress(&self, operation: OperationId, backup: Backup) -> Result<Progress> {
        self.tracking.progress(&operation, &backup).await
    }

    async fn cancel(&self, operation: OperationId, backup: Backup) -> Result<()> {
        self.tracking.cancel(&operation, &backup).await
    }
}
