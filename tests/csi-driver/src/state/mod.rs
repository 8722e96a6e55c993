//! What the driver knows, and the rules of the CSI specification about it: no I/O, no clock, no random numbers.
//!
//! A transition takes `&mut State`, answers with what the call returns and the [`Work`] to do on disk, and
//! leaves the state alone when it refuses. Whoever applies the work keeps the old state until it is done.

mod alias;
mod capability;
mod capacity;
mod group;
mod page;
mod refusal;
mod snapshot;
#[cfg(test)]
mod testing;
mod volume;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::alias::{Aliases, object_key};
pub use self::capability::check_capabilities;
pub use self::capacity::CapacityRange;
pub use self::group::{Group, NewGroup};
pub use self::page::{Page, PageRequest};
pub use self::refusal::{Kind, Refusal};
pub use self::snapshot::{NewSnapshot, Readiness, Shape, Snapshot, SnapshotFilter};
pub use self::volume::{NewVolume, Source, Volume};

/// Parameters of a class, as they came in the request that created the object.
pub type Parameters = BTreeMap<String, String>;

/// Everything that survives a restart of the driver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Volumes by id.
    pub volumes: BTreeMap<String, Volume>,
    /// Snapshots by id, those of groups too.
    pub snapshots: BTreeMap<String, Snapshot>,
    /// Groups of snapshots by id.
    pub groups: BTreeMap<String, Group>,
    /// How often something was really created or deleted; a repeated request does not count.
    pub counters: Counters,
}

/// How many objects came into being and went away since the state directory was made or the counters were reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each name says it")]
pub struct Counters {
    pub volumes_created: u64,
    pub volumes_deleted: u64,
    /// Members of groups included.
    pub snapshots_created: u64,
    /// Members of groups included.
    pub snapshots_deleted: u64,
    pub groups_created: u64,
    pub groups_deleted: u64,
}

/// What a transition needs from the world.
#[derive(Debug, Clone)]
pub struct Context {
    /// The time of the call.
    pub now: Timestamp,
    /// A string that no other call gets; ids are made of it. Later calls get greater strings, so that lists
    /// are in the order of creation.
    pub unique: String,
    /// The size of the storage in bytes; the capacities of the volumes are taken from it.
    pub pool_bytes: i64,
}

/// A directory of the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The content of the volume with this id.
    Volume(String),
    /// The content of the snapshot with this id.
    Snapshot(String),
}

/// What is to be done on disk before a transition counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// Make an empty directory.
    Make(Place),
    /// Make a directory with the content of another.
    Copy {
        /// Where the content is.
        from: Place,
        /// The directory to make.
        to: Place,
    },
    /// Remove a directory with its content.
    Remove(Place),
    /// Make a volume visible at a path of this node.
    Mount {
        /// The volume's id.
        volume: String,
        /// An absolute path; its parent exists.
        target: String,
        /// Whether writing there is forbidden.
        read_only: bool,
    },
    /// Undo [`Work::Mount`] and remove the mount point.
    Unmount {
        /// The volume's id.
        volume: String,
        /// The path.
        target: String,
    },
}

/// The outcome of a transition that was not refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change<T> {
    /// What the call answers.
    pub reply: T,
    /// What is to be done on disk; empty when the request repeats an earlier one.
    pub work: Vec<Work>,
}

impl<T> Change<T> {
    /// An answer that changes nothing.
    fn none(reply: T) -> Self {
        Self { reply, work: Vec::new() }
    }
}
