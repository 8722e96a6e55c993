//! What finalizing does to a snapshot: its objects leave the cluster, the snapshot itself stays in the storage.

use serde_json::{Value, json};

use super::restorable;
use crate::cluster::resource::{CONTENTS, SNAPSHOTS};
use crate::cluster::{ApiError, Cluster, Reason};
use crate::discard::Doomed;
use crate::group_api::GroupApi;
use crate::object::{Content, Snapshot, is_deleting, label, name, namespace, uid};
use crate::pair::Pair;
use crate::{keys, ungroup};

/// The content of `snapshot`, unless the snapshot was given up. Its group is taken out of the cluster first: while that is there,
/// the snapshot controller lets no member go alone.
///
/// # Errors
///
/// When the API server refuses or can't be reached; then nothing of the snapshot itself has changed.
pub(super) async fn content(cluster: &Cluster, snapshot: &Value) -> Result<Option<Value>, ApiError> {
    let Some(snapshot_uid) = uid(snapshot) else { return Ok(None) };
    if let Some(group) = Snapshot(snapshot).group_uid() {
        ungroup(cluster, group).await?;
    }
    let content = cluster.find(CONTENTS, "", &Pair::snapshot().content_name(snapshot)).await?;
    // A content that is bound to another snapshot is not this one's, whatever the name says.
    let content = content.filter(|content| Content(content).bound_uid() == Some(snapshot_uid));
    if content.as_ref().is_some_and(|content| label(content, keys::CANCELLED).is_some()) {
        if let Some(doomed) = Doomed::by_snapshot(Pair::snapshot(), snapshot) {
            doomed.discard(cluster, super::DISCARD_LIMIT).await?;
        }
        return Ok(None);
    }
    Ok(content)
}

/// Removes `snapshot` and its `content` from the cluster and keeps what is in the storage. The caller has checked that
/// the snapshot belongs to the backup.
///
/// The policy becomes Retain before anything is deleted: were it still Delete, deleting the snapshot would delete the
/// backup's data. Can be repeated.
///
/// # Errors
///
/// When the API server refuses or can't be reached; whatever is left then is safe to delete by hand once the content's
/// policy is Retain.
pub(super) async fn keep_in_storage(
    cluster: &Cluster,
    snapshot: &Value,
    content: Option<&Value>,
) -> Result<(), ApiError> {
    let Some(snapshot_uid) = uid(snapshot) else { return Ok(()) };
    if let Some(content) = content {
        // Should a kill part the two, the next attempt archives the snapshot with what its content said.
        let said = json!({"metadata": {"annotations": restorable::annotations(content)}});
        match cluster.patch(SNAPSHOTS, namespace(snapshot), name(snapshot), &said).await {
            Err(error) if error.reason == Reason::NotFound => {}
            done => _ = done?,
        }
        let retain = json!({"spec": {"deletionPolicy": "Retain"}});
        match cluster.patch(CONTENTS, "", name(content), &retain).await {
            // A member goes by itself once its group does.
            Err(error) if error.reason == Reason::NotFound && is_deleting(content) => {}
            done => _ = done?,
        }
        cluster.delete(CONTENTS, "", name(content), uid(content).unwrap_or_default()).await?;
    }
    cluster.delete(SNAPSHOTS, namespace(snapshot), name(snapshot), snapshot_uid).await
}

/// Takes the group of this UID out of the cluster, and keeps it in the storage.
async fn ungroup(cluster: &Cluster, group: &str) -> Result<(), ApiError> {
    let Some(api) = GroupApi::of(cluster).await? else { return Ok(()) };
    let content = Pair::group(api).content_name(&json!({"metadata": {"uid": group}}));
    match cluster.find(api.contents(), "", &content).await? {
        Some(content) => ungroup::keep_in_storage(cluster, api, &content).await,
        None => Ok(()),
    }
}
