//! The binary as Velero starts it: what it lists, how it finds the cluster, and what its log costs the user.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use cluster::simulator::Fault;
use csi_actions::operation::Operation;
use serde_json::{Value, json};
use tokio::process::Command;
use velero_plugin::client::PluginProcess;
use velero_plugin::client::proto::generated::plugin_lister_client::PluginListerClient;
use velero_plugin::client::proto::v2::backup_item_action_client::BackupItemActionClient;
use velero_plugin::client::proto::{generated, v2};

use crate::bed::{Bed, CONTENTS, backup, name};

const CLAIMS_ACTION: &str = "csi-actions.velero-rs.io/persistentvolumeclaim-backup";
const CONTENTS_ACTION: &str = "csi-actions.velero-rs.io/volumesnapshotcontent-backup";

type Lines = Arc<Mutex<Vec<String>>>;

/// Starts the binary with the arguments of a current server and this kubeconfig in its environment.
async fn start(kubeconfig: &std::path::Path, arguments: &[&str]) -> (PluginProcess, Lines) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_csi-actions"));
    command.args(arguments).env("KUBECONFIG", kubeconfig);
    let lines = Lines::default();
    let log = Arc::clone(&lines);
    let process = PluginProcess::start(command, move |line| log.lock().unwrap().push(line)).await.unwrap();
    (process, lines)
}

/// The levels in a plugin's log that Velero counts against the user's backup.
fn counted(lines: &Lines) -> Vec<String> {
    let is_counted = |line: &&String| {
        let level =
            serde_json::from_str::<Value>(line).map(|line| line["@level"].clone()).unwrap_or_default();
        level != "debug" && level != "info" && level != "trace"
    };
    lines.lock().unwrap().iter().filter(is_counted).cloned().collect()
}

async fn execute(process: &PluginProcess, action: &str, item: &Value, backup: &Value) -> v2::ExecuteResponse {
    let request = v2::ExecuteRequest {
        plugin: action.to_owned(),
        item: item.to_string().into(),
        backup: backup.to_string().into(),
    };
    BackupItemActionClient::new(process.channel()).execute(request).await.unwrap().into_inner()
}

/// What the binary lists to a server that starts it with these arguments: kinds and names.
async fn listed(arguments: &[&str]) -> Vec<String> {
    let nowhere = std::path::Path::new("/nonexistent/kubeconfig");
    let (process, lines) = start(nowhere, arguments).await;
    let list = PluginListerClient::new(process.channel())
        .list_plugins(generated::Empty {})
        .await
        .unwrap()
        .into_inner();
    let mut listed: Vec<String> =
        list.plugins.iter().map(|plugin| format!("{} {}", plugin.kind, plugin.name)).collect();
    listed.sort();
    process.stop().await.unwrap();
    assert_eq!(counted(&lines), Vec::<String>::new());
    listed
}

#[tokio::test]
async fn the_binary_lists_its_actions_and_touches_no_cluster_for_that() {
    let ours = |kind: &str, name: &str| format!("{kind} csi-actions.velero-rs.io/{name}");
    let mut expected = vec![
        ours("BackupItemActionV2", "persistentvolume-backup"),
        ours("BackupItemActionV2", "persistentvolumeclaim-backup"),
        ours("BackupItemActionV2", "volumesnapshot-backup"),
        ours("BackupItemActionV2", "volumesnapshotclass-backup"),
        ours("BackupItemActionV2", "volumesnapshotcontent-backup"),
        ours("DeleteItemAction", "volumesnapshot-delete"),
        ours("DeleteItemAction", "volumesnapshotcontent-delete"),
        ours("ItemBlockAction", "persistentvolumeclaim-block"),
        ours("RestoreItemActionV2", "persistentvolume-restore"),
        ours("RestoreItemActionV2", "persistentvolumeclaim-restore"),
        ours("RestoreItemActionV2", "volumesnapshot-restore"),
        ours("RestoreItemActionV2", "volumesnapshotclass-restore"),
        ours("RestoreItemActionV2", "volumesnapshotcontent-restore"),
    ];
    assert_eq!(listed(&["--log-level=debug"]).await, expected);
    // As 1.14 starts it, which refuses to start with a kind that it does not know.
    expected.retain(|listed| !listed.starts_with("ItemBlockAction"));
    assert_eq!(listed(&["--log-level", "debug"]).await, expected);
}

#[tokio::test]
async fn each_poll_may_come_from_a_new_process_and_no_line_of_the_log_is_counted() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    bed.driver().order(Fault::on("CreateSnapshot").ready_after(Duration::from_secs(1))).unwrap();
    let archived = bed.back_up(&claim, &backup("b1")).await;
    let id = archived.operation.clone().unwrap();
    let started =
        Operation::parse(&id).unwrap().started.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    // The driver has said something in the meantime that passes: told, not counted.
    let error = json!({"status": {"error": {"message": "rpc error: code = Unavailable desc = busy"}}});
    bed.cluster.patch(CONTENTS, "", name(&archived.content), &error).unwrap();
    let mut polls = 0;
    loop {
        let (process, lines) = start(&bed.kubeconfig(), &["--log-level=debug"]).await;
        let request = v2::BackupItemActionProgressRequest {
            plugin: CONTENTS_ACTION.to_owned(),
            operation_id: id.as_str().to_owned(),
            backup: backup("b1").to_string().into(),
        };
        let reply =
            BackupItemActionClient::new(process.channel()).progress(request).await.unwrap().into_inner();
        let progress = reply.progress.unwrap();
        assert_eq!(progress.started.unwrap().seconds, started.cast_signed());
        assert_eq!(
            (progress.n_total, progress.operation_units.as_str(), progress.err.as_str()),
            (1 << 20, "Bytes", "")
        );
        process.stop().await.unwrap();
        assert_eq!(counted(&lines), Vec::<String>::new());
        polls += 1;
        if progress.completed {
            assert_eq!(progress.n_completed, 1 << 20);
            break;
        }
        assert!(polls < 300, "never ready: {}", progress.description);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn c46_the_servers_feature_makes_the_actions_passive() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    bed.cluster.clear_requests();
    // As 1.14 and as 1.15 and later hand it on.
    for arguments in [&["--log-level", "info", "--features", "EnableCSI"][..], &["--features=EnableCSI"]] {
        let (process, _) = start(&bed.kubeconfig(), arguments).await;
        let reply = execute(&process, CLAIMS_ACTION, &claim, &backup("b1")).await;
        assert_eq!(reply.item, claim.to_string());
        assert!(reply.additional_items.is_empty() && reply.operation_id.is_empty());
        process.stop().await.unwrap();
    }
    assert!(bed.cluster.requests().is_empty());
}

#[tokio::test]
async fn a_cluster_that_cannot_be_reached_ends_no_operation() {
    let nowhere = std::path::Path::new("/nonexistent/kubeconfig");
    let (process, lines) = start(nowhere, &["--log-level=debug"]).await;
    let request = v2::BackupItemActionProgressRequest {
        plugin: CONTENTS_ACTION.to_owned(),
        operation_id: "_/snapcontent-1/2026-01-01T00:00:00Z".to_owned(),
        backup: backup("b1").to_string().into(),
    };
    let reply = BackupItemActionClient::new(process.channel()).progress(request).await.unwrap().into_inner();
    let progress = reply.progress.unwrap();
    assert!(!progress.completed && progress.description.contains("find the cluster"), "{progress:?}");
    process.stop().await.unwrap();
    assert_eq!(counted(&lines), Vec::<String>::new());
}
