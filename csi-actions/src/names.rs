//! Names made from UIDs and handles, so that whatever is done twice meets what the first time made.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The name of the snapshot of a claim in a backup.
///
/// The hash holds the claim's UID and not its name, so it differs between namespaces: contents have none, and two
/// namespaces restored together must not collide. `attempt` counts from 0; a later one is for a name that is taken.
pub fn snapshot(backup_uid: &str, claim: &str, claim_uid: &str, attempt: u32) -> String {
    const PART_OF_CLAIM: usize = 30;
    let part = claim[..claim.floor_char_boundary(PART_OF_CLAIM)].trim_end_matches(['-', '.']);
    let hash = digest(&[backup_uid, claim_uid], 16);
    match attempt {
        0 => format!("velero-{part}-{hash}"),
        again => format!("velero-{part}-{hash}-{again}"),
    }
}

/// What tells the claims of `namespace` that carry a label with this value from all other groups of all backups.
pub fn group_id(backup_uid: &str, namespace: &str, key: &str, value: &str) -> String {
    digest(&[backup_uid, namespace, key, value], 16)
}

/// The name of the group of this [id](group_id) whose claims carry `value`. `attempt` as for [`snapshot`].
pub fn group(value: &str, id: &str, attempt: u32) -> String {
    const PART_OF_VALUE: usize = 30;
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let part: String = value.chars().take(PART_OF_VALUE).map(plain).collect();
    let again = if attempt == 0 { String::new() } else { format!("-{attempt}") };
    match part.trim_matches('-') {
        "" => format!("velero-{id}{again}"),
        part => format!("velero-{part}-{id}{again}"),
    }
}

/// How the names of temporary contents begin.
pub const TEMPORARY_CONTENT: &str = "velero-del-";

/// The name of the temporary content through which a snapshot in the storage is deleted, or a group: then its handle is
/// followed by those of its members.
pub fn temporary_content(driver: &str, handles: &[&str]) -> String {
    let parts: Vec<&str> = [driver].into_iter().chain(handles.iter().copied()).collect();
    format!("{TEMPORARY_CONTENT}{}", digest(&parts, 40))
}

/// The name of what is restored of the snapshot `archived`: of the snapshot and of its content alike. Velero's own
/// actions give the same one since 1.16.
pub fn restored(restore_uid: &str, archived: &str) -> String {
    digest(&[restore_uid, archived], 64)
}

/// The name of an Event on the object `name` of `uid`.
pub fn event(name: &str, uid: &str, reason: &str, message: &str) -> String {
    const PART_OF_OBJECT: usize = 230;
    let part = name[..name.floor_char_boundary(PART_OF_OBJECT)].trim_end_matches(['-', '.']);
    format!("{part}.{}", digest(&[uid, reason, message], 16))
}

/// The first `digits` hexadecimal digits of the SHA-256 of `parts` joined by "/".
fn digest(parts: &[&str], digits: usize) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(parts.join("/").as_bytes()) {
        let _ = write!(text, "{byte:02x}");
    }
    text.truncate(digits);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_claim_of_the_same_backup_gets_the_same_name() {
        let name = snapshot("b-uid", "data", "c-uid", 0);
        assert_eq!(name, snapshot("b-uid", "data", "c-uid", 0));
        assert!(name.starts_with("velero-data-") && name.len() == "velero-data-".len() + 16, "{name}");
        assert_eq!(snapshot("b-uid", "data", "c-uid", 2), format!("{name}-2"));
        assert_ne!(name, snapshot("other", "data", "c-uid", 0));
    }

    #[test]
    fn i39_claims_of_one_name_in_two_namespaces_get_different_names() {
        assert_ne!(snapshot("b", "snap", "uid-in-a", 0), snapshot("b", "snap", "uid-in-b", 0));
    }

    #[test]
    fn a_long_claim_name_is_cut_to_a_valid_object_name() {
        for claim in ["x".repeat(253), format!("{}.{}", "y".repeat(29), "z".repeat(60)), "a-.b".repeat(40)] {
            let name = snapshot("b", &claim, "c", 9);
            assert!(name.len() <= 63, "{name}");
            assert!(!name.contains(".-") && !name.contains("--"), "{name}");
        }
    }

    #[test]
    fn i40_a_group_is_named_by_what_its_label_has_of_a_valid_name() {
        let id = group_id("b", "a", "k", "v");
        assert_eq!(id, group_id("b", "a", "k", "v"));
        for other in
            [group_id("c", "a", "k", "v"), group_id("b", "z", "k", "v"), group_id("b", "a", "k", "w")]
        {
            assert_ne!(id, other);
        }
        let table = [
            ("db", 0, format!("velero-db-{id}")),
            ("DB_main.x", 2, format!("velero-db-main-x-{id}-2")),
            ("_", 0, format!("velero-{id}")),
        ];
        for (value, attempt, name) in table {
            assert_eq!(group(value, &id, attempt), name);
        }
        assert!(group(&"x".repeat(63), &id, 9).len() <= 63);
    }

    #[test]
    fn a_deletion_that_is_repeated_meets_its_own_content() {
        let name = temporary_content("d.csi", &["snap-1"]);
        // printf 'd.csi/snap-1' | sha256sum
        assert_eq!(name, "velero-del-5f572a28093475825dabfcc5308e9e6044c5df2d");
    }

    #[test]
    fn c20_a_restored_snapshot_is_named_by_the_restore() {
        assert_eq!(
            restored("11111111-2222-3333-4444-555555555555", "velero-data-abcde"),
            "dd6ca9ebc0c73c744c9951e002b9abdf0824a447a64a51cd4afecd9d3ab0b522"
        );
    }
}
