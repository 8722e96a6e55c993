//! Label values as Velero makes them from names that may be too long.

use sha2::{Digest as _, Sha256};

/// The longest label value that Kubernetes takes.
const LONGEST: usize = 63;
/// The hexadecimal digits that stand for the cut part.
const DIGITS: usize = 6;

/// `name` as a label value: unchanged up to 63 bytes, else its first 57 bytes and 6 digits of its SHA-256.
///
/// Velero labels and finds objects by this form of a backup's name, so a plugin that compares the raw name misses long ones.
pub fn valid_value(name: &str) -> String {
    use std::fmt::Write as _;

    if name.len() <= LONGEST {
        return name.to_owned();
    }
    // Names of Kubernetes objects are ASCII; of another text the cut leaves whole characters.
    let mut value = name[..name.floor_char_boundary(LONGEST - DIGITS)].to_owned();
    for byte in &Sha256::digest(name.as_bytes())[..DIGITS / 2] {
        let _ = write!(value, "{byte:02x}");
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_end_in_a_hash_and_short_ones_stay() {
        let long = "nightly-all-namespaces-production-cluster-eu-central-1-20260101010203";
        assert_eq!(valid_value(long), "nightly-all-namespaces-production-cluster-eu-central-1-20f4862a");
        let short = "a".repeat(63);
        assert_eq!(valid_value(&short), short);
        assert_eq!(valid_value(&"a".repeat(64)).len(), 63);
    }
}
