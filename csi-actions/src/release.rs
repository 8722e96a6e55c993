//! What each release of the server needs of the actions.
//!
//! | | up to 1.15 | 1.16 to 1.18.0 | from 1.18.1 |
//! |---|---|---|---|
//! | Velero names a restored snapshot by the restore | no | yes | yes |
//! | looks for a restored content by the name in the archive | yes | no | no |
//! | action of a volume policy that leaves a volume to us | `skip` | `skip` | `custom`, `skip` |

/// A span of releases that behave alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// 1.15 and older.
    UpTo1_15,
    /// 1.16.0 to 1.18.0.
    From1_16,
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
        } else if version < (1, 18, 1) {
            Self::From1_16
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

    /// The releases in words.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::UpTo1_15 => "1.15 or older",
            Self::From1_16 => "1.16 to 1.18.0",
            Self::From1_18_1 => "1.18.1 or newer",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_fall_into_spans_and_other_words_into_none() {
        use Release::{From1_16, From1_18_1, UpTo1_15};
        let table = [
            ("v1.14.0", Some(UpTo1_15)),
            ("v1.15.2", Some(UpTo1_15)),
            ("1.15", Some(UpTo1_15)),
            ("0.11.0", Some(UpTo1_15)),
            ("v1.16.0", Some(From1_16)),
            ("v1.16.0-rc.1", Some(From1_16)),
            ("v1.17.1\n", Some(From1_16)),
            ("v1.18.0", Some(From1_16)),
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
    fn only_the_oldest_look_for_the_archived_name_and_keep_it() {
        for (release, archived_name, by_restore) in [
            (Release::UpTo1_15, true, false),
            (Release::From1_16, false, true),
            (Release::From1_18_1, false, true),
        ] {
            assert_eq!(
                (release.looks_for_archived_name(), release.names_by_restore()),
                (archived_name, by_restore)
            );
        }
    }
}
