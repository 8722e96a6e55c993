//! One round over the operations of a backup: who is asked, and what the answers mean.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::record::{Operation, OperationPhase};
use crate::client::Progress;

/// What an operation ends with when its time is over.
const TIMED_OUT: &str = "Asynchronous action timed out";

/// Asks the plugins.
#[async_trait]
pub trait ProgressSource: Send {
    /// Asks how far `operation` is; the error is the text that the user will see.
    async fn progress(&mut self, operation: &Operation) -> Result<Progress, String>;

    /// Gives `operation` up. What comes of it is of no interest.
    async fn cancel(&mut self, operation: &Operation);
}

/// What a round found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Operations go on.
    pub outstanding: bool,
    /// Something in the records is new.
    pub changed: bool,
    /// Operations that ended well, those of earlier rounds included.
    pub completed: usize,
    /// Operations that failed, those of earlier rounds included.
    pub failed: usize,
    /// Why operations failed in this round, with the plugin's name as the server's log has it.
    pub errors: Vec<String>,
}

/// Asks for each operation that has not ended, in order, and updates the records.
pub async fn poll(
    operations: &mut [Operation],
    timeout: Duration,
    now: impl Fn() -> Timestamp,
    source: &mut dyn ProgressSource,
) -> Outcome {
    let mut outcome = Outcome::default();
    for operation in operations {
        if !operation.status.phase.has_ended() {
            let before = operation.status.clone();
            let reply = source.progress(operation).await;
            if take(operation, reply, timeout, now()) == Verdict::TimedOut {
                source.cancel(operation).await;
            }
            outcome.changed |= operation.status != before;
            if operation.status.phase == OperationPhase::Failed {
                outcome.errors.push(told(&operation.status.error, &operation.spec.backup_item_action));
            }
        }
        match operation.status.phase {
            OperationPhase::Completed => outcome.completed += 1,
            OperationPhase::Failed => outcome.failed += 1,
            OperationPhase::New | OperationPhase::InProgress => outcome.outstanding = true,
        }
    }
    outcome
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Taken,
    TimedOut,
}

/// What a reply means for the record. Any error of the call is final.
fn take(
    operation: &mut Operation,
    reply: Result<Progress, String>,
    timeout: Duration,
    now: Timestamp,
) -> Verdict {
    let status = &mut operation.status;
    let progress = match reply {
        Ok(progress) => progress,
        Err(error) => {
            (status.phase, status.error) = (OperationPhase::Failed, error);
            return Verdict::Taken;
        }
    };
    (status.n_completed, status.n_total) = (progress.n_completed, progress.n_total);
    status.operation_units = progress.operation_units;
    status.description = progress.description;
    status.started = progress.started.or(status.started);
    status.updated = progress.updated.or(status.updated);
    if progress.completed {
        // An error counts only with completion; a completed operation without one ended well.
        status.phase =
            if progress.err.is_empty() { OperationPhase::Completed } else { OperationPhase::Failed };
        status.error = progress.err;
        return Verdict::Taken;
    }
    // A record without a time of creation would end the real server; here its time is over.
    let over = status.created.is_none_or(|created| created.moment() + timeout < now);
    if over {
        (status.phase, status.error) = (OperationPhase::Failed, TIMED_OUT.to_owned());
        return Verdict::TimedOut;
    }
    if status.phase == OperationPhase::New && status.started.is_some() {
        status.phase = OperationPhase::InProgress;
    }
    Verdict::Taken
}

/// An operation's error as it reaches the backup's log.
fn told(error: &str, plugin: &str) -> String {
    let comma = if error.is_empty() { "" } else { ", " };
    let plugin = if plugin.is_empty() { "unknown" } else { plugin };
    format!("{error}{comma}plugin: {plugin}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ResourceIdentifier;
    use crate::go::time::Time;
    use crate::operation::Spec;
    use crate::phase;
    use velero_plugin::BackupPhase;

    const HOUR: Duration = Duration::from_hours(1);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn operation(id: &str) -> Operation {
        let spec = Spec {
            backup_name: "backup-1".to_owned(),
            backup_uid: "uid".to_owned(),
            backup_item_action: "example.io/a".to_owned(),
            resource_identifier: ResourceIdentifier::default(),
            operation_id: id.to_owned(),
            post_operation_items: None,
        };
        Operation::new(spec, Time::of(at(0)))
    }

    /// Answers in order, and notes who was asked and given up.
    #[derive(Default)]
    struct Script {
        replies: Vec<Result<Progress, String>>,
        asked: Vec<String>,
        cancelled: Vec<String>,
    }

    #[async_trait]
    impl ProgressSource for Script {
        async fn progress(&mut self, operation: &Operation) -> Result<Progress, String> {
            self.asked.push(operation.spec.operation_id.clone());
            self.replies.remove(0)
        }

        async fn cancel(&mut self, operation: &Operation) {
            self.cancelled.push(operation.spec.operation_id.clone());
        }
    }

    fn completed(err: &str) -> Progress {
        Progress { completed: true, err: err.to_owned(), ..Progress::default() }
    }

    async fn round(
        operations: &mut [Operation],
        replies: Vec<Result<Progress, String>>,
        second: i64,
    ) -> (Outcome, Script) {
        let mut script = Script { replies, ..Script::default() };
        let outcome = poll(operations, HOUR, || at(second), &mut script).await;
        (outcome, script)
    }

    #[tokio::test]
    async fn the_phase_of_the_backup_after_a_round() {
        use BackupPhase::{
            Finalizing, FinalizingPartiallyFailed, WaitingForPluginOperations as Waiting,
            WaitingForPluginOperationsPartiallyFailed as WaitingPartially,
        };
        let running = Progress::default;
        let table = [
            (Waiting, completed(""), Finalizing),
            (Waiting, running(), Waiting),
            (Waiting, completed("failed"), FinalizingPartiallyFailed),
            (WaitingPartially, completed(""), FinalizingPartiallyFailed),
            (WaitingPartially, running(), WaitingPartially),
            (WaitingPartially, completed("failed"), FinalizingPartiallyFailed),
        ];
        for (before, reply, after) in table {
            let told = format!("{before:?} {reply:?}");
            let (outcome, _) = round(&mut [operation("1")], vec![Ok(reply)], 10).await;
            assert_eq!(phase::after_poll(before, outcome.outstanding, outcome.errors.len()), after, "{told}");
        }
    }

    #[tokio::test]
    async fn an_error_of_the_call_is_final_and_is_not_asked_about_again() {
        let mut operations = [operation("1"), operation("2")];
        let replies = vec![Err("rpc error: code = Unavailable desc = x".to_owned()), Ok(Progress::default())];
        let (outcome, _) = round(&mut operations, replies, 1).await;
        assert_eq!(outcome.errors, ["rpc error: code = Unavailable desc = x, plugin: example.io/a"]);
        assert!(outcome.outstanding);
        let (outcome, script) = round(&mut operations, vec![Ok(completed(""))], 2).await;
        assert_eq!(script.asked, ["2"]);
        assert_eq!((outcome.completed, outcome.failed, outcome.errors.len()), (1, 1, 0));
    }

    #[tokio::test]
    async fn time_is_over_only_after_an_answer_and_then_the_operation_is_cancelled_once() {
        let mut operations = [operation("slow")];
        let (_, script) = round(&mut operations, vec![Ok(Progress::default())], 3600).await;
        assert!(script.cancelled.is_empty() && !operations[0].status.phase.has_ended());
        let (outcome, script) = round(&mut operations, vec![Ok(Progress::default())], 3601).await;
        assert_eq!(script.cancelled, ["slow"]);
        assert_eq!(operations[0].status.error, TIMED_OUT);
        assert_eq!(outcome.errors, ["Asynchronous action timed out, plugin: example.io/a"]);
        // Done in the round past the end of its time is done.
        let mut operations = [operation("late")];
        round(&mut operations, vec![Ok(completed(""))], 9000).await;
        assert_eq!(operations[0].status.phase, OperationPhase::Completed);
    }

    #[tokio::test]
    async fn an_operation_is_new_until_its_start_is_known() {
        let mut operations = [operation("1")];
        let moving = Progress { n_completed: 5, n_total: 10, ..Progress::default() };
        let (outcome, _) = round(&mut operations, vec![Ok(moving.clone())], 1).await;
        assert!(outcome.changed);
        assert_eq!((operations[0].status.phase, operations[0].status.n_completed), (OperationPhase::New, 5));
        let (outcome, _) = round(&mut operations, vec![Ok(moving.clone())], 2).await;
        assert!(!outcome.changed, "the same numbers are no news");
        let started = Progress { started: Some(Time::of(at(0))), ..moving.clone() };
        round(&mut operations, vec![Ok(started)], 3).await;
        assert_eq!(operations[0].status.phase, OperationPhase::InProgress);
        // A time that is unknown again does not take back the one that was told.
        round(&mut operations, vec![Ok(moving)], 4).await;
        assert_eq!(operations[0].status.started, Some(Time::of(at(0))));
    }

    #[tokio::test]
    async fn an_error_without_completion_is_not_looked_at() {
        let mut operations = [operation("1")];
        let odd = Progress { err: "odd".to_owned(), ..Progress::default() };
        let (outcome, _) = round(&mut operations, vec![Ok(odd)], 1).await;
        assert!(outcome.errors.is_empty() && outcome.outstanding);
        assert_eq!(operations[0].status.error, "");
    }

    #[test]
    fn errors_name_the_plugin() {
        assert_eq!(told("", "test-bia"), "plugin: test-bia");
        assert_eq!(told("some error happened", ""), "some error happened, plugin: unknown");
        assert_eq!(told("some error happened", "test-bia"), "some error happened, plugin: test-bia");
    }
}
