//! What the controller decides by: who belongs to whom, what may go, what a snapshot's status says.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object;
use crate::simulator::keys::{BOUND_FINALIZER, SNAPSHOTS, SOURCE_FINALIZER};
use crate::simulator::quantity;
use crate::store::Key;

/// The snapshot that a content refers to.
pub(super) fn referred(content: &Value) -> Key {
    let part = |pointer| object::text(content, pointer);
    Key::new(SNAPSHOTS, part("/spec/volumeSnapshotRef/namespace"), part("/spec/volumeSnapshotRef/name"))
}

/// The name of the content that is made for a snapshot.
pub(super) fn dynamic_name(snapshot: &Value) -> String {
    format!("snapcontent-{}", object::uid(snapshot))
}

/// The name of the group that owns the snapshot.
pub(in crate::simulator) fn group_of(snapshot: &Value) -> Option<&str> {
    let owners = snapshot["metadata"]["ownerReferences"].as_array()?;
    let group = owners.iter().find(|owner| object::text(owner, "/kind") == "VolumeGroupSnapshot")?;
    Some(object::text(group, "/name"))
}

/// The reference that makes a group the owner of its members.
pub(in crate::simulator) fn owner(group: &Value) -> Value {
    json!({
        "apiVersion": "groupsnapshot.storage.k8s.io/v1", "kind": "VolumeGroupSnapshot",
        "name": object::name(group), "uid": object::uid(group),
    })
}

/// Whether a deleted snapshot still holds what is to be taken down.
pub(super) fn deletable(snapshot: &Value) -> bool {
    let holds = |held: &str| held == SOURCE_FINALIZER || held == BOUND_FINALIZER;
    object::deleting(snapshot) && object::finalizers(snapshot).any(holds)
}

/// Whether the content points at the snapshot; one made in advance need not know its identity yet.
pub(super) fn refers_to(content: &Value, snapshot: &Value, in_advance: bool) -> bool {
    let reference = &content["spec"]["volumeSnapshotRef"];
    let uid = object::text(reference, "/uid");
    object::text(reference, "/name") == object::name(snapshot)
        && object::text(reference, "/namespace") == object::namespace(snapshot)
        && (uid == object::uid(snapshot) || (in_advance && uid.is_empty()))
}

/// Whether the snapshot's status lacks something that the content's has.
pub(super) fn behind(snapshot: &Value, content: &Value) -> bool {
    let (old, new) = (&snapshot["status"], &content["status"]);
    if new.is_null() {
        return false;
    }
    // Two known readinesses count as different, even when they are the same.
    old.is_null()
        || old["boundVolumeSnapshotContentName"].is_null()
        || (old["creationTime"].is_null() && !new["creationTime"].is_null())
        || !new["readyToUse"].is_null()
        || (old["restoreSize"].is_null() && !new["restoreSize"].is_null())
}

/// The snapshot's status with the content's copied into it.
pub(super) fn status_of(old: Option<&Value>, content: &Value) -> Value {
    let from = &content["status"];
    let ready = from["readyToUse"] == true;
    let mut status = old.cloned().unwrap_or_else(|| json!({}));
    let mut absent = |field: &str, value: Value| {
        if status[field].is_null() && !value.is_null() {
            status[field] = value;
        }
    };
    absent("boundVolumeSnapshotContentName", object::name(content).into());
    absent("creationTime", from["creationTime"].as_i64().map_or(Value::Null, time));
    absent(
        "restoreSize",
        from["restoreSize"].as_i64().map_or(Value::Null, |size| quantity::format(size).into()),
    );
    if status["readyToUse"] != ready {
        status["readyToUse"] = ready.into();
    }
    let error = from.get("error").filter(|error| !error.is_null()).cloned();
    object::set_field(&mut status, "error", error);
    // Looking at an absent field leaves a null behind.
    if let Value::Object(fields) = &mut status {
        fields.retain(|_, value| !value.is_null());
    }
    status
}

/// Nanoseconds since 1970 as a time of Kubernetes.
pub(super) fn time(nanoseconds: i64) -> Value {
    let time = Timestamp::from_nanosecond(i128::from(nanoseconds)).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_copied_with_times_and_sizes_as_users_read_them() {
        let content = |status: Value| json!({"metadata": {"name": "c"}, "status": status});
        assert_eq!(
            status_of(None, &content(json!(null))),
            json!({"boundVolumeSnapshotContentName": "c", "readyToUse": false})
        );
        let cut = content(json!({"creationTime": 1_000_000_000, "restoreSize": 1024, "readyToUse": true}));
        let old =
            json!({"boundVolumeSnapshotContentName": "c", "readyToUse": false, "error": {"message": "x"}});
        assert_eq!(
            status_of(Some(&old), &cut),
            json!({
                "boundVolumeSnapshotContentName": "c", "readyToUse": true,
                "creationTime": "1970-01-01T00:00:01Z", "restoreSize": "1Ki",
            })
        );
        let failed = content(json!({"readyToUse": false, "error": {"message": "y"}}));
        assert_eq!(status_of(Some(&old), &failed)["error"]["message"], "y");
    }

    #[test]
    fn content_made_in_advance_need_not_know_the_identity() {
        let snapshot = json!({"metadata": {"namespace": "n", "name": "s", "uid": "u"}});
        let content =
            |uid: &str| json!({"spec": {"volumeSnapshotRef": {"namespace": "n", "name": "s", "uid": uid}}});
        for (uid, in_advance, expected) in
            [("u", false, true), ("u", true, true), ("", true, true), ("", false, false), ("v", true, false)]
        {
            assert_eq!(refers_to(&content(uid), &snapshot, in_advance), expected, "{uid} {in_advance}");
        }
    }
}
