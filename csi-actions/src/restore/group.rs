//! Restored members of groups. Where the driver tells that a snapshot is of a group, the snapshot controller calls it ready only
//! once it finds a content of that group; the one of the backup is gone by then, so a stub takes its place.

use serde_json::{Value, json};
use velero_plugin::Restore;

use super::labels_of;
use super::present::create_or_take;
use crate::cluster::resource::SNAPSHOTS;
use crate::cluster::{ApiError, Cluster, Reason};
use crate::group_api::{GroupApi, NOT_SERVED};
use crate::object::{Content, GroupContent, annotation, name, namespace};
use crate::{keys, names};

/// Why a member can't get ready.
#[derive(Debug, thiserror::Error)]
pub(super) enum StubError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("the driver has it in group {0:?}, and the snapshot controller waits for that: {NOT_SERVED}")]
    NotServed(String),
}

/// The group that keeps the `snapshot` of `content` from being ready.
pub(super) fn missing(content: &Value) -> Option<&str> {
    Content(content).group_handle().filter(|_| Content(content).is_ready())
}

/// Makes the stub of `group` for this restore, and has the snapshot controller look again. Can be repeated.
///
/// The stub is under policy Retain and bound to nothing, so that it can be deleted without harm: servers since 1.18 do it at
/// the end of the restore, and the deletion of the backup does.
pub(super) async fn make_stub(
    cluster: &Cluster,
    restore: &Restore,
    snapshot: &Value,
    content: &Value,
    group: &str,
) -> Result<(), StubError> {
    let Some(api) = GroupApi::of(cluster).await? else {
        return Err(StubError::NotServed(group.to_owned()));
    };
    let stub = create_or_take(cluster, api.contents(), "", &stub(api, restore, content, group)).await?;
    if GroupContent(&stub).reported_handle().is_none() {
        let status = json!({"status": {"volumeGroupSnapshotHandle": group}});
        cluster.patch_status(api.contents(), "", name(&stub), &status).await?;
    }
    let touched = json!({"metadata": {"annotations": {keys::NUDGE: name(&stub)}}});
    match cluster.patch(SNAPSHOTS, namespace(snapshot), name(snapshot), &touched).await {
        Err(error) if error.reason == Reason::NotFound => Ok(()),
        done => Ok(done.map(|_| ())?),
    }
}

fn stub(api: GroupApi, restore: &Restore, content: &Value, group: &str) -> Value {
    let handle = Content(content).handle().unwrap_or_default();
    let members = annotation(content, keys::GROUP_MEMBERS)
        .and_then(|list| serde_json::from_str::<Vec<String>>(list).ok())
        .unwrap_or_else(|| vec![handle.to_owned()]);
    let name = names::restored(restore.uid(), group);
    json!({
        "apiVersion": api.api_version(),
        "kind": "VolumeGroupSnapshotContent",
        "metadata": {"name": name, "labels": labels_of(restore)},
        "spec": {
            "driver": Content(content).driver(),
            "deletionPolicy": "Retain",
            "source": {"groupSnapshotHandles": {
                "volumeGroupSnapshotHandle": group,
                "volumeSnapshotHandles": members,
            }},
            "volumeGroupSnapshotRef": {
                "apiVersion": api.api_version(),
                "kind": "VolumeGroupSnapshot",
                "namespace": restore.namespace(),
                "name": format!("stub-vgs-{}", &name[..8]),
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(ready: bool, group: &Value) -> Value {
        json!({"metadata": {"annotations": {"csi-actions.velero-rs.io/group-members": r#"["s1","s2"]"#}},
            "spec": {"driver": "d.csi", "source": {"snapshotHandle": "s1"}},
            "status": {"readyToUse": ready, "volumeGroupSnapshotHandle": group}})
    }

    #[test]
    fn a_stub_is_needed_where_the_driver_tells_of_a_group() {
        assert_eq!(missing(&content(true, &json!("g"))), Some("g"));
        assert_eq!(missing(&content(true, &Value::Null)), None);
        assert_eq!(missing(&content(false, &json!("g"))), None, "the storage is not ready either");
    }

    #[test]
    fn a_stub_is_the_restore_s_retained_and_bound_to_nothing() {
        let restore = Restore::from(json!({"metadata": {"name": "r", "uid": "ru", "namespace": "velero"}}));
        let api = GroupApi::among(&["v1".to_owned()]).unwrap();
        let made = stub(api, &restore, &content(true, &json!("g")), "g");
        assert_eq!(made["metadata"]["labels"]["velero.io/restore-name"], "r");
        assert_eq!(made["metadata"].get("finalizers"), None);
        assert_eq!(made["spec"]["deletionPolicy"], "Retain");
        assert_eq!(
            made["spec"]["source"]["groupSnapshotHandles"]["volumeSnapshotHandles"],
            json!(["s1", "s2"])
        );
        assert_eq!(made["spec"]["volumeGroupSnapshotRef"].get("uid"), None);
    }
}
