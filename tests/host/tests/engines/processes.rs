//! Real plugin processes: how they start, die, are replaced and end.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use velero_host::client::{BackupItemAction, CallError, Plugin};
use velero_host::event::{Event, Observer};
use velero_host::minor::Minor;
use velero_host::registry::list;
use velero_host::session::{Journal, Launch, Processes, Session, SessionError, Start};
use velero_plugin::client::StartError;

use crate::support::dying;

/// Keeps how often processes started and ended, and with what.
#[derive(Default)]
struct Processed(Mutex<(usize, Vec<String>)>);

impl Observer for Processed {
    fn observe(&self, event: &Event<'_>) {
        let mut seen = self.0.lock().unwrap();
        match event {
            Event::ProcessStarted { .. } => seen.0 += 1,
            Event::ProcessEnded { status, killed, .. } => seen.1.push(format!("{status:?} {killed}")),
            _ => {}
        }
    }
}

struct Stage {
    session: Session,
    seen: Arc<Processed>,
}

impl Stage {
    fn new(minor: Minor) -> Self {
        let server_arguments = vec!["--log-level=debug".to_owned(), "--unknown-flag".to_owned()];
        let start = Processes(Launch { minor, server_arguments, environment: Vec::new() });
        let seen = Arc::new(Processed::default());
        Self { session: Session::new(Arc::new(start), Journal::new(seen.clone())), seen }
    }

    async fn action(&self) -> BackupItemAction {
        let process = self.session.process(&dying()).await.unwrap();
        BackupItemAction::V2(Plugin::new("example.io/dying", process))
    }

    fn starts(&self) -> usize {
        self.seen.0.lock().unwrap().0
    }
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "a"}})
}

/// Calls until a process answers: a dead one may be noticed a moment later.
async fn execute_again(action: &BackupItemAction, name: &str) -> Value {
    for _ in 0..100 {
        if let Ok(executed) = action.execute(&config_map(name), &json!({})).await {
            return executed.item;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("no process answers any more");
}

#[tokio::test]
async fn a_process_that_died_is_replaced_and_the_call_that_saw_it_is_not_repeated() {
    for (way, minor) in [("exits", Minor::V1_18), ("aborts", Minor::V1_14)] {
        let stage = Stage::new(minor);
        let action = stage.action().await;
        let first = execute_again(&action, "process").await["data"]["process"].clone();
        let error = action.execute(&config_map(way), &json!({})).await.unwrap_err();
        let CallError::Rpc(rpc) = &error else { panic!("{error}") };
        assert!(
            rpc.to_string().starts_with("rpc error: code = Unavailable desc = error reading from server"),
            "{rpc}"
        );
        let second = execute_again(&action, "process").await["data"]["process"].clone();
        assert_ne!(first, second);
        assert_eq!(stage.starts(), 2);
        // The death in the middle of the stage is an error in its log.
        assert_eq!(stage.session.journal().summary().errors.count(), 1);
        stage.session.end().await;
        let ends = stage.seen.0.lock().unwrap().1.clone();
        assert_eq!(ends, ["Some(ExitStatus(unix_wait_status(0))) false"], "one orderly end");
    }
}

#[tokio::test]
async fn errors_and_panics_come_as_the_server_shows_them_and_the_process_lives() {
    let stage = Stage::new(Minor::V1_18);
    let action = stage.action().await;
    let error = action.execute(&config_map("fails"), &json!({})).await.unwrap_err();
    assert_eq!(error.to_string(), "rpc error: code = Unknown desc = as it was told");
    let CallError::Rpc(rpc) = error else { panic!("no answer") };
    assert!(rpc.place.is_some_and(|place| place.file.ends_with("dying.rs")));
    let error = action.execute(&config_map("panics"), &json!({})).await.unwrap_err().to_string();
    assert!(error.starts_with("rpc error: code = Aborted desc = plugin panicked: "), "{error}");
    let progress = action.progress("x", &json!({})).await.unwrap();
    assert_eq!((progress.n_completed, progress.started), (1, None));
    assert_eq!(stage.starts(), 1);
    stage.session.end().await;
}

#[tokio::test]
async fn warnings_of_a_plugin_are_counted() {
    let stage = Stage::new(Minor::V1_18);
    let action = stage.action().await;
    action.execute(&config_map("warns"), &json!({})).await.unwrap();
    stage.session.end().await;
    let summary = stage.session.journal().summary();
    assert_eq!(summary.warnings.velero, [" name: /warns message: /a warning"]);
    assert!(summary.faults.is_empty());
}

#[tokio::test]
async fn a_plugin_is_listed_with_the_command_that_it_was_started_with() {
    let start: Arc<dyn Start> = Arc::new(Processes::default());
    let seen = Arc::new(Processed::default());
    let registry = list(&[dying()], Minor::V1_14, &start, &Journal::new(seen.clone())).await.unwrap();
    let commands: Vec<_> = registry.entries().iter().map(|entry| entry.command.clone()).collect();
    assert_eq!(commands, [dying(), dying()]);
    assert!(registry.notes().is_empty());
    assert_eq!(seen.0.lock().unwrap().0, 1);
}

#[tokio::test]
async fn what_is_no_plugin_fails_at_once() {
    for (command, words) in
        [("/bin/true", "Unrecognized remote plugin message"), ("/absent", "can't start the plugin")]
    {
        let stage = Stage::new(Minor::V1_18);
        let error = stage.session.process(command).await.err().unwrap();
        assert!(matches!(error, SessionError::Start(StartError::NoLine { .. } | StartError::Spawn { .. })));
        assert!(error.to_string().starts_with(words), "{error}");
    }
}
