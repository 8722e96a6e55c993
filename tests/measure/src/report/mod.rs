//! What a run found out, for machines as JSON and for people as tables.

mod goals;
mod tables;

use serde::{Serialize, Serializer};

use crate::client::{Executed, Started};
use crate::machine::Machine;
use crate::size::Size;
use crate::subject::Role;
use crate::{round, start};

pub(crate) use tables::print;

/// A figure, or why there is none.
pub(crate) type Figure<T> = Result<T, Missing>;

/// The reason in a few words, as it stands in the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Missing {
    pub(crate) missing: String,
}

impl Missing {
    pub(crate) fn because(reason: impl Into<String>) -> Self {
        Self { missing: reason.into() }
    }
}

/// Everything.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    /// Starts of each program.
    pub(crate) starts: usize,
    /// Operations in the round of polls.
    pub(crate) operations: usize,
    /// Why Velero's own client measured nothing, where that is so.
    pub(crate) no_client: Option<String>,
    pub(crate) programs: Vec<Program>,
}

/// One program's figures.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Program {
    pub(crate) name: String,
    #[serde(skip)]
    pub(crate) role: Role,
    #[serde(serialize_with = "figure")]
    pub(crate) size: Figure<Size>,
    #[serde(serialize_with = "figure")]
    pub(crate) start: Figure<start::Figures>,
    #[serde(serialize_with = "figure")]
    pub(crate) client: Figure<Started>,
    #[serde(serialize_with = "figure")]
    pub(crate) execute: Figure<Vec<Executed>>,
    #[serde(serialize_with = "figure")]
    pub(crate) round: Figure<round::Figures>,
}

/// The figure itself, or an object that says what is missing.
fn figure<T: Serialize, S: Serializer>(figure: &Figure<T>, serializer: S) -> Result<S::Ok, S::Error> {
    match figure {
        Ok(value) => value.serialize(serializer),
        Err(missing) => missing.serialize(serializer),
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::procfs::Memory;
    use crate::statistics::Summary;

    /// A program with the given middle of its starts in microseconds, and its memory in kB.
    pub(crate) fn program(name: &str, role: Role, microseconds: u64, kilobytes: u64) -> Program {
        let nanoseconds = microseconds * 1000;
        let none = || Missing::because("—");
        Program {
            name: name.to_owned(),
            role,
            size: Ok(Size { file: 1_000_000, compressed: Some(400_000) }),
            start: Ok(start::Figures {
                handshake: Summary { min: nanoseconds, median: nanoseconds, p95: nanoseconds, samples: 3 },
                processor: None,
                idle: Memory { resident: kilobytes * 1000, anonymous: 0, threads: 1 },
            }),
            client: Err(none()),
            execute: Err(none()),
            round: Err(none()),
        }
    }

    #[test]
    fn what_is_missing_is_told_in_json_too() {
        let json = serde_json::to_value(program("p", Role::Given, 500, 900)).unwrap();
        assert_eq!(json["round"]["missing"], "—");
        assert_eq!(json["start"]["handshake"]["median"], 500_000);
        assert_eq!(json["size"]["file"], 1_000_000);
    }
}
