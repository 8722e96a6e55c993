//! What finalizing does to a snapshot: its objects leave the cluster, the snapshot itself stays in the storage.

use serde_json::{Value, json};

use crate::cluster::resource::{CONTENTS, SNAPSHOTS};
use crate::cluster::{ApiError, Cluster, Reason};
use crate::discard::Doomed;
use crate::group_api::GroupApi;
use crate::object::{Content, Snapshot, annotation, is_deleting, name, namespace, uid};
use crate::pair::Pair;
use crate::{keys, ungroup};

/// Removes `snapshot` and its content from the cluster and keeps what is in the storage, unless it was given up before.
/// The caller has checked that the snapshot belongs to the backup.
///
/// The policy becomes Retain before anything is deleted: were it still Delete, deleting the snapshot would delete the
/// backup's data. Can be repeated.
///
/// # Errors
///
/// When the API server refuses or can't be reached; whatever is left then is safe to delete by hand once the content's
/// policy is Retain.
pub(super) async fn keep_in_storage(cluster: &Cluster, snapshot: &Value) -> Result<(), ApiError> {
    let Some(snapshot_uid) = uid(snapshot) else { return Ok(()) };
    // Its group first: while that is there, the snapshot controller lets no member go alone.
    if let Some(group) = Snapshot(snapshot).group_uid() {
        ungroup(cluster, group).await?;
    }
    let content_name = Pair::snapshot().content_name(snapshot);
    let content = cluster.find(CONTENTS, "", &content_name).await?;
    // A content that is bound to another snapshot is not this one's, whatever the name says.
    let content = content.filter(|content| Content(content).bound_uid() == Some(snapshot_uid));
    if content.as_ref().is_some_and(|content| annotation(content, keys::CANCELLED).is_some()) {
        if let Some(doomed) = Doomed::by_snapshot(Pair::snapshot(), snapshot) {
            doomed.discard(cluster, super::DISCARD_LIMIT).await?;
        }
        return Ok(());
    }
    if let Some(content) = content {
        let retain = json!({"spec": {"deletionPolicy": "Retain"}});
        let content_uid = uid(&content).unwrap_or_default();
        match cluster.patch(CONTENTS, "", &content_name, &retain).await {
            // A member goes by itself once its group does.
            Err(error) if error.reason == Reason::NotFound && is_deleting(&content) => {}
            done => _ = done?,
        }
        cluster.delete(CONTENTS, "", &content_name, content_uid).await?;
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
