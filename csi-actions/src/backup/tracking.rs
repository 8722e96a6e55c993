//! The operation that waits until a snapshot can be restored from: where it is started, how far it is, and giving it up.
//!
//! Velero polls an operation by the name of the action that started it, which a setting chooses; the answer is the same. All
//! state is in the operation's id and on the objects, since each poll comes from a new process.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::join;
use serde_json::Value;
use velero_plugin::backup::Outcome;
use velero_plugin::{Backup, OperationId, Progress, ResourceIdentifier, Result};

use super::round::Round;
use crate::cluster::Cluster;
use crate::cluster::events::Events;
use crate::cluster::resource::{CONTENTS, SNAPSHOT_GROUP, SNAPSHOTS};
use crate::discard::{Doomed, nudge};
use crate::environment::Environment;
use crate::events::{About, Reason};
use crate::object::{Content, annotation, name};
use crate::operation::{Operation, Subject};
use crate::pair::Pair;
use crate::readiness::{Clock, DEFAULT_TIMEOUT, Sight, State, Verdict};
use crate::settings::OperationOn;
use crate::{keys, ownership};

/// For how long one poll tries again when the API server is busy.
const PATIENCE: Duration = Duration::from_secs(5);

/// For how long giving up a snapshot tries a request again: nobody asks for it once more, and what is left then stays until
/// the backup is deleted. Longer than one request may take.
const GIVE_UP_PATIENCE: Duration = Duration::from_secs(30);

/// How long giving up a snapshot looks whether it is gone. The server waits meanwhile, for each that is given up.
const DISCARD_LIMIT: Duration = Duration::from_secs(3);

/// Why a member of a group is not given up: the deletion of the backup deletes the group.
const IN_GROUP: &str = "a driver deletes a group as a whole only, and the other members may be good";

/// Follows the operations of one action.
#[derive(Debug)]
pub(super) struct Tracking {
    environment: Arc<Environment>,
    cluster: Cluster,
    /// For giving up a snapshot.
    patient: Cluster,
    events: Events,
    round: Round,
}

enum Seen {
    Gone(String),
    There(Value, Option<Value>),
}

impl Tracking {
    pub(super) fn new(environment: Arc<Environment>) -> Self {
        let cluster = environment.cluster.patient(PATIENCE);
        let patient = environment.cluster.patient(GIVE_UP_PATIENCE);
        let events = Events::of(&environment);
        Self { environment, cluster, patient, events, round: Round::new() }
    }

    /// Whether the action on this resource starts the operations. Beside Velero's own actions none of ours does, since those
    /// have one on each snapshot.
    pub(super) fn starts_on(&self, resource: OperationOn) -> bool {
        !self.environment.is_alongside() && self.environment.settings.operation_on == resource
    }

    /// How far the operation is.
    pub(super) async fn progress(&self, id: &OperationId, backup: &Backup) -> Result<Progress> {
        let operation = Operation::parse(id)?;
        let patience = backup.csi_snapshot_timeout().unwrap_or(DEFAULT_TIMEOUT);
        let clock = Clock { started: operation.started, now: SystemTime::now(), patience };
        let state = self.state(&operation, backup, clock).await;
        tracing::debug!(operation = %operation, "{}", state.description);
        Ok(state.into_progress(operation.started))
    }

    async fn state(&self, operation: &Operation, backup: &Backup, clock: Clock) -> State {
        match self.look(&operation.subject, backup).await {
            Ok(Seen::Gone(what)) => State::of(Sight::Gone(&what), clock),
            Ok(Seen::There(content, snapshot)) => {
                let state = State::of(Sight::Seen(&content, snapshot.as_ref()), clock);
                if let Verdict::Failed(reason) = &state.verdict {
                    let told = self.tell(self.claim_of(&content, backup).await, reason.clone(), backup);
                    return join(self.give_up(state.clone(), &content, backup), told).await.0;
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
            Subject::Object(namespace, snapshot) => match self.snapshot(namespace, snapshot, backup).await? {
                Some(found) => Pair::snapshot().content_name(&found),
                None => match self.content_for(namespace, snapshot, backup).await? {
                    Some(content) => name(&content).to_owned(),
                    None => return Ok(Seen::Gone(format!("VolumeSnapshot {namespace}/{snapshot}"))),
                },
            },
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

    /// The content that something which deleted the snapshot has left.
    async fn content_for(
        &self,
        namespace: &str,
        snapshot: &str,
        backup: &Backup,
    ) -> Result<Option<Value>, String> {
        let listed = self.round.contents(&self.cluster, backup).await?;
        let is_it = |content: &&Value| {
            Content(content).snapshot() == Some((namespace, snapshot))
                && ownership::is_of_backup(content, backup)
        };
        Ok(listed.values().find(is_it).cloned())
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
        let Some(doomed) = Doomed::by_content(Pair::snapshot(), content) else { return state };
        match doomed.discard(&self.patient, DISCARD_LIMIT).await {
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

    /// Takes away what the operation waits for, in the cluster and in the storage.
    pub(super) async fn cancel(&self, id: &OperationId, backup: &Backup) -> Result<()> {
        let operation = Operation::parse(id)?;
        let Some((doomed, claim)) = self.doomed(&operation.subject, backup).await? else {
            tracing::debug!(operation = %operation, "nothing is left to cancel, or it is in a group: {IN_GROUP}");
            return Ok(());
        };
        let why = "it was not ready within the backup's itemOperationTimeout";
        let told = self.tell(claim, format!("gave up {doomed}: {why}"), backup);
        let gone = join(doomed.discard(&self.patient, DISCARD_LIMIT), told).await.0?;
        tracing::info!(gone, "gave up {doomed}: {why}");
        Ok(())
    }

    /// What is to be taken away, unless it is another backup's or in a group, and the claim it was taken of.
    async fn doomed(&self, subject: &Subject, backup: &Backup) -> Result<Option<(Doomed, Option<About>)>> {
        let content = match subject {
            Subject::Content(content) => self.patient.find(CONTENTS, "", content).await?,
            Subject::Object(namespace, snapshot) => {
                match self.patient.find(SNAPSHOTS, namespace, snapshot).await? {
                    Some(found) => {
                        let is_alone = annotation(&found, keys::GROUP_MEMBERS).is_none();
                        let ours = is_alone && ownership::is_of_backup(&found, backup);
                        let doomed = Doomed::by_snapshot(Pair::snapshot(), &found).filter(|_| ours);
                        return Ok(doomed.map(|doomed| (doomed, About::claim_of(&found))));
                    }
                    None => self
                        .content_for(namespace, snapshot, backup)
                        .await
                        .map_err(velero_plugin::Error::new)?,
                }
            }
        };
        let is_ours = |content: &Value| {
            ownership::is_of_backup(content, backup) && Content(content).group_handle().is_none()
        };
        let Some(content) = content.filter(is_ours) else { return Ok(None) };
        let Some(doomed) = Doomed::by_content(Pair::snapshot(), &content) else { return Ok(None) };
        Ok(Some((doomed, self.claim_of(&content, backup).await)))
    }

    /// The claim that the snapshot of `content` was taken of. The snapshot says it: the sidecar of a content that is being
    /// retried may overwrite all its annotations.
    async fn claim_of(&self, content: &Value, backup: &Backup) -> Option<About> {
        let (namespace, snapshot) = Content(content).snapshot()?;
        About::claim_of(&self.snapshot(namespace, snapshot, backup).await.ok()??)
    }

    async fn tell(&self, claim: Option<About>, what: String, backup: &Backup) {
        if let Some(claim) = claim {
            self.events
                .write(claim, Reason::SnapshotFailed, format!("backup {}: {what}", backup.name()))
                .await;
        }
    }
}

/// The `outcome` with an operation. Velero archives the content and the snapshot (its namespace and name) again when it
/// has ended, and finalizing the snapshot is what removes both from the cluster.
pub(super) fn begin(
    outcome: Outcome,
    operation: &Operation,
    content: &str,
    snapshot: Option<(&str, &str)>,
) -> Result<Outcome> {
    let mut items = vec![ResourceIdentifier::new(SNAPSHOT_GROUP, CONTENTS.plural, "", content)?];
    if let Some((namespace, snapshot)) = snapshot {
        items.push(ResourceIdentifier::new(SNAPSHOT_GROUP, SNAPSHOTS.plural, namespace, snapshot)?);
    }
    Ok(outcome.with_operation(OperationId::new(operation.to_string())?, items))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_and_snapshot_are_archived_again() {
        let operation = Operation::on_content("c", SystemTime::UNIX_EPOCH);
        let items = |snapshot| -> Vec<String> {
            let outcome = begin(Outcome::unchanged(), &operation, "c", snapshot).unwrap();
            outcome.operation().unwrap().1.iter().map(ToString::to_string).collect()
        };
        let (content, snapshot) = (
            "volumesnapshotcontents.snapshot.storage.k8s.io c",
            "volumesnapshots.snapshot.storage.k8s.io a/s",
        );
        assert_eq!(items(Some(("a", "s"))), [content, snapshot]);
        assert_eq!(items(None), [content]);
    }
}
