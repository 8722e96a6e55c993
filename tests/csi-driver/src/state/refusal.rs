//! Why a request is refused, and with which gRPC code.

use tonic::Code;

/// What an id or a name belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each name says it")]
pub enum Kind {
    Volume,
    Snapshot,
    Group,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Volume => "volume",
            Self::Snapshot => "snapshot",
            Self::Group => "group snapshot",
        })
    }
}

/// A request that the driver does not grant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A required field is absent.
    #[error("{field} is missing in the request")]
    Missing {
        /// The field's name in the protocol.
        field: &'static str,
    },
    /// A field has a value that can't be served.
    #[error("{field} is invalid: {reason}")]
    Invalid {
        /// The field's name in the protocol.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The object that the request is about, or is to be made from, does not exist.
    #[error("{kind} {id} does not exist")]
    NotFound {
        /// What was looked for.
        kind: Kind,
        /// The id that was asked for.
        id: String,
    },
    /// An object with this name exists and is not what the request asks for.
    #[error("{kind} {name} already exists with another {difference}")]
    Exists {
        /// What exists.
        kind: Kind,
        /// The name in the request.
        name: String,
        /// What differs.
        difference: &'static str,
    },
    /// The capacity asked for can't be had.
    #[error("capacity of {name} is out of range: {reason}")]
    OutOfRange {
        /// The volume's name or id.
        name: String,
        /// Which bound is violated, with the numbers.
        reason: String,
    },
    /// The storage is full.
    #[error("storage has {available} bytes left and {needed} are needed, delete volumes first")]
    Exhausted {
        /// Bytes left.
        available: i64,
        /// Bytes asked for.
        needed: i64,
    },
    /// The volume is mounted.
    #[error("volume {id} is in use at {target}, unpublish it first")]
    InUse {
        /// The volume.
        id: String,
        /// A path where it is published.
        target: String,
    },
    /// The snapshot is cut but can't be read yet.
    #[error("snapshot {id} is not ready to use yet, try again later")]
    NotReady {
        /// The snapshot.
        id: String,
    },
    /// A member of a group goes with its group only.
    #[error("snapshot {id} belongs to group snapshot {group}, delete the group instead")]
    GroupMember {
        /// The snapshot.
        id: String,
        /// Its group.
        group: String,
    },
    /// The members that the caller names are not those of the group.
    #[error("group snapshot {id} does not consist of the given snapshot_ids")]
    MemberMismatch {
        /// The group.
        id: String,
    },
    /// A list can't be continued from this token.
    #[error("starting_token {token:?} was not given out by this driver, start the list again")]
    Token {
        /// The token in the request.
        token: String,
    },
}

impl Refusal {
    /// The code that the CSI specification demands.
    pub fn code(&self) -> Code {
        match self {
            Self::Missing { .. }
            | Self::Invalid { .. }
            | Self::GroupMember { .. }
            | Self::MemberMismatch { .. } => Code::InvalidArgument,
            Self::NotFound { .. } => Code::NotFound,
            Self::Exists { .. } => Code::AlreadyExists,
            Self::OutOfRange { .. } => Code::OutOfRange,
            Self::Exhausted { .. } => Code::ResourceExhausted,
            Self::InUse { .. } => Code::FailedPrecondition,
            Self::NotReady { .. } => Code::Unavailable,
            Self::Token { .. } => Code::Aborted,
        }
    }
}

/// The longest name and id of the protocol, in bytes.
const NAME_LIMIT: usize = 128;

/// Checks a required path; paths may be longer than names.
pub(super) fn required_path(field: &'static str, value: &str) -> Result<(), Refusal> {
    if value.is_empty() { Err(Refusal::Missing { field }) } else { Ok(()) }
}

/// Checks a required name or id.
pub(super) fn required(field: &'static str, value: &str) -> Result<(), Refusal> {
    if value.is_empty() {
        return Err(Refusal::Missing { field });
    }
    if value.len() > NAME_LIMIT {
        let reason = format!("{} bytes are more than {NAME_LIMIT}", value.len());
        return Err(Refusal::Invalid { field, reason });
    }
    if value.chars().any(|c| c.is_control() && !matches!(c, '\t' | '\n' | '\r')) {
        return Err(Refusal::Invalid { field, reason: "it holds a control character".to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    #[test]
    fn names_are_present_printable_and_short() {
        for (name, expected) in [
            ("a", None),
            ("wörter mit\tabstand", None),
            (&*"x".repeat(128), None),
            ("", Some("name is missing in the request")),
            (&*"x".repeat(129), Some("name is invalid: 129 bytes are more than 128")),
            ("a\u{7}b", Some("name is invalid: it holds a control character")),
        ] {
            let refusal = super::required("name", name).err();
            assert_eq!(refusal.as_ref().map(ToString::to_string).as_deref(), expected, "{name:?}");
            assert!(refusal.is_none_or(|refusal| refusal.code() == Code::InvalidArgument));
        }
    }
}
