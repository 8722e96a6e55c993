//! Asynchronous operations: started in one process, asked for in others, and never failed by what may pass.

use e2e::item::{backup, pod, restore};
use e2e::{Specimen, Start, names};
use serde_json::{Value, json};
use tempfile::TempDir;
use tonic::{Code, Status};
use velero_plugin::client::proto::v2::restore_item_action_client::RestoreItemActionClient;
use velero_plugin::client::proto::{generated, v2};

const SPECIMEN: &str = env!("CARGO_BIN_EXE_specimen");
/// Go's zero time in seconds since 1970.
const GO_ZERO: i64 = -62_135_596_800;

/// A folder for the operations, and processes that share it.
struct Rounds {
    folder: TempDir,
}

impl Rounds {
    fn new() -> anyhow::Result<Self> {
        Ok(Self { folder: TempDir::new()? })
    }

    async fn process(&self) -> anyhow::Result<Specimen> {
        Ok(Start::new(SPECIMEN).env(e2e::FOLDER, self.folder.path()).start().await?)
    }

    fn set(&self, operation: &str, state: &Value) -> anyhow::Result<()> {
        Ok(std::fs::write(self.folder.path().join(operation), state.to_string())?)
    }

    /// Asks a new process, as each of Velero's rounds does.
    async fn progress(
        &self,
        operation: &str,
    ) -> anyhow::Result<Result<generated::OperationProgress, Status>> {
        let process = self.process().await?;
        let request = v2::BackupItemActionProgressRequest {
            plugin: names::BACKUP.to_owned(),
            operation_id: operation.to_owned(),
            backup: backup("WaitingForPluginOperations"),
        };
        let reply = process.backup_actions().progress(request).await;
        process.stop().await?;
        // A reply without its message stops a backup service for good.
        Ok(reply.map(|reply| reply.into_inner().progress.expect("the message")))
    }

    async fn cancel(&self, operation: &str) -> anyhow::Result<Result<(), Status>> {
        let process = self.process().await?;
        let request = v2::BackupItemActionCancelRequest {
            plugin: names::BACKUP.to_owned(),
            operation_id: operation.to_owned(),
            backup: backup("WaitingForPluginOperations"),
        };
        let reply = process.backup_actions().cancel(request).await;
        process.stop().await?;
        Ok(reply.map(|_| ()))
    }
}

#[tokio::test]
async fn an_operation_of_one_process_is_followed_and_given_up_in_others() -> anyhow::Result<()> {
    let rounds = Rounds::new()?;
    let first = rounds.process().await?;
    let reply =
        first.execute(pod("a").doing("start").with(r#"{"done":3,"total":10,"started":1700000000}"#)).await?;
    let operation = reply.operation_id;
    assert_eq!(operation, "op-a");
    assert_eq!(reply.post_operation_items.len(), 1);
    assert_eq!(reply.post_operation_items[0].resource, "pods");
    // The node ran out of memory.
    first.kill().await?;

    let progress = rounds.progress(&operation).await??;
    assert!(!progress.completed && progress.err.is_empty());
    assert_eq!((progress.n_completed, progress.n_total, progress.operation_units.as_str()), (3, 10, "Bytes"));
    assert_eq!(progress.started.map(|time| (time.seconds, time.nanos)), Some((1_700_000_000, 0)));

    rounds.cancel(&operation).await??;
    let progress = rounds.progress(&operation).await??;
    assert_eq!((progress.completed, progress.err.as_str()), (true, "cancelled"));
    Ok(())
}

#[tokio::test]
async fn a_progress_always_carries_its_message_and_unknown_times_as_gos_zero() -> anyhow::Result<()> {
    let rounds = Rounds::new()?;
    rounds.set("op", &json!({}))?;
    let progress = rounds.progress("op").await??;
    let zero = Some(prost_types::Timestamp { seconds: GO_ZERO, nanos: 0 });
    assert_eq!((progress.started, progress.updated), (zero, zero));
    assert_eq!((progress.completed, progress.n_total), (false, 0));
    Ok(())
}

#[tokio::test]
async fn trouble_that_may_pass_is_told_and_does_not_end_the_operation() -> anyhow::Result<()> {
    let rounds = Rounds::new()?;
    let states = [
        json!({"trouble": "the API server is busy: asking again"}),
        json!({"trouble": "connection refused"}),
        json!({"completed": true, "done": 10, "total": 10}),
    ];
    let mut ends = Vec::new();
    for state in states {
        rounds.set("op", &state)?;
        let progress = rounds.progress("op").await??;
        ends.push((progress.completed, progress.err, progress.description));
    }
    let words = |word: &str| word.to_owned();
    assert_eq!(ends[0], (false, String::new(), words("the API server is busy: asking again")));
    assert_eq!(ends[1], (false, String::new(), words("connection refused")));
    assert_eq!(ends[2], (true, String::new(), String::new()));
    Ok(())
}

#[tokio::test]
async fn a_failed_operation_says_why() -> anyhow::Result<()> {
    let rounds = Rounds::new()?;
    rounds.set("op", &json!({"failed": "the disk is gone"}))?;
    let progress = rounds.progress("op").await??;
    assert_eq!((progress.completed, progress.err.as_str()), (true, "the disk is gone"));
    rounds.set("op", &json!({"failed": ""}))?;
    let progress = rounds.progress("op").await??;
    assert!(progress.completed && !progress.err.is_empty(), "an empty reason would read as success");
    Ok(())
}

#[tokio::test]
async fn an_unknown_operation_is_an_error_to_follow_and_none_to_give_up() -> anyhow::Result<()> {
    let rounds = Rounds::new()?;
    let status = rounds.progress("op-lost").await?.expect_err("an error");
    assert_eq!((status.code(), status.message()), (Code::Unknown, "operation ID op-lost is invalid"));
    rounds.cancel("op-lost").await??;
    let status = rounds.progress("").await?.expect_err("an error");
    assert!(status.message().starts_with("operation ID "), "{status:?}");
    Ok(())
}

#[tokio::test]
async fn no_operation_starts_while_a_backup_is_finalized() -> anyhow::Result<()> {
    let rounds = Rounds::new()?;
    let process = rounds.process().await?;
    for phase in ["Finalizing", "FinalizingPartiallyFailed"] {
        let request = v2::ExecuteRequest {
            plugin: names::BACKUP.to_owned(),
            item: pod("a").doing("start").with("{}").bytes(),
            backup: backup(phase),
        };
        let reply = process.backup_actions().execute(request).await?.into_inner();
        assert_eq!((reply.operation_id.as_str(), reply.post_operation_items.len()), ("", 0), "{phase}");
        assert_eq!(reply.item, pod("a").doing("start").with("{}").bytes());
    }
    process.stop().await?;
    Ok(())
}

#[tokio::test]
async fn an_operation_of_a_restore_is_followed_in_another_process() -> anyhow::Result<()> {
    let rounds = Rounds::new()?;
    let first = rounds.process().await?;
    let request = v2::RestoreItemActionExecuteRequest {
        plugin: names::RESTORE.to_owned(),
        item: pod("a").doing("start").with(r#"{"completed":true}"#).bytes(),
        restore: restore(),
        ..Default::default()
    };
    let reply = RestoreItemActionClient::new(first.channel()).execute(request).await?.into_inner();
    first.kill().await?;
    let second = rounds.process().await?;
    let request = v2::RestoreItemActionProgressRequest {
        plugin: names::RESTORE.to_owned(),
        operation_id: reply.operation_id,
        restore: restore(),
    };
    let progress =
        RestoreItemActionClient::new(second.channel()).progress(request).await?.into_inner().progress;
    assert!(progress.expect("the message").completed);
    second.stop().await?;
    Ok(())
}
