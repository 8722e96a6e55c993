//! How far a snapshot is, from what its objects say: the table behind Progress.
//!
//! A pure function of the objects and the clock, since each poll comes from a new process that remembers nothing.

use std::time::{Duration, SystemTime};

use serde_json::Value;
use velero_plugin::Progress;

use crate::driver_error::{Class, classify, shortened};
use crate::keys;
use crate::object::{Content, DriverError, Snapshot, annotation, name};

/// How long an error that will stay is watched before it counts: the first report may be of a cache that lags.
const GRACE: Duration = Duration::from_secs(10);
/// For how long a content that can't be found may just not be seen yet: two polls.
const UNSEEN: Duration = Duration::from_secs(20);
/// Velero's own default of `csiSnapshotTimeout`.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);

/// The times that the decision depends on.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// When the operation began.
    pub started: SystemTime,
    /// The present.
    pub now: SystemTime,
    /// For how long an error that may pass is ridden out: `csiSnapshotTimeout`.
    pub patience: Duration,
}

impl Clock {
    /// The age of the operation; zero where the clocks disagree.
    pub fn age(self) -> Duration {
        self.now.duration_since(self.started).unwrap_or_default()
    }
}

/// What could be seen of the snapshot.
#[derive(Debug, Clone, Copy)]
pub enum Sight<'a> {
    /// The API server could not be asked; the text says why.
    Trouble(&'a str),
    /// There is no such object; the text names it.
    Gone(&'a str),
    /// The content, and the snapshot if it is there.
    Seen(&'a Value, Option<&'a Value>),
}

/// The answer to a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The verdict.
    pub verdict: Verdict,
    /// The size of the snapshot in bytes as far as it is known, 0 where it is not.
    pub total: u64,
    /// What a user reads in `velero backup describe --details`.
    pub description: String,
    /// When something was last seen to change.
    pub updated: SystemTime,
}

/// Whether the snapshot is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Ask again.
    Running,
    /// It can be restored from.
    Ready,
    /// It won't become ready; the text says why.
    Failed(String),
}

impl State {
    /// Decides by what was seen.
    pub fn of(sight: Sight<'_>, clock: Clock) -> Self {
        match sight {
            Sight::Trouble(trouble) => Self::running(clock, format!("can't ask the API server: {trouble}")),
            Sight::Gone(object) if clock.age() < UNSEEN => {
                Self::running(clock, format!("{object} can't be seen yet"))
            }
            Sight::Gone(object) => {
                let reason = format!(
                    "{object} disappeared {} after the snapshot was taken, before it was ready: \
                     something else deleted it",
                    rounded(clock.age())
                );
                Self {
                    verdict: Verdict::Failed(reason),
                    ..Self::running(clock, "failed: the snapshot disappeared")
                }
            }
            Sight::Seen(content, snapshot) => Self::of_objects(content, snapshot, clock),
        }
    }

    fn of_objects(content_object: &Value, snapshot: Option<&Value>, clock: Clock) -> Self {
        let content = Content(content_object);
        let total = content.restore_size().or_else(|| capacity(content_object)).unwrap_or_default();
        let handle = content
            .handle()
            .map_or_else(|| "no handle yet".to_owned(), |handle| format!("snapshot {handle}"));
        let driver = content.driver();
        if content.is_ready() {
            let description = format!("{driver}: {handle} is ready");
            return Self { verdict: Verdict::Ready, total, description, updated: clock.now };
        }
        let error = content.error().or_else(|| snapshot.and_then(|snapshot| Snapshot(snapshot).error()));
        let Some(error) = error else {
            let description = format!("{driver}: {handle}, not ready{}", waiting(clock.age()));
            return Self { total, ..Self::running(clock, description) };
        };
        let updated = error.since.unwrap_or(clock.started).max(clock.started);
        let message = shortened(&error.message);
        let object = subject(content_object);
        if let Some(after) = gives_up_after(&error, clock) {
            let what = content.handle().map_or_else(String::new, |handle| format!(" {handle}"));
            let reason = format!(
                "{object}: driver {driver} could not finish snapshot{what} {after}: {}",
                error.message
            );
            let description = format!("{driver}: {handle} failed: {message}");
            return Self { verdict: Verdict::Failed(reason), total, description, updated };
        }
        let description = format!("{driver}: {handle}, not ready{} ({message})", waiting(clock.age()));
        Self { total, updated, ..Self::running(clock, description) }
    }

    fn running(clock: Clock, description: impl Into<String>) -> Self {
        Self { verdict: Verdict::Running, total: 0, description: description.into(), updated: clock.started }
    }

    /// As Velero is told. CSI knows no partial progress, so it is nothing or all of the bytes.
    pub fn into_progress(self, started: SystemTime) -> Progress {
        let done = if self.verdict == Verdict::Ready { self.total } else { 0 };
        let progress = match self.verdict {
            Verdict::Running => Progress::running(),
            Verdict::Ready => Progress::completed(),
            Verdict::Failed(reason) => Progress::failed(reason),
        };
        progress
            .amount(done, self.total, "Bytes")
            .description(self.description)
            .started(started)
            .updated(self.updated)
    }
}

/// Why an error counts now, if it does.
fn gives_up_after(error: &DriverError, clock: Clock) -> Option<String> {
    let age = clock.age();
    if age >= clock.patience {
        return Some(format!("within {} (csiSnapshotTimeout)", rounded(clock.patience)));
    }
    if classify(&error.message) == Class::Passing {
        return None;
    }
    // The sidecar keeps the time while the words stay the same, so it tells how long they have been there. An error
    // that is older than the operation counts from the operation on.
    let since = error.since.unwrap_or(clock.started).max(clock.started);
    let stood = clock.now.duration_since(since).unwrap_or_default();
    (stood >= GRACE).then(|| format!("and has said so for {}", rounded(stood)))
}

/// The capacity of the volume, which the backup wrote on the objects.
fn capacity(object: &Value) -> Option<u64> {
    annotation(object, keys::CAPACITY)?.parse().ok()
}

fn subject(content: &Value) -> String {
    match Content(content).snapshot() {
        Some((namespace, snapshot)) => {
            format!("VolumeSnapshot {namespace}/{snapshot} (content {})", name(content))
        }
        None => format!("VolumeSnapshotContent {}", name(content)),
    }
}

/// In whole minutes, so that the text, and with it Velero's file of operations, changes once a minute and not each poll.
fn waiting(age: Duration) -> String {
    match age.as_secs() / 60 {
        0 => String::new(),
        minutes => format!(" for {minutes} min"),
    }
}

/// A length of time as a user would say it.
pub fn rounded(length: Duration) -> String {
    match length.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "a value written at the call reads best")]

    use super::*;
    use serde_json::json;
    use std::time::UNIX_EPOCH;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_767_225_600 + seconds)
    }

    /// Seconds after the start, with ten minutes of patience.
    fn clock(age: u64) -> Clock {
        Clock { started: at(0), now: at(age), patience: DEFAULT_TIMEOUT }
    }

    fn content(status: Value) -> Value {
        json!({"metadata": {"name": "c", "annotations": {"csi-actions.velero-rs.io/capacity-bytes": "1024"}},
            "spec": {"driver": "d.csi", "volumeSnapshotRef": {"namespace": "a", "name": "s"}}, "status": status})
    }

    fn seen(status: Value, age: u64) -> State {
        State::of(Sight::Seen(&content(status), None), clock(age))
    }

    fn error_at(message: &str, seconds: u64) -> Value {
        json!({"readyToUse": false, "snapshotHandle": "snap-1",
            "error": {"message": message, "time": crate::operation::rfc3339(at(seconds))}})
    }

    const RATE: &str = "rpc error: code = Internal desc = api error SnapshotCreationPerVolumeRateExceeded";
    const LIMIT: &str = "rpc error: code = FailedPrecondition desc = reaches the configured maximum (3)";

    #[test]
    fn a_ready_content_completes_at_any_age_whatever_the_snapshot_says() {
        let status = json!({"readyToUse": true, "restoreSize": 4096, "snapshotHandle": "snap-1"});
        let state = seen(status.clone(), 100_000);
        assert_eq!((state.verdict, state.total, state.updated), (Verdict::Ready, 4096, at(100_000)));
        let failing = json!({"status": {"error": {"message": LIMIT}}});
        let state = State::of(Sight::Seen(&content(status), Some(&failing)), clock(900));
        assert_eq!(state.verdict, Verdict::Ready);
    }

    #[test]
    fn a_content_without_error_runs_for_hours() {
        for status in
            [json!(null), json!({}), json!({"readyToUse": false}), json!({"snapshotHandle": "snap-1"})]
        {
            assert_eq!(seen(status, 3 * 3600).verdict, Verdict::Running);
        }
    }

    #[test]
    fn the_total_is_the_capacity_until_the_driver_tells_the_size() {
        assert_eq!(seen(json!(null), 0).total, 1024);
        assert_eq!(seen(json!({"restoreSize": 0}), 0).total, 1024);
        assert_eq!(seen(json!({"restoreSize": 2048}), 0).total, 2048);
        assert_eq!(seen(json!({"readyToUse": true}), 0).total, 1024);
    }

    #[test]
    fn i16_a_retryable_driver_error_keeps_the_operation_running_and_is_told() {
        let state = seen(error_at(RATE, 5), 7);
        assert_eq!(state.verdict, Verdict::Running);
        assert!(state.description.contains("SnapshotCreationPerVolumeRateExceeded"), "{}", state.description);
        assert_eq!(seen(json!({"readyToUse": true, "error": null}), 40).verdict, Verdict::Ready);
    }

    #[test]
    fn a_retryable_driver_error_fails_the_operation_after_the_snapshot_timeout() {
        assert_eq!(seen(error_at(RATE, 5), 599).verdict, Verdict::Running);
        let Verdict::Failed(reason) = seen(error_at(RATE, 5), 600).verdict else { panic!("still running") };
        for part in ["a/s", "content c", "d.csi", "snap-1", "10 min", "RateExceeded"] {
            assert!(reason.contains(part), "{part} in {reason}");
        }
    }

    #[test]
    fn i17_a_permanent_driver_error_fails_the_operation_after_a_grace() {
        assert_eq!(seen(error_at(LIMIT, 5), 14).verdict, Verdict::Running);
        let state = seen(error_at(LIMIT, 5), 15);
        assert!(
            matches!(&state.verdict, Verdict::Failed(reason) if reason.contains("maximum (3)")),
            "{state:?}"
        );
        assert_eq!(state.updated, at(5));
    }

    #[test]
    fn i17_an_error_on_the_snapshot_alone_counts_as_well() {
        let snapshot = json!({"status": {"error": {"message": RATE, "time": "2026-01-01T00:00:05Z"}}});
        let state = |age| State::of(Sight::Seen(&content(json!({})), Some(&snapshot)), clock(age)).verdict;
        assert_eq!(state(300), Verdict::Running);
        assert!(matches!(state(600), Verdict::Failed(_)));
    }

    #[test]
    fn an_error_without_a_time_counts_from_the_start() {
        let status = |message| json!({"error": {"message": message}});
        assert_eq!(seen(status(LIMIT), 9).verdict, Verdict::Running);
        assert!(matches!(seen(status(LIMIT), 10).verdict, Verdict::Failed(_)));
    }

    #[test]
    fn i26_an_error_without_words_is_no_success() {
        let status = json!({"readyToUse": false, "error": {"time": "2026-01-01T00:00:00Z"}});
        assert_eq!(seen(status.clone(), 60).verdict, Verdict::Running);
        let Verdict::Failed(reason) = seen(status, 700).verdict else { panic!("still running") };
        assert!(reason.contains("unspecified driver error"), "{reason}");
    }

    #[test]
    fn i27_api_trouble_is_told_and_never_ends_an_operation() {
        for age in [0, 100, 100_000] {
            let state = State::of(Sight::Trouble("503 etcd leader changed"), clock(age));
            assert_eq!(state.verdict, Verdict::Running);
            assert!(state.description.contains("etcd leader changed"));
        }
    }

    #[test]
    fn a_content_that_disappeared_fails_after_two_polls() {
        assert_eq!(State::of(Sight::Gone("c"), clock(19)).verdict, Verdict::Running);
        let state = State::of(Sight::Gone("c"), clock(20));
        assert!(
            matches!(&state.verdict, Verdict::Failed(reason) if reason.contains("disappeared")),
            "{state:?}"
        );
    }

    #[test]
    fn the_description_is_always_set_and_changes_once_a_minute_only() {
        for status in [json!(null), json!({"readyToUse": true}), error_at(RATE, 0), error_at(LIMIT, 0)] {
            assert!(!seen(status, 30).description.is_empty());
        }
        assert_eq!(seen(json!({}), 10), seen(json!({}), 20));
        assert_eq!(seen(json!({}), 61), seen(json!({}), 119));
    }

    #[test]
    fn a_clock_that_runs_behind_is_an_age_of_zero() {
        let early = Clock { started: at(100), now: at(0), patience: DEFAULT_TIMEOUT };
        let object = content(error_at(LIMIT, 100));
        assert_eq!(State::of(Sight::Seen(&object, None), early).verdict, Verdict::Running);
    }
}
