//! What each release of the server needs of the actions.
//!
//! | | up to 1.15 | 1.16 | 1.17 to 1.18.0 | from 1.18.1 |
//! |---|---|---|---|---|
//! | Velero names a restored snapshot by the restore | no | yes | yes | yes |
//! | looks for a restored content by the name in the archive | yes | no | no | no |
//! | names a label that makes groups of claims | no | no | yes | yes |
//! | action of a volume policy that leaves a volume to us | `skip` | `skip` | `skip` | `custom`, `skip` |

/// A span of releases that behave alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// 1.15 and older.
    UpTo1_15,
    /// 1.16.
    From1_16,
    /// 1.17.0 to 1.18.0.
    From1_17,
    /// 1.18.1 and newer.
    From1_18_1,
}

impl Release {
    /// Of a version as the server prints it, such as `v1.16.2` or `1.18`; `None` where it is not of that form. A minor
    /// alone stands for its newest patch.
    pub fn of_version(version: &str) -> Option<Self> {
        let version = version.trim();
        let version = version.strip_prefix('v').unwrap_or(version);
        let mut parts = version.split(['.', '-', '+']);
        let major: u32 = parts.next()?.parse().ok()?;
        let minor: u32 = parts.next()?.parse().ok()?;
        let patch: u32 = match parts.next() {
            None => u32::MAX,
            Some(patch) => patch.parse().ok()?,
        };
        let version = (major, minor, patch);
        Some(if version < (1, 16, 0) {
            Self::UpTo1_15
        } else if version < (1, 17, 0) {
            Self::From1_16
        } else if version < (1, 18, 1) {
            Self::From1_17
        } else {
            Self::From1_18_1
        })
    }

    /// Whether the server asks for an existing content by its name in the archive, although it will be created under
    /// another: then it doesn't create one whose original still lives, and we have to.
    pub fn looks_for_archived_name(self) -> bool {
        self == Self::UpTo1_15
    }

    /// Whether Velero's own restore actions, where they are on, give a snapshot the name that ours give it: only then can
    /// ours add to what those do.
    pub fn names_by_restore(self) -> bool {
        self >= Self::From1_16
    }

    /// Whether the server names a label in its backups whose values make groups of claims.
    pub fn knows_groups(self) -> bool {
        self >= Self::From1_17
    }

    /// The releases in words.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::UpTo1_15 => "1.15 or older",
            Self::From1_16 => "1.16",
            Self::From1_17 => "1.17 to 1.18.0",
            Self::From1_18_1 => "1.18.1 or newer",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_fall_into_spans_and_other_words_into_none() {
        use Release::{From1_16, From1_17, From1_18_1, UpTo1_15};
        let table = [
            ("v1.14.0", Some(UpTo1_15)),
            ("v1.15.2", Some(UpTo1_15)),
            ("1.15", Some(UpTo1_15)),
            ("0.11.0", Some(UpTo1_15)),
            ("v1.16.0", Some(From1_16)),
            ("v1.16.0-rc.1", Some(From1_16)),
            ("v1.17.1\n", Some(From1_17)),
            ("v1.18.0", Some(From1_17)),
            ("1.18", Some(From1_18_1)),
            ("v1.18.1", Some(From1_18_1)),
            ("v1.18.3-OADP+x", Some(From1_18_1)),
            ("v2.0.0", Some(From1_18_1)),
            ("main", None),
            ("", None),
            ("v1", None),
            ("v1.x.2", None),
        ];
        for (version, release) in table {
            assert_eq!(Release::of_version(version), release, "{version:?}");
        }
    }

    #[test]
    fn each_span_behaves_as_the_table_says() {
        for (release, archived_name, by_restore, groups) in [
            (Release::UpTo1_15, true, false, false),
            (Release::From1_16, false, true, false),
            (Release::From1_17, false, true, true),
            (Release::From1_18_1, false, true, true),
        ] {
            let found =
                (release.looks_for_archived_name(), release.names_by_restore(), release.knows_groups());
            assert_eq!(found, (archived_name, by_restore, groups), "{release:?}");
        }
    }
}
