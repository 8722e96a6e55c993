//! What finalizing does to a snapshot: its objects leave the cluster, the snapshot itself stays in the storage.

use serde_json::{Value, json};

use crate::cluster::resource::{CONTENTS, SNAPSHOTS};
use crate::cluster::{ApiError, Cluster};
use crate::discard::Doomed;
use crate::object::{Content, Snapshot, annotation, name, namespace, uid};
use crate::{keys, names};

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
    let content_name =
        Snapshot(snapshot).bound_content().map_or_else(|| names::content(snapshot_uid), str::to_owned);
    let content = cluster.find(CONTENTS, "", &content_name).await?;
    // A content that is bound to another snapshot is not this one's, whatever the name says.
    let content = content.filter(|content| Content(content).bound_uid() == Some(snapshot_uid));
    if content.as_ref().is_some_and(|content| annotation(content, keys::CANCELLED).is_some()) {
        if let Some(doomed) = Doomed::by_snapshot(snapshot) {
            doomed.discard(cluster, super::DISCARD_LIMIT).await?;
        }
        return Ok(());
    }
    if let Some(content) = content {
        let retain = json!({"spec": {"deletionPolicy": "Retain"}});
        let content_uid = uid(&content).unwrap_or_default();
        cluster.patch(CONTENTS, "", &content_name, &retain).await?;
        cluster.delete(CONTENTS, "", &content_name, content_uid).await?;
    }
    cluster.delete(SNAPSHOTS, namespace(snapshot), name(snapshot), snapshot_uid).await
}
