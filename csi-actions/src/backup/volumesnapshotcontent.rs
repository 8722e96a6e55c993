//! Snapshot contents at backup: starts the operation that waits until the snapshot can be restored from.
//!
//! All state is in the operation's id and on the objects, since each poll comes from a new process.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use serde_json::Value;
use velero_plugin::backup::{BackupItemActionV2, Outcome};
use velero_plugin::{Backup, Item, OperationId, Progress, ResourceIdentifier, ResourceSelector, Result};

use super::round::Round;
use crate::cluster::Cluster;
use crate::cluster::resource::{CONTENTS, SNAPSHOT_GROUP, SNAPSHOTS};
use crate::discard::{Doomed, nudge};
use crate::environment::Environment;
use crate::object::{Content, Snapshot, annotation, name, namespace};
use crate::operation::{Operation, Subject};
use crate::pair::Pair;
use crate::readiness::{Clock, DEFAULT_TIMEOUT, Sight, State, Verdict};
use crate::settings::ArchiveLabel;
use crate::{keys, labels, ownership};

/// For how long one poll tries again when the API server is busy.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long giving up a snapshot looks whether it is gone. The server waits meanwhile, for each that is given up.
const DISCARD_LIMIT: Duration = Duration::from_secs(3);

/// Why a member of a group is not given up: the deletion of the backup deletes the group.
const IN_GROUP: &str = "a driver deletes a group as a whole only, and the other members may be good";

/// The action on contents.
#[derive(Debug)]
pub struct ContentBackup {
    environment: Arc<Environment>,
    cluster: Cluster,
    round: Round,
}

impl ContentBackup {
    /// The action in `environment`.
    pub fn new(environment: Arc<Environment>) -> Self {
        let cluster = environment.cluster.patient(PATIENCE);
        Self { environment, cluster, round: Round::new() }
    }

    /// The content as it is archived; the `secret` of its deletion goes with it.
    fn archived(&self, item: &Item, secret: Option<ResourceIdentifier>, backup: &Backup) -> Result<Outcome> {
        // Alongside it is Velero's own action that keeps the books.
        let as_ours =
            self.environment.settings.archive_label == ArchiveLabel::Own && !self.environment.is_alongside();
        if secret.is_none() && !as_ours {
            return Ok(Outcome::unchanged());
        }
        let changed = item.edited(|document| {
            if secret.is_some() {
                document.set(&["metadata", "annotations", keys::MUST_INCLUDE], "true")?;
            }
            if as_ours { labels::archive_as_ours(document, backup) } else { Ok(()) }
        })?;
        Ok(Outcome::changed(changed).with_additional_items(secret))
    }

    async fn state(&self, operation: &Operation, backup: &Backup, clock: Clock) -> State {
        match self.look(&operation.subject, backup).await {
            Ok(Seen::Gone(what)) => State::of(Sight::Gone(&what), clock),
            Ok(Seen::There(content, snapshot)) => {
                let state = State::of(Sight::Seen(&content, snapshot.as_ref()), clock);
                if matches!(state.verdict, Verdict::Failed(_)) {
                    return self.give_up(state, &content, backup).await;
                }
                if Content(&content).group_handle().is_some() && !Content(&content).is_ready() {
                    // The sidecar loses sight of a member that was not ready at first, up to its resync after 15 minutes.
                    nudge(&self.cluster, CONTENTS, &content).await;
                }
                state
            }
            Err(trouble) => State::of(Sight::Trouble(&trouble), clock),
        }
    }

    /// The objects of the operation. Those of one list serve all operations; an object that is not in it is asked for by
    /// name, since the list is from the API server's cache and by labels.
    async fn look(&self, subject: &Subject, backup: &Backup) -> Result<Seen, String> {
        let content = match subject {
            Subject::Content(content) => content.clone(),
            Subject::Object(namespace, snapshot) => {
                let what = format!("VolumeSnapshot {namespace}/{snapshot}");
                let Some(found) = self.snapshot(namespace, snapshot, backup).await? else {
                    return Ok(Seen::Gone(what));
                };
                match Snapshot(&found).bound_content() {
                    Some(content) => content.to_owned(),
                    None => return Ok(Seen::Gone(format!("the content of {what}"))),
                }
            }
        };
        let listed = self.round.contents(&self.cluster, backup).await?;
        let found = match listed.get(&(String::new(), content.clone())) {
            Some(object) => Some(object.clone()),
            None => self.cluster.find(CONTENTS, "", &content).await.map_err(|error| error.to_string())?,
        };
        let Some(object) = found else { return Ok(Seen::Gone(format!("VolumeSnapshotContent {content}"))) };
        // The snapshot can only add an error to a content that is silent.
        let view = Content(&object);
        let snapshot = match view.snapshot() {
            Some((namespace, snapshot)) if !view.is_ready() && view.error().is_none() => {
                let listed = self.round.snapshots(&self.cluster, backup).await?;
                listed.get(&(namespace.to_owned(), snapshot.to_owned())).cloned()
            }
            _ => None,
        };
        Ok(Seen::There(object, snapshot))
    }

    async fn snapshot(&self, namespace: &str, name: &str, backup: &Backup) -> Result<Option<Value>, String> {
        let listed = self.round.snapshots(&self.cluster, backup).await?;
        if let Some(object) = listed.get(&(namespace.to_owned(), name.to_owned())) {
            return Ok(Some(object.clone()));
        }
        self.cluster.find(SNAPSHOTS, namespace, name).await.map_err(|error| error.to_string())
    }

    /// Velero does not call Cancel for an operation that failed, so what it leaves is taken away here: a snapshot that
    /// never became ready can't be restored from.
    async fn give_up(&self, state: State, content: &Value, backup: &Backup) -> State {
        if self.environment.settings.keep_failed || !ownership::is_of_backup(content, backup) {
            return state;
        }
        if Content(content).group_handle().is_some() {
            tracing::info!("VolumeSnapshotContent {} stays with its group: {IN_GROUP}", name(content));
            return state;
        }
        let Some(doomed) = Doomed::by_content(content) else { return state };
        match doomed.discard(&self.environment.cluster, DISCARD_LIMIT).await {
            Ok(_) => state,
            Err(error) => {
                let left = format!("{doomed} could not be removed: {error}");
                let verdict = match state.verdict {
                    Verdict::Failed(reason) => Verdict::Failed(format!("{reason}; {left}")),
                    other => other,
                };
                State { verdict, ..state }
            }
        }
    }
}

enum Seen {
    Gone(String),
    There(Value, Option<Value>),
}

#[async_trait]
impl BackupItemActionV2 for ContentBackup {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::resources(["volumesnapshotcontents.snapshot.storage.k8s.io"])
    }

    async fn execute(&self, item: Item, backup: Backup) -> Result<Outcome> {
        if !ownership::is_of_backup(item.object(), &backup) {
            tracing::debug!(
                content = item.name(),
                "the content is not of this backup, so it is archived as it is"
            );
            return Ok(Outcome::unchanged());
        }
        let is_finalizing = backup.phase().is_finalizing();
        let secret = if is_finalizing { None } else { deletion_secret(item.object())? };
        let outcome = self.archived(&item, secret, &backup)?;
        if is_finalizing {
            return Ok(outcome);
        }
        if self.environment.is_alongside() {
            // Velero's own action has an operation on the snapshot; a second one would wait for the same.
            return Ok(outcome);
        }
        let operation = Operation::on_content(item.name(), SystemTime::now());
        Ok(outcome
            .with_operation(OperationId::new(operation.to_string())?, post_operation_items(item.object())?))
    }

    async fn progress(&self, operation: OperationId, backup: Backup) -> Result<Progress> {
        let operation = Operation::parse(&operation)?;
        let patience = backup.csi_snapshot_timeout().unwrap_or(DEFAULT_TIMEOUT);
        let clock = Clock { started: operation.started, now: SystemTime::now(), patience };
        let state = self.state(&operation, &backup, clock).await;
        tracing::debug!(operation = %operation, "{}", state.description);
        Ok(state.into_progress(operation.started))
    }

    async fn cancel(&self, operation: OperationId, backup: Backup) -> Result<()> {
        let operation = Operation::parse(&operation)?;
        let cluster = &self.cluster;
        let doomed = match &operation.subject {
            Subject::Content(content) => {
                let found = cluster.find(CONTENTS, "", content).await?;
                found
                    .filter(|object| ownership::is_of_backup(object, &backup))
                    .filter(|object| Content(object).group_handle().is_none())
                    .and_then(|object| Doomed::by_content(&object))
            }
            Subject::Object(namespace, snapshot) => {
                let found = cluster.find(SNAPSHOTS, namespace, snapshot).await?;
                found
                    .filter(|object| ownership::is_of_backup(object, &backup))
                    .filter(|object| annotation(object, keys::GROUP_MEMBERS).is_none())
                    .and_then(|object| Doomed::by_snapshot(Pair::snapshot(), &object))
            }
        };
        let Some(doomed) = doomed else {
            tracing::debug!(operation = %operation, "nothing is left to cancel, or it is in a group: {IN_GROUP}");
            return Ok(());
        };
        let gone = doomed.discard(cluster, DISCARD_LIMIT).await?;
        tracing::info!(gone, "gave up {doomed}: it was not ready within the backup's itemOperationTimeout");
        Ok(())
    }
}

/// The Secret that the driver needs to delete the snapshot, if the content names one in full: without it in the archive
/// the snapshot could not be deleted from another cluster.
fn deletion_secret(content: &Value) -> Result<Option<ResourceIdentifier>> {
    let part = |key| annotation(content, key);
    let (Some(name), Some(namespace)) =
        (part(keys::DELETION_SECRET_NAME), part(keys::DELETION_SECRET_NAMESPACE))
    else {
        return Ok(None);
    };
    Ok(Some(ResourceIdentifier::new("", "secrets", namespace, name)?))
}

/// The content and its snapshot. Velero archives both again when the operation has ended, and finalizing the snapshot
/// is what removes both from the cluster.
fn post_operation_items(content: &Value) -> Result<Vec<ResourceIdentifier>> {
    let mut items =
        vec![ResourceIdentifier::new(SNAPSHOT_GROUP, CONTENTS.plural, namespace(content), name(content))?];
    if let Some((namespace, snapshot)) = Content(content).snapshot() {
        items.push(ResourceIdentifier::new(SNAPSHOT_GROUP, SNAPSHOTS.plural, namespace, snapshot)?);
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn i09_c36_the_secret_is_found_by_the_keys_that_real_contents_carry_and_only_whole() {
        let key = |part: &str| format!("snapshot.storage.kubernetes.io/deletion-secret-{part}");
        let content = |annotations: Value| json!({"metadata": {"annotations": annotations}});
        let whole = content(json!({key("name"): "s", key("namespace"): "hpe"}));
        assert_eq!(deletion_secret(&whole).unwrap().unwrap().to_string(), "secrets hpe/s");
        for partial in [
            json!({key("name"): "s"}),
            json!({key("namespace"): "hpe"}),
            json!(null),
            json!({key("name"): "", key("namespace"): "n"}),
        ] {
            assert_eq!(deletion_secret(&content(partial)).unwrap(), None);
        }
        let class_keys = json!({"csi.storage.k8s.io/snapshotter-secret-name": "s",
            "csi.storage.k8s.io/snapshotter-secret-namespace": "n"});
        assert_eq!(deletion_secret(&content(class_keys)).unwrap(), None);
    }

    #[test]
    fn content_and_snapshot_are_archived_again() {
        let content = json!({"metadata": {"name": "c"}, "spec": {"volumeSnapshotRef": {"namespace": "a", "name": "s"}}});
        let items: Vec<String> =
            post_operation_items(&content).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(
            items,
            [
                "volumesnapshotcontents.snapshot.storage.k8s.io c",
                "volumesnapshots.snapshot.storage.k8s.io a/s"
            ]
        );
    }
}
