//! Takes the objects of a group out of the cluster, and those of its members with them, and leaves the group in the storage.

use serde_json::{Value, json};

use crate::cluster::{ApiError, Cluster, Reason};
use crate::group_api::GroupApi;
use crate::keys;
use crate::object::{GroupContent, name, text, uid};

/// Removes the group of `content` and the content from the cluster.
///
/// The policy of the content becomes Retain before anything is deleted: it alone decides what becomes of the storage, and the
/// snapshot controller deletes the members' snapshots with their group. Can be repeated.
///
/// # Errors
///
/// When the API server refuses or can't be reached; whatever is left then is safe to delete by hand once the policy is
/// Retain.
pub async fn keep_in_storage(cluster: &Cluster, api: GroupApi, content: &Value) -> Result<(), ApiError> {
    let content_uid = uid(content).unwrap_or_default();
    let retain = json!({"spec": {"deletionPolicy": "Retain"}});
    if text(content, &["spec", "deletionPolicy"]) != Some("Retain")
        && !patched(cluster, api, content, &retain).await?
    {
        return Ok(());
    }
    match group_of(cluster, api, content).await? {
        Some(group) => {
            let namespace = crate::object::namespace(&group);
            cluster.delete(api.groups(), namespace, name(&group), uid(&group).unwrap_or_default()).await?;
        }
        // The controller says that the group goes only while it still is there; without that the sidecar waits for ever.
        None => {
            let mark = json!({"metadata": {"annotations": {keys::GROUP_BEING_DELETED: "yes"}}});
            if !patched(cluster, api, content, &mark).await? {
                return Ok(());
            }
        }
    }
    match cluster.delete(api.contents(), "", name(content), content_uid).await {
        // Another content has the name, so this one is gone.
        Err(error) if error.reason == Reason::Conflict => Ok(()),
        done => done,
    }
}

/// The living group that `content` is bound to.
///
/// # Errors
///
/// When that can't be told.
pub async fn group_of(cluster: &Cluster, api: GroupApi, content: &Value) -> Result<Option<Value>, ApiError> {
    let Some((namespace, group)) = GroupContent(content).group() else { return Ok(None) };
    let found = cluster.find(api.groups(), namespace, group).await?;
    Ok(found.filter(|found| uid(found).is_some() && uid(found) == GroupContent(content).bound_uid()))
}

/// Whether the content was still there to be patched.
async fn patched(cluster: &Cluster, api: GroupApi, content: &Value, patch: &Value) -> Result<bool, ApiError> {
    match cluster.patch(api.contents(), "", name(content), patch).await {
        Err(error) if error.reason == Reason::NotFound => Ok(false),
        done => done.map(|_| true),
    }
}
