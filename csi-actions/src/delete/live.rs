//! The contents in the cluster that point at the snapshot that is to be deleted, and what becomes of each.

use serde_json::{Value, json};
use velero_plugin::Backup;

use super::target::Target;
use crate::object::{Content, is_deleting};
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
    let pointing = contents.iter().filter(|content| target.is_pointed_at_by(content));
    pointing.map(|content| (role(content, target, archived, backup), content)).collect()
}

fn role(content: &Value, target: &Target, archived: &Value, backup: &Backup) -> Role {
    if crate::object::name(content) == target.temporary_name() {
        return Role::Temporary;
    }
    if ownership::is_restored(content) {
        return if ownership::has_name(content, backup) { Role::Restored } else { Role::Foreign };
    }
    match ownership::is_left_by(content, archived, backup) {
        true if is_deleting(content) => Role::Going,
        true => Role::LeftOver,
        false => Role::Foreign,
    }
}

/// Namespace, name and UID of the snapshot that `content` is bound to.
pub(super) fn binding(content: &Value) -> Option<(&str, &str, &str)> {
    let (namespace, name) = Content(content).snapshot()?;
    Some((namespace, name, Content(content).bound_uid()?))
}

/// The patch after which deleting a left-over content deletes its snapshot.
///
/// A content that is bound to no snapshot has no finalizer, so it would be gone before the sidecar saw that it is to be
/// deleted. One whose snapshot is gone (`snapshot_lives` is false) gets the mark by which the snapshot controller
/// tells the sidecar so; without it the sidecar would wait for ever.
pub(super) fn ready_to_go(content: &Value, snapshot_lives: bool) -> Value {
    let mut patch = json!({"spec": {"deletionPolicy": "Delete"}});
    let mut finalizers =
        content.pointer("/metadata/finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
    if !finalizers.iter().any(|finalizer| finalizer == keys::CONTENT_FINALIZER) {
        finalizers.push(keys::CONTENT_FINALIZER.into());
        patch["metadata"]["finalizers"] = finalizers.into();
    }
    if binding(content).is_some() && !snapshot_lives {
        patch["metadata"]["annotations"] = json!({keys::BEING_DELETED: "yes"});
    }
    patch
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
        let unbound = json!({"metadata": {"finalizers": ["a/b"]}, "spec": {"volumeSnapshotRef": {"namespace": "n", "name": "s"}}});
        let patch = ready_to_go(&unbound, false);
        assert_eq!(patch["metadata"], json!({"finalizers": ["a/b", keys::CONTENT_FINALIZER]}));
        assert_eq!(patch["spec"]["deletionPolicy"], "Delete");
    }

    #[test]
    fn a_bound_content_keeps_its_finalizers_and_is_marked_only_where_its_snapshot_is_gone() {
        let bound = json!({"metadata": {"finalizers": [keys::CONTENT_FINALIZER]},
            "spec": {"volumeSnapshotRef": {"namespace": "n", "name": "s", "uid": "u"}}});
        assert_eq!(ready_to_go(&bound, true)["metadata"], Value::Null);
        assert_eq!(
            ready_to_go(&bound, false)["metadata"],
            json!({"annotations": {keys::BEING_DELETED: "yes"}})
        );
    }
}
