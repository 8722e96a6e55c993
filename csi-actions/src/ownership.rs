//! Whose snapshot is it? Nothing is changed or deleted before this says "ours".

use serde_json::{Value, json};
use velero_plugin::{Backup, label};

use crate::keys;
use crate::object::{label as label_of, text, time};

/// Whether `backup` made the live `object`: by the labels of its name **and** its UID.
///
/// The name alone would be an earlier backup of that name, or one of another cluster. An object that a restore made
/// carries both labels, since the archive had them, and belongs to whoever restored it.
pub fn is_of_backup(object: &Value, backup: &Backup) -> bool {
    !backup.uid().is_empty()
        && has_name(object, backup)
        && label_of(object, keys::BACKUP_UID) == Some(&label::valid_value(backup.uid()))
        && !is_restored(object)
}

/// Whether a content in the archive of `backup` is one that this backup took.
///
/// The archive is that of the backup, so its name says enough, as in Velero's own action. The UID can't be asked for:
/// a backup that was synced into another cluster has another one there.
///
/// A content that a restore made was in the cluster when the backup ran, and may even carry the backup's name, of an
/// earlier backup of that name: its snapshot belongs to whoever restored it.
pub fn is_archived_by(content: &Value, backup: &Backup) -> bool {
    let ours = label_of(content, keys::ARCHIVED_BY) == Some(&label::valid_value(backup.name()));
    !backup.name().is_empty() && (ours || has_name(content, backup)) && !is_restored(content)
}

/// Whether the live `content`, which has the driver and handle of `archived`, is what the backup that wrote the archive
/// left in the cluster, or made for deletion, and not what a restore or another backup of the name made.
pub fn is_left_by(content: &Value, archived: &Value, backup: &Backup) -> bool {
    // Velero's own actions write no UID; there the handle that both have is the second proof beside the name.
    let same_backup = label_of(archived, keys::BACKUP_UID)
        .is_none_or(|theirs| label_of(content, keys::BACKUP_UID) == Some(theirs));
    has_name(content, backup) && same_backup && !is_restored(content)
}

/// The backup that the labels of `object` name.
pub fn backup_of(object: &Value) -> Backup {
    let label = |key| label_of(object, key).unwrap_or_default();
    Backup::from(json!({"metadata": {"name": label(keys::BACKUP_NAME), "uid": label(keys::BACKUP_UID)}}))
}

/// Whether some action, Velero's own included, took the live `snapshot` for `backup`.
///
/// Velero's own writes no UID. Then the snapshot must be younger than the backup: one that is left of an earlier backup of
/// the name would leave the claim without a snapshot.
pub fn is_taken_for(snapshot: &Value, backup: &Backup) -> bool {
    if label_of(snapshot, keys::BACKUP_UID).is_some() {
        return is_of_backup(snapshot, backup);
    }
    let time = |object: &Value, path: &[&str]| text(object, path).and_then(time);
    let created = time(snapshot, &["metadata", "creationTimestamp"]);
    let started = time(backup.object(), &["status", "startTimestamp"]);
    has_name(snapshot, backup) && !is_restored(snapshot) && created.zip(started).is_some_and(|(c, s)| c >= s)
}

/// Whether a restore made the object.
pub fn is_restored(object: &Value) -> bool {
    label_of(object, keys::RESTORE_NAME).is_some()
}

/// Whether the object carries the name of the backup, which alone proves little.
pub fn has_name(object: &Value, backup: &Backup) -> bool {
    label_of(object, keys::BACKUP_NAME) == Some(&label::valid_value(backup.name()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "a value written at the call reads best")]

    use super::*;

    fn backup(name: &str, uid: &str) -> Backup {
        Backup::from(json!({"metadata": {"name": name, "uid": uid}}))
    }

    fn labelled(labels: Value) -> Value {
        json!({"metadata": {"uid": "o1", "labels": labels}})
    }

    #[test]
    fn the_name_alone_is_never_enough() {
        let ours = backup("b1", "u1");
        let table = [
            (json!({"velero.io/backup-name": "b1", "velero.io/backup-uid": "u1"}), true),
            (json!({"velero.io/backup-name": "b1"}), false),
            (json!({"velero.io/backup-name": "b1", "velero.io/backup-uid": "u0"}), false),
            (json!({"velero.io/backup-name": "b2", "velero.io/backup-uid": "u1"}), false),
            (json!({}), false),
            (json!(null), false),
        ];
        for (labels, owned) in table {
            assert_eq!(is_of_backup(&labelled(labels.clone()), &ours), owned, "{labels}");
        }
        let unset = labelled(json!({"velero.io/backup-name": "b1", "velero.io/backup-uid": ""}));
        assert!(!is_of_backup(&unset, &backup("b1", "")));
    }

    #[test]
    fn a_restored_object_is_not_the_backups_although_it_carries_its_labels() {
        let labels = json!({"velero.io/backup-name": "b1", "velero.io/backup-uid": "u1", "velero.io/restore-name": "r"});
        assert!(!is_of_backup(&labelled(labels.clone()), &backup("b1", "u1")));
        assert!(!is_left_by(&labelled(labels.clone()), &labelled(labels), &backup("b1", "u1")));
    }

    #[test]
    fn c17_a_long_backup_name_is_compared_in_its_label_form() {
        let name = "nightly-all-namespaces-production-cluster-eu-central-1-20260101010203";
        let value = "nightly-all-namespaces-production-cluster-eu-central-1-20f4862a";
        let object = labelled(json!({"velero.io/backup-name": value, "velero.io/backup-uid": "u1"}));
        assert!(is_of_backup(&object, &backup(name, "u1")));
        assert!(is_of_backup(&object, &backup_of(&object)));
        assert!(is_archived_by(&object, &backup(name, "another")));
        assert!(!is_archived_by(&object, &backup("b1", "u1")));
    }

    #[test]
    fn an_archive_of_a_synced_backup_is_still_the_backups() {
        let archived =
            labelled(json!({"velero.io/backup-name": "b1", "velero.io/backup-uid": "uid-in-old-cluster"}));
        assert!(is_archived_by(&archived, &backup("b1", "uid-in-new-cluster")));
    }

    #[test]
    fn an_archive_with_our_own_label_in_place_of_velero_s_is_the_backups() {
        let ours = |name: &str| labelled(json!({keys::ARCHIVED_BY: name, "velero.io/backup-uid": "u1"}));
        assert!(is_archived_by(&ours("b1"), &backup("b1", "u1")));
        assert!(is_archived_by(&ours("b1"), &backup("b1", "uid-in-new-cluster")));
        assert!(!is_archived_by(&ours("b2"), &backup("b1", "u1")));
        assert!(!is_archived_by(&ours(""), &backup("", "u1")));
        let mut restored = ours("b1");
        restored["metadata"]["labels"]["velero.io/restore-name"] = "r1".into();
        assert!(!is_archived_by(&restored, &backup("b1", "u1")));
        // What lives in the cluster carries Velero's label, also if the archive does not.
        let live = labelled(json!({"velero.io/backup-name": "b1", "velero.io/backup-uid": "u1"}));
        assert!(is_left_by(&live, &ours("b1"), &backup("b1", "u1")));
        assert!(!is_left_by(&ours("b1"), &ours("b1"), &backup("b1", "u1")));
    }

    #[test]
    fn an_archived_content_that_a_restore_made_was_not_taken_by_the_backup() {
        let taken = json!({"velero.io/backup-name": "b1", "velero.io/backup-uid": "u1"});
        let mut restored = taken.clone();
        restored["velero.io/restore-name"] = "r1".into();
        assert!(is_archived_by(&labelled(taken), &backup("b1", "u1")));
        assert!(!is_archived_by(&labelled(restored), &backup("b1", "u1")));
    }

    #[test]
    fn a_live_content_is_left_over_only_if_it_comes_from_the_archived_one() {
        let ours = backup("b1", "u1");
        let with_uid = labelled(json!({"velero.io/backup-name": "b1", "velero.io/backup-uid": "u1"}));
        let other = labelled(json!({"velero.io/backup-name": "b1", "velero.io/backup-uid": "u2"}));
        assert!(is_left_by(&with_uid, &with_uid, &ours));
        assert!(!is_left_by(&other, &with_uid, &ours));
        let stock = labelled(json!({"velero.io/backup-name": "b1"}));
        assert!(is_left_by(&stock, &stock, &ours));
        assert!(!is_left_by(&stock, &with_uid, &ours));
        assert!(!is_left_by(&labelled(json!({"velero.io/backup-name": "b2"})), &stock, &ours));
    }

    #[test]
    fn c46_a_snapshot_of_velero_s_own_action_counts_only_if_it_is_of_this_backup() {
        let backup = Backup::from(json!({"metadata": {"name": "b1", "uid": "u1"},
            "status": {"startTimestamp": "2026-01-01T00:00:10Z"}}));
        let snapshot = |labels: Value, created: &str| json!({"metadata": {"labels": labels, "creationTimestamp": created}});
        let name = json!({"velero.io/backup-name": "b1"});
        assert!(is_taken_for(&snapshot(name.clone(), "2026-01-01T00:00:10Z"), &backup));
        assert!(!is_taken_for(&snapshot(name, "2026-01-01T00:00:09Z"), &backup), "left of an earlier backup");
        let ours = json!({"velero.io/backup-name": "b1", "velero.io/backup-uid": "u1"});
        assert!(is_taken_for(&snapshot(ours, "2025-01-01T00:00:00Z"), &backup));
        let other = json!({"velero.io/backup-name": "b1", "velero.io/backup-uid": "u0"});
        assert!(!is_taken_for(&snapshot(other, "2026-01-01T00:01:00Z"), &backup));
    }
}
