//! What the sidecar decides by: which changes it looks at, which deletions it works off, which errors are final.

use csi_driver::state::Snapshot;
use jiff::Timestamp;
use serde_json::{Value, json};
use tonic::Code;

use crate::object;
use crate::simulator::context::{annotation, set};
use crate::simulator::keys::{BEING_CREATED, BEING_DELETED};

/// Whether a deleted content may be worked off. A bound one waits until its snapshot goes, and one with a creation under way
/// until that is over.
pub(super) fn should_delete(content: &Value) -> bool {
    if !object::deleting(content) {
        return false;
    }
    let pre_provisioned = set(content, "/spec/source/snapshotHandle").is_some();
    let bound = set(content, "/spec/volumeSnapshotRef/uid").is_some();
    (pre_provisioned && !bound)
        || (annotation(content, BEING_CREATED).is_none() && annotation(content, BEING_DELETED).is_some())
}

/// Whether the driver must be told of the deletion: by policy, for a snapshot that is known and in no group.
pub(super) fn owns_a_snapshot(content: &Value) -> bool {
    object::text(content, "/spec/deletionPolicy") == "Delete"
        && set(content, "/status/snapshotHandle").is_some()
        && set(content, "/status/volumeGroupSnapshotHandle").is_none()
}

pub(super) fn ready(content: &Value) -> bool {
    content["status"]["readyToUse"] == true
}

/// Whether a change is one that the sidecar looks at. Its own writes are not, nor are those of the status, but for the step to
/// "ready".
pub(super) fn worth_a_look(before: &Value, after: &Value) -> bool {
    if object::resource_version(before) == object::resource_version(after) || (!ready(before) && ready(after))
    {
        return true;
    }
    let rest = |object: &Value| {
        let mut object = object.clone();
        object::set_field(&mut object, "status", None);
        for field in ["resourceVersion", "managedFields", "finalizers"] {
            object::set_metadata(&mut object, field, None);
        }
        if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
            annotations.remove(BEING_CREATED);
        }
        if object["metadata"]["annotations"].as_object().is_none_or(serde_json::Map::is_empty) {
            object::set_metadata(&mut object, "annotations", None);
        }
        object
    };
    rest(before) != rest(after)
}

/// Whether the driver has surely given up: only then is it safe to say that no creation is under way.
pub(in crate::simulator) fn is_final(code: Code) -> bool {
    !matches!(
        code,
        Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Unavailable
            | Code::ResourceExhausted
            | Code::Aborted
    )
}

/// The status with what the driver said added to it; none when it says so already.
pub(super) fn status_of(
    old: Option<&Value>,
    handle: String,
    snapshot: &Snapshot,
    now: Timestamp,
) -> Option<Value> {
    let ready = snapshot.ready.at(now);
    let nanoseconds = i64::try_from(snapshot.created.as_nanosecond()).unwrap_or(i64::MAX);
    let mut status = old.cloned().unwrap_or_else(|| json!({}));
    let mut absent = |field: &str, value: Value| {
        if status[field].is_null() {
            status[field] = value;
        }
    };
    absent("snapshotHandle", handle.into());
    absent("creationTime", nanoseconds.into());
    if snapshot.size_bytes > 0 {
        absent("restoreSize", snapshot.size_bytes.into());
    }
    if let Some(group) = &snapshot.group_id {
        absent("volumeGroupSnapshotHandle", group.as_str().into());
    }
    if status["readyToUse"] != ready {
        status["readyToUse"] = ready.into();
        if ready {
            object::set_field(&mut status, "error", None);
        }
    }
    (old != Some(&status)).then_some(status)
}

#[cfg(test)]
mod tests {
    use csi_driver::state::{Parameters, Readiness};

    use super::*;

    #[test]
    fn deleted_contents_wait_for_their_snapshot_and_for_a_creation() {
        let content = |handle: &str, uid: &str, annotations: Value| {
            json!({
                "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations},
                "spec": {"source": {"snapshotHandle": handle}, "volumeSnapshotRef": {"uid": uid}},
            })
        };
        let both = json!({BEING_DELETED: "yes", BEING_CREATED: "yes"});
        for (content, expected) in [
            (content("h", "", json!({})), true),
            (content("h", "", both.clone()), true),
            (content("h", "u", json!({})), false),
            (content("h", "u", json!({BEING_DELETED: "yes"})), true),
            (content("", "u", json!({BEING_DELETED: "yes"})), true),
            (content("", "u", both), false),
            (content("", "", json!({})), false),
            (json!({"spec": {"source": {"snapshotHandle": "h"}}}), false),
        ] {
            assert_eq!(should_delete(&content), expected, "{content}");
        }
    }

    #[test]
    fn driver_is_told_of_known_lone_snapshots_under_policy_delete_only() {
        let content =
            |policy: &str, status: Value| json!({"spec": {"deletionPolicy": policy}, "status": status});
        for (content, expected) in [
            (content("Delete", json!({"snapshotHandle": "h"})), true),
            (content("Retain", json!({"snapshotHandle": "h"})), false),
            (content("Delete", json!({})), false),
            (content("Delete", json!(null)), false),
            (content("Delete", json!({"snapshotHandle": "h", "volumeGroupSnapshotHandle": "g"})), false),
        ] {
            assert_eq!(owns_a_snapshot(&content), expected, "{content}");
        }
    }

    #[test]
    fn status_finalizers_and_own_annotation_are_no_reason_to_look() {
        let object = |version: &str, change: Value| {
            let mut object = json!({"metadata": {"resourceVersion": version}, "spec": {"driver": "d"}});
            json_patch::merge(&mut object, &change);
            object
        };
        let before = object("1", json!({}));
        let being_created = json!({"metadata": {"annotations": {BEING_CREATED: "yes"}}});
        for (change, expected) in [
            (json!({"status": {"snapshotHandle": "h"}}), false),
            (json!({"status": {"readyToUse": false}}), false),
            (json!({"status": {"readyToUse": true}}), true),
            (json!({"metadata": {"finalizers": ["x"]}}), false),
            (being_created, false),
            (json!({"metadata": {"annotations": {"nudge": "1"}}}), true),
            (json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), true),
            (json!({"spec": {"deletionPolicy": "Delete"}}), true),
        ] {
            assert_eq!(worth_a_look(&before, &object("2", change.clone())), expected, "{change}");
        }
        assert!(worth_a_look(&before, &before), "a resync");
    }

    #[test]
    fn status_is_only_added_to_and_readiness_clears_the_error() {
        let now = Timestamp::now();
        let snapshot = |ready| Snapshot {
            id: "h".to_owned(),
            name: "n".to_owned(),
            volume_id: "v".to_owned(),
            size_bytes: 7,
            created: now,
            ready,
            group_id: None,
            parameters: Parameters::new(),
        };
        let error = json!({"error": {"message": "x"}, "readyToUse": false, "snapshotHandle": "other"});
        let waiting = status_of(Some(&error), "h".to_owned(), &snapshot(Readiness::Never), now).unwrap();
        assert_eq!(
            (&waiting["snapshotHandle"], &waiting["error"]["message"]),
            (&json!("other"), &json!("x"))
        );
        let done = status_of(Some(&waiting), "h".to_owned(), &snapshot(Readiness::At(now)), now).unwrap();
        assert_eq!(
            (&done["readyToUse"], &done["restoreSize"], done.get("error")),
            (&json!(true), &json!(7), None)
        );
        assert_eq!(status_of(Some(&done), "h".to_owned(), &snapshot(Readiness::At(now)), now), None);
    }
}
