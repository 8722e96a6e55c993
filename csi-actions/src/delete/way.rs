//! The content through which a snapshot or a group is deleted: found or made, and brought to where its deletion is that
//! of what it leads to.

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use velero_plugin::Backup;

use super::hidden::{self, Hiding};
use super::live::{self, Role};
use super::passage::Passage;
use super::target::Target;
use crate::cluster::resource::{CONTENTS, Resource, SNAPSHOTS};
use crate::cluster::{ApiError, Cluster, Reason, watch};
use crate::object::{Content, annotation, is_deleting, name, text, uid};
use crate::{keys, ownership};

/// How long the sidecar is given to look at a new content.
const FIRST_WORD: Duration = Duration::from_secs(2);

/// Where a content is on its way.
#[derive(Debug)]
pub(super) enum Way {
    /// It can be deleted.
    Open(Value),
    /// It is being deleted by another hand, perhaps before it had all that the sidecar needs, or was stuck: once it is gone, the
    /// snapshot has to be deleted through another.
    Going(Value),
    /// It changed or went at this moment: look again.
    Moved,
    /// An object of the temporary content's name is something else; the text says what.
    Taken(&'static str),
}

/// The content that the backup left in the cluster: with policy Delete, held by the sidecar's finalizer, and bound to
/// nothing that lives; or one that is stuck in its deletion. `None` where there is none; `listed` are the contents that point at
/// the target.
pub(super) async fn left_over(
    cluster: &Cluster,
    listed: &[(Role, &Value)],
    target: &Target,
    archived: &Value,
    backup: &Backup,
) -> Result<Option<Way>, ApiError> {
    // Those that are bound to nothing go by themselves, as Velero's own temporary contents do.
    let may_be_stuck = |role, content| role == Role::Going && Content(content).bound_uid().is_some();
    for (_, listed) in
        listed.iter().filter(|(role, content)| *role == Role::LeftOver || may_be_stuck(*role, content))
    {
        let found = cluster.find(CONTENTS, "", name(listed)).await?;
        // The list is from a while ago.
        let Some(content) = found.filter(|found| uid(found) == uid(listed)) else { continue };
        match live::role(&content, target, archived, backup) {
            Some(Role::LeftOver) => {}
            Some(Role::Going) if is_stuck(cluster, &content).await? => {
                let_go(cluster, &content).await?;
                return Ok(Some(Way::Going(content)));
            }
            _ => continue,
        }
        let snapshot = snapshot_of(cluster, &content).await?;
        if snapshot.as_ref().is_some_and(|snapshot| {
            !ownership::has_name(snapshot, backup) || ownership::is_restored(snapshot)
        }) {
            // Someone works with that snapshot; the temporary content does not touch it.
            continue;
        }
        let way = armed(cluster, target, content, snapshot.is_some()).await?;
        if let (Way::Open(_), Some(snapshot)) = (&way, snapshot) {
            let (namespace, snapshot_uid) = (crate::object::namespace(&snapshot), uid(&snapshot));
            match cluster
                .delete(SNAPSHOTS, namespace, name(&snapshot), snapshot_uid.unwrap_or_default())
                .await
            {
                // Another snapshot has the name, so this one is gone.
                Err(error) if error.reason == Reason::Conflict => {}
                done => done?,
            }
        }
        return Ok(Some(way));
    }
    Ok(None)
}

/// The temporary content: made, or that of an earlier attempt or of another process. One that is made is hidden from its sidecar
/// where `hiding` is given, and allowed.
pub(super) async fn temporary(
    cluster: &Cluster,
    passage: &impl Passage,
    backup: &Backup,
    hiding: Option<&Hiding>,
) -> Result<Way, ApiError> {
    let resource = passage.resource();
    let content = match created(cluster, passage, backup, hiding).await {
        Err(error) if error.reason == Reason::AlreadyExists => {
            match cluster.find(resource, "", &passage.temporary_name()).await? {
                Some(existing) => existing,
                None => return Ok(Way::Moved),
            }
        }
        created => created?,
    };
    let content = if Content(&content).is_hidden() {
        content
    } else {
        if let Some(hiding) = hiding {
            hiding.ask(cluster, resource, &content).await;
        }
        heard_of(cluster, resource, content).await
    };
    if let Err(what) = passage.can_go_through(&content) {
        return Ok(Way::Taken(what));
    }
    if hidden::goes_by_itself(&content, passage.finalizer()) {
        return Ok(Way::Going(content));
    }
    armed(cluster, passage, content, false).await
}

/// Makes the temporary content: a hidden one if it may be, and if that is taken.
async fn created(
    cluster: &Cluster,
    passage: &impl Passage,
    backup: &Backup,
    hiding: Option<&Hiding>,
) -> Result<Value, ApiError> {
    let resource = passage.resource();
    if let Some(hiding) = hiding.filter(|hiding| hiding.is_allowed()) {
        match cluster.create(resource, "", &hidden::hidden(passage.temporary_content(backup))).await {
            // An admission rule may be for new objects alone.
            Err(error) if matches!(error.reason, Reason::Forbidden | Reason::Invalid) => {
                tracing::debug!("{error}");
                hiding.note_refusal();
            }
            created => return created,
        }
    }
    cluster.create(resource, "", &passage.temporary_content(backup)).await
}

/// The content when the sidecar has written its first word of it, for which it is not waited long. Before that the two would
/// write at once: its word could take the place of a status with the handle, and what it then holds for the last version hides a
/// deletion from it that came before.
async fn heard_of(cluster: &Cluster, resource: Resource, content: Value) -> Value {
    let end = Instant::now() + FIRST_WORD;
    let quick = cluster.patient(Duration::ZERO);
    let mut states = watch::states_after(&quick, resource, "", name(&content), Some(&content));
    let mut latest = content;
    while latest["status"].is_null() && !is_deleting(&latest) {
        match timeout_at(end, states.next()).await {
            Ok(Some(Ok(Some(state)))) if uid(&state) == uid(&latest) => latest = state,
            Ok(Some(Err(error))) if !error.ends_a_wait() => {}
            // It went, which the next write finds, or there is nothing to be heard.
            _ => break,
        }
    }
    latest
}

/// Gives `content` what makes its deletion that of what it leads to. Each write is to the very state that was judged: the
/// finalizers are written as a whole, and the name may be another object's by now.
pub(super) async fn armed(
    cluster: &Cluster,
    passage: &impl Passage,
    content: Value,
    snapshot_lives: bool,
) -> Result<Way, ApiError> {
    let resource = passage.resource();
    let content = match live::ready_to_go(&content, passage.finalizer(), snapshot_lives) {
        None => content,
        Some(patch) => match cluster.patch(resource, "", name(&content), &patch).await {
            Err(error) if error.has_moved() => return Ok(Way::Moved),
            patched => patched?,
        },
    };
    let Some(status) = passage.missing_status(&content) else { return Ok(Way::Open(content)) };
    let version = text(&content, &["metadata", "resourceVersion"]);
    let patch = json!({"metadata": {"resourceVersion": version}, "status": status});
    match cluster.patch_status(resource, "", name(&content), &patch).await {
        Err(error) if error.has_moved() => Ok(Way::Moved),
        patched => Ok(Way::Open(patched?)),
    }
}

/// Whether `content`, which is being deleted, never goes: its snapshot is gone, and the sidecar was not told so, or has wiped that
/// away when it began another attempt to cut the snapshot. It would cut it again after its deletion in the storage.
pub(super) async fn is_stuck(cluster: &Cluster, content: &Value) -> Result<bool, ApiError> {
    let is_told = annotation(content, keys::BEING_DELETED).is_some();
    let is_bound = Content(content).bound_uid().is_some();
    Ok(is_bound && !is_told && snapshot_of(cluster, content).await?.is_none())
}

/// Tells the sidecar that `content`, which [is stuck](is_stuck), may go, together with what it stands for.
pub(super) async fn let_go(cluster: &Cluster, content: &Value) -> Result<(), ApiError> {
    let patch = json!({"metadata": {"uid": uid(content), "annotations": {keys::BEING_DELETED: "yes"}},
        "spec": {"deletionPolicy": "Delete"}});
    match cluster.patch(CONTENTS, "", name(content), &patch).await {
        // It went, and perhaps another object has its name.
        Err(error) if error.has_moved() => Ok(()),
        done => done.map(|_| ()),
    }
}

/// The living snapshot that `content` is bound to, or is about to be bound to.
pub(super) async fn snapshot_of(cluster: &Cluster, content: &Value) -> Result<Option<Value>, ApiError> {
    let Some((namespace, snapshot)) = Content(content).snapshot() else { return Ok(None) };
    let found = cluster.find(SNAPSHOTS, namespace, snapshot).await?;
    Ok(found.filter(|found| live::belong_together(content, found)))
}
