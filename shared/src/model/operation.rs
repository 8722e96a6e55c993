//! Asynchronous item operations: their identity and their progress.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prost_types::Timestamp;

use crate::generated::generated as wire;

/// Go's zero time, 0001-01-01T00:00:00Z, in seconds since 1970: what Velero treats as "not known". An absent
/// timestamp would read as 1970, which Velero takes for a real start.
const GO_ZERO_TIME: i64 = -62_135_596_800;

/// The id of an operation was empty: for Velero that means that there is no operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an operation needs an id that is not empty: Velero takes an empty one for no operation")]
pub struct OperationIdError;

/// Names an asynchronous operation towards the plugin that started it.
///
/// Velero stores the id in the backup and hands it to Progress and Cancel in a *new* process of the plugin, so it must
/// say all that is needed to find the operation again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OperationId(String);

impl OperationId {
    /// An id from its text.
    ///
    /// # Errors
    ///
    /// When the text is empty.
    pub fn new(id: impl Into<String>) -> Result<Self, OperationIdError> {
        let id = id.into();
        if id.is_empty() { Err(OperationIdError) } else { Ok(Self(id)) }
    }

    /// The id's text, never empty.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Running,
    Completed,
    Failed(String),
}

/// How far an operation is.
///
/// Any *error* from Progress ends the operation for good, so trouble that may pass is told as
/// [`running`](Progress::running) with a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    state: State,
    done: u64,
    total: u64,
    units: String,
    description: String,
    started: Option<SystemTime>,
    updated: Option<SystemTime>,
}

impl Progress {
    /// The operation goes on; Velero asks again in ten seconds.
    pub fn running() -> Self {
        Self::new(State::Running)
    }

    /// The operation ended well.
    pub fn completed() -> Self {
        Self::new(State::Completed)
    }

    /// The operation ended badly. `reason` is all that the user gets to see: after the first poll it stands in no
    /// log, only in the operation's status.
    pub fn failed(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        // Velero takes a completed operation with an empty error for a success.
        let reason =
            if reason.is_empty() { "the operation failed without a reason".to_owned() } else { reason };
        Self::new(State::Failed(reason))
    }

    fn new(state: State) -> Self {
        Self {
            state,
            done: 0,
            total: 0,
            units: String::new(),
            description: String::new(),
            started: None,
            updated: None,
        }
    }

    /// `done` of `total` `units`. `velero backup describe` shows no progress while the total is 0. Velero's own data
    /// mover says "Bytes".
    #[must_use]
    pub fn amount(mut self, done: u64, total: u64, units: impl Into<String>) -> Self {
        (self.done, self.total, self.units) = (done, total, units.into());
        self
    }

    /// What is going on, for `velero backup describe --details`.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// When the operation began. Velero leaves the phase New while this is unknown, and rewrites its operations file
    /// whenever it changes: give the same time in every poll.
    #[must_use]
    pub fn started(mut self, started: SystemTime) -> Self {
        self.started = Some(started);
        self
    }

    /// When the progress was last seen to change; at the end Velero takes it for the completion time.
    #[must_use]
    pub fn updated(mut self, updated: SystemTime) -> Self {
        self.updated = Some(updated);
        self
    }

    /// Whether Velero will ask again.
    pub fn is_running(&self) -> bool {
        self.state == State::Running
    }

    /// Why the operation failed, if it did.
    pub fn failure(&self) -> Option<&str> {
        match &self.state {
            State::Failed(reason) => Some(reason),
            State::Running | State::Completed => None,
        }
    }

    pub(crate) fn into_wire(self) -> wire::OperationProgress {
        let (completed, err) = match self.state {
            State::Running => (false, String::new()),
            State::Completed => (true, String::new()),
            State::Failed(reason) => (true, reason),
        };
        wire::OperationProgress {
            completed,
            err,
            n_completed: i64::try_from(self.done).unwrap_or(i64::MAX),
            n_total: i64::try_from(self.total).unwrap_or(i64::MAX),
            operation_units: self.units,
            description: self.description,
            started: Some(timestamp(self.started)),
            updated: Some(timestamp(self.updated)),
        }
    }
}

fn timestamp(time: Option<SystemTime>) -> Timestamp {
    let Some(time) = time else { return Timestamp { seconds: GO_ZERO_TIME, nanos: 0 } };
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => {
            let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
            Timestamp { seconds, nanos: since.subsec_nanos().cast_signed() }
        }
        Err(before) => {
            // A timestamp's nanoseconds count forward from its second.
            let before = before.duration();
            let up = before + Duration::from_nanos(999_999_999);
            let seconds = i64::try_from(up.as_secs()).map_or(i64::MIN, |seconds| -seconds);
            let nanos = (1_000_000_000 - before.subsec_nanos()) % 1_000_000_000;
            Timestamp { seconds, nanos: nanos.cast_signed() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_time_goes_out_as_gos_zero_time() {
        let wire = Progress::running().into_wire();
        for time in [wire.started, wire.updated] {
            assert_eq!(time, Some(Timestamp { seconds: -62_135_596_800, nanos: 0 }));
        }
    }

    #[test]
    fn times_before_1970_count_forward_from_their_second() {
        let time = UNIX_EPOCH - Duration::from_millis(1_500);
        assert_eq!(timestamp(Some(time)), Timestamp { seconds: -2, nanos: 500_000_000 });
        let time = UNIX_EPOCH - Duration::from_secs(3);
        assert_eq!(timestamp(Some(time)), Timestamp { seconds: -3, nanos: 0 });
        let time = UNIX_EPOCH + Duration::from_millis(1_500);
        assert_eq!(timestamp(Some(time)), Timestamp { seconds: 1, nanos: 500_000_000 });
    }

    #[test]
    fn a_failure_without_a_reason_does_not_read_as_success() {
        let wire = Progress::failed("").into_wire();
        assert!(wire.completed && !wire.err.is_empty());
    }

    #[test]
    fn amounts_beyond_64_bits_do_not_wrap() {
        let wire = Progress::running().amount(u64::MAX, 5, "Bytes").into_wire();
        assert_eq!((wire.n_completed, wire.n_total), (i64::MAX, 5));
    }

    #[test]
    fn an_empty_id_is_no_operation() {
        assert_eq!(OperationId::new(""), Err(OperationIdError));
        assert_eq!(OperationId::new("a/b").unwrap().as_str(), "a/b");
    }
}
