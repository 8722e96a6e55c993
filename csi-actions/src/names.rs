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

/// The name that the snapshot controller gives to the content of a snapshot.
pub fn content(snapshot_uid: &str) -> String {
    format!("snapcontent-{snapshot_uid}")
}

/// The name of the temporary content through which a snapshot in the storage is deleted.
pub fn temporary_content(driver: &str, handle: &str) -> String {
    format!("velero-del-{}", digest(&[driver, handle], 40))
}

/// The name of what is restored of the snapshot `archived`: of the snapshot and of its content alike. Velero's own
/// actions give the same one since 1.16.
pub fn restored(restore_uid: &str, archived: &str) -> String {
    digest(&[restore_uid, archived], 64)
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
    fn claims_of_one_name_in_two_namespaces_get_different_names() {
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
    fn a_deletion_that_is_repeated_meets_its_own_content() {
        let name = temporary_content("d.csi", "snap-1");
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
