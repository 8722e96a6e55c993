//! The ways to misbehave.

/// One breach of the protocol; everything else is done right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// One kind and name is listed twice.
    DuplicateName,
    /// A kind that no server knows is listed.
    UnknownKind,
    /// A name without a slash is listed.
    BadName,
    /// The process ends in the middle of Execute.
    DiesInExecute,
    /// The process ends in the middle of Progress.
    DiesInProgress,
    /// Progress answers with an error.
    ProgressError,
    /// The process ends in the middle of a deletion's Execute.
    DiesInDelete,
    /// The process ends before it says where it listens.
    NoHandshake,
}

impl Behaviour {
    const ALL: [(&str, Self); 8] = [
        ("duplicate-name", Self::DuplicateName),
        ("unknown-kind", Self::UnknownKind),
        ("bad-name", Self::BadName),
        ("dies-in-execute", Self::DiesInExecute),
        ("dies-in-progress", Self::DiesInProgress),
        ("progress-error", Self::ProgressError),
        ("dies-in-delete", Self::DiesInDelete),
        ("no-handshake", Self::NoHandshake),
    ];

    /// The behaviour of a file name. Velero gives plugins no arguments of their own, so the name has to tell.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, behaviour)| *behaviour)
    }

    /// Kind and name of what is listed.
    pub(crate) fn plugins(self) -> Vec<(&'static str, &'static str)> {
        const ACTION: &str = "BackupItemActionV2";
        match self {
            Self::DuplicateName => {
                vec![(ACTION, "misbehave.velero-rs.io/twice"), (ACTION, "misbehave.velero-rs.io/twice")]
            }
            Self::UnknownKind => vec![("BackupItemActionV9", "misbehave.velero-rs.io/unknown-kind")],
            Self::BadName => vec![(ACTION, "no-slash")],
            Self::DiesInDelete => vec![("DeleteItemAction", "misbehave.velero-rs.io/delete")],
            Self::DiesInExecute | Self::DiesInProgress | Self::ProgressError | Self::NoHandshake => {
                vec![(ACTION, "misbehave.velero-rs.io/backup")]
            }
        }
    }
}
