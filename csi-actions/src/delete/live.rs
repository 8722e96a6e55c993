//! The contents in the cluster that point at the snapshot that is to be deleted, and what becomes of each.

use serde_json::{Value, json};
use velero_plugin::Backup;

use super::passage::Passage as _;
use super::target::Target;
use crate::object::{Content, annotation, has_finalizer, is_deleting, text};
use crate::{keys, ownership};

/// What a live content is to the deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The backup left it in the cluster: through it the snapshot is deleted.
    LeftOver,
    /// The temporary content of an earlier attempt: it is taken up again.
    Temporary,
    /// A restore made it from this backup: it goes, or will go with its snapshot, once the snapshot is deleted.
    Restored,
    /// The backup's, and already being deleted by another hand. It may vanish without the driver having been asked, as
    /// Velero's own temporary contents do, so it proves nothing; or it may be stuck, so it is nudged at the end.
    Going,
    /// Someone else's: left alone.
    Foreign,
}

/// The contents of `contents` that point at `target`, each with its role.
pub(super) fn roles<'a>(
    contents: &'a [Value],
    target: &Target,
    archived: &Value,
    backup: &Backup,
) -> Vec<(Role, &'a Value)> {
    contents.iter().filter_map(|content| Some((role(content, target, archived, backup)?, content))).collect()
}

/// What `content` is to the deletion; `None` where it does not point at `target`.
pub(super) fn role(content: &Value, target: &Target, archived: &Value, backup: &Backup) -> Option<Role> {
    if !target.is_pointed_at_by(content) {
        return None;
    }
    if crate::object::name(content) == target.temporary_name() {
        return Some(Role::Temporary);
    }
    Some(role_by_labels(content, archived, backup))
}

/// What `content`, which is not our temporary one, is to the deletion by the labels that it carries.
pub(super) fn role_by_labels(content: &Value, archived: &Value, backup: &Backup) -> Role {
    if ownership::is_restored(content) {
        return if ownership::has_name(content, backup) { Role::Restored } else { Role::Foreign };
    }
    match ownership::is_left_by(content, archived, backup) {
        true if is_deleting(content) => Role::Going,
        true => Role::LeftOver,
        false => Role::Foreign,
    }
}

/// Whether `snapshot`, which has the name that `content` refers to, is bound to it, or names it and is about to be.
pub(super) fn belong_together(content: &Value, snapshot: &Value) -> bool {
    match Content(content).bound_uid() {
        Some(bound) => crate::object::uid(snapshot) == Some(bound),
        None => {
            let named = text(snapshot, &["spec", "source", "volumeSnapshotContentName"]);
            named == Some(crate::object::name(content))
        }
    }
}

/// The patch after which deleting `content` deletes what it leads to; `None` where it is not needed. It holds for this state
/// of the content only. `finalizer` is the sidecar's.
///
/// A content that is bound to no snapshot has no finalizer, so it would be gone before the sidecar saw that it is to be
/// deleted. One whose snapshot is gone (`snapshot_lives` is false) gets the mark by which the snapshot controller
/// tells the sidecar so; without it the sidecar would wait for ever.
pub(super) fn ready_to_go(content: &Value, finalizer: &str, snapshot_lives: bool) -> Option<Value> {
    let mut patch = json!({});
    if Content(content).deletion_policy() != "Delete" {
        patch["spec"]["deletionPolicy"] = "Delete".into();
    }
    if !has_finalizer(content, finalizer) {
        let held = content.pointer("/metadata/finalizers").and_then(Value::as_array);
        let mut finalizers = held.cloned().unwrap_or_default();
        finalizers.push(finalizer.into());
        patch["metadata"]["finalizers"] = finalizers.into();
    }
    let is_told = annotation(content, keys::BEING_DELETED).is_some();
    if Content(content).bound_uid().is_some() && !snapshot_lives && !is_told {
        patch["metadata"]["annotations"] = json!({keys::BEING_DELETED: "yes"});
    }
    let is_needed = patch.as_object().is_some_and(|fields| !fields.is_empty());
    is_needed.then(|| {
        patch["metadata"]["resourceVersion"] = text(content, &["metadata", "resourceVersion"]).into();
        patch
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "a value written at the call reads best")]

    use super::*;

    fn content(name: &str, handle: &str, labels: Value) -> Value {
        json!({"metadata": {"name": name, "uid": name, "labels": labels},
            "spec": {"driver": "d.csi", "source": {"volumeHandle": "v"}}, "status": {"snapshotHandle": handle}})
    }

    #[test]
    fn each_content_that_points_at_the_snapshot_has_its_role() {
        let ours = json!({"velero.io/backup-name": "b1", "velero.io/backup-uid": "u1"});
        let archived = content("snapcontent-1", "snap-1", ours.clone());
        let backup = Backup::from(json!({"metadata": {"name": "b1", "uid": "u1"}}));
        let target = Target::of(&archived).unwrap();
        let mut restored = content("restored", "snap-1", ours.clone());
        restored["metadata"]["labels"]["velero.io/restore-name"] = "r1".into();
        let mut foreign_restore = content("restored-2", "snap-1", json!({"velero.io/restore-name": "r2"}));
        foreign_restore["metadata"]["labels"]["velero.io/backup-name"] = "b2".into();
        let mut going = content("vsc-1", "snap-1", ours.clone());
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        let contents = [
            content("left", "snap-1", ours.clone()),
            content(&target.temporary_name(), "snap-1", json!({})),
            restored,
            foreign_restore,
            content("users-own", "snap-1", json!({})),
            going,
            content("another-snapshot", "snap-2", ours),
        ];
        let found: Vec<(Role, &str)> = roles(&contents, &target, &archived, &backup)
            .into_iter()
            .map(|(role, content)| (role, crate::object::name(content)))
            .collect();
        let temporary = target.temporary_name();
        let expected = [
            (Role::LeftOver, "left"),
            (Role::Temporary, temporary.as_str()),
            (Role::Restored, "restored"),
            (Role::Foreign, "restored-2"),
            (Role::Foreign, "users-own"),
            (Role::Going, "vsc-1"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_unbound_content_is_held_until_the_sidecar_has_seen_it() {
        let unbound = json!({"metadata": {"resourceVersion": "7", "finalizers": ["a/b"]},
            "spec": {"volumeSnapshotRef": {"namespace": "n", "name": "s"}}});
        let patch = ready_to_go(&unbound, keys::CONTENT_FINALIZER, false).unwrap();
        let finalizers = json!(["a/b", keys::CONTENT_FINALIZER]);
        assert_eq!(patch["metadata"], json!({"finalizers": finalizers, "resourceVersion": "7"}));
        assert_eq!(patch["spec"]["deletionPolicy"], "Delete");
    }

    #[test]
    fn a_bound_content_keeps_its_finalizers_and_is_marked_only_where_its_snapshot_is_gone() {
        let bound = json!({"metadata": {"resourceVersion": "7", "finalizers": [keys::CONTENT_FINALIZER]},
            "spec": {"deletionPolicy": "Delete", "volumeSnapshotRef": {"namespace": "n", "name": "s", "uid": "u"}}});
        assert_eq!(ready_to_go(&bound, keys::CONTENT_FINALIZER, true), None);
        let marked = json!({"annotations": {keys::BEING_DELETED: "yes"}, "resourceVersion": "7"});
        assert_eq!(ready_to_go(&bound, keys::CONTENT_FINALIZER, false).unwrap(), json!({"metadata": marked}));
    }

    #[test]
    fn a_content_and_a_snapshot_belong_together_by_uid_or_before_they_are_bound_by_name() {
        let content = |uid: Value| {
            json!({"metadata": {"name": "c"},
            "spec": {"volumeSnapshotRef": {"namespace": "n", "name": "s", "uid": uid}}})
        };
        let snapshot = |uid: &str, of: &str| {
            json!({"metadata": {"namespace": "n", "name": "s", "uid": uid},
            "spec": {"source": {"volumeSnapshotContentName": of}}})
        };
        let table = [
            (content("u1".into()), snapshot("u1", "x"), true),
            (content("u1".into()), snapshot("u2", "c"), false),
            (content(Value::Null), snapshot("u2", "c"), true),
            (content(Value::Null), snapshot("u2", "d"), false),
        ];
        for (content, snapshot, together) in table {
            assert_eq!(belong_together(&content, &snapshot), together, "{content} {snapshot}");
        }
    }
}
