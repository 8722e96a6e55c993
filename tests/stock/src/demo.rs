//! `cargo demo --stock`: the story of the demo on a real server, watched as a user can watch it.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use demo::checks::{BackedUp, Checks, Deleted, Stored};
use demo::report::Report;
use demo::shop::{self, CLAIMS, NAMESPACE as SHOP};
use demo::show::Show;
use serde_json::{Value, json};
use velero_host::archive::Archive;
use velero_host::event::{Event, Observer as _};
use velero_host::operation::{Operation, OperationPhase};
use velero_plugin::BackupPhase;

use crate::application::Application;
use crate::backup::Backup;
use crate::cluster::{
    CONFIG_MAP, DOWNLOAD_REQUEST, NAMESPACE, SECRET, SNAPSHOT, SNAPSHOT_CONTENT, count, text,
};
use crate::components::velero::{Server, VELERO_NAMESPACE};
use crate::stack::Stack;
use crate::wait::{Look, until};

const PLUGIN: &str = "csi-actions";
const BACKUP: &str = "shop-nightly";
/// Between two looks at the backup.
const LOOK: Duration = Duration::from_millis(300);
/// This only ends a run that hangs.
const LIMIT: Duration = Duration::from_secs(300);

/// Tells it; the exit code is 1 when something was not as it must be.
pub(crate) async fn tell(stack: &mut Stack, round: Duration, verbose: bool) -> Result<ExitCode> {
    let server = Server {
        plugins: vec![stack.plugin(PLUGIN)?],
        through_proxy: true,
        progress_interval: Some(round),
        ..Server::default()
    };
    stack.server(server).await?;
    set(stack).await?;
    stack.proxy.forget_requests();
    let before = seen_of_log(stack)?;

    let began = Instant::now();
    let show = Show::new(verbose);
    show.line(&shop::told());
    let backup = Backup::request(&stack.cluster, &stack.bucket, BACKUP, SHOP, &json!({})).await?;
    let status = tokio::time::timeout(LIMIT, follow(stack, &backup, &show)).await;
    let status =
        status.with_context(|| format!("{BACKUP} is not at its end after {} s", LIMIT.as_secs()))??;
    let mut checks = Checks::default();
    after_backup(&mut checks, stack, &status, &show).await?;
    let contents = backup.contents().await?;
    let archive = Archive::read(&contents)?;
    let items = archive.items();
    show.archive(
        archive.paths().count(),
        items.iter().map(|item| (item.group_resource.as_str(), item.namespace.as_str(), item.name.as_str())),
    );

    let phase = BackupPhase::Deleting;
    show.observe(&Event::Phase { backup: BACKUP, phase });
    backup.delete(LIMIT).await?;
    show.line("the backup is deleted");
    let after = seen_of_log(stack)?;
    checks.deleted(&Deleted {
        errors: stack.server_log()?.saying("Error executing item actions")?.len(),
        stored: stored(stack).await?,
        objects: snapshot_objects(stack).await?,
        files: backup.keys().await?.len(),
    });
    let mut seen = show.report();
    seen.starts = after.starts - before.starts;
    for line in &after.plugin_lines[before.plugin_lines.len()..] {
        if verbose {
            show.line(&format!("  plugin: {line}"));
        }
    }
    seen.spoiling_lines = after.complaints;
    // The items, at least one round, finalize, the deletion.
    checks.equal("a plugin process for each stage", &(seen.starts >= 4), &true);
    checks.equal("warnings and errors of the plugin in the server's log", &seen.spoiling_lines.len(), &0);
    let requests = stack.proxy.tally("csi-actions/");
    checks.equal("the plugin asked the API server", &(requests.0 > 0), &true);
    let report = Report { seen: &seen, total: began.elapsed(), requests, checks: &checks };
    crate::screen::print(&report.tables());
    Ok(if checks.hold() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The shop, and a storage with its moods.
async fn set(stack: &Stack) -> Result<()> {
    stack.cluster.create(NAMESPACE, "", json!({"metadata": {"name": SHOP}})).await?;
    for object in shop::objects(SHOP) {
        let kind = if object["kind"] == "Secret" { SECRET } else { CONFIG_MAP };
        stack.cluster.create(kind, SHOP, object).await?;
    }
    let class = crate::components::storage::CLASS;
    for claim in CLAIMS {
        let claim = claim.object(SHOP, claim.size, class);
        stack.cluster.create(crate::cluster::CLAIM, SHOP, claim).await?;
    }
    let claims = CLAIMS.map(|claim| claim.name.to_owned()).to_vec();
    Application { namespace: SHOP.to_owned(), claims }.bound(&stack.cluster).await?;
    for fault in shop::faults() {
        stack.driver.control.order(&fault).await?;
    }
    Ok(())
}

/// Shows phases and operations until the backup has ended; gives its status.
async fn follow(stack: &Stack, backup: &Backup, show: &Show) -> Result<Value> {
    let mut phase = BackupPhase::Unknown;
    let mut told: BTreeMap<String, Operation> = BTreeMap::new();
    loop {
        let status = backup.status().await?;
        let now = BackupPhase::from_name(text(&status, "/phase"));
        if now != phase {
            phase = now;
            show.observe(&Event::Phase { backup: BACKUP, phase });
        }
        let waits = velero_host::phase::is_waiting(phase);
        let has_ended = matches!(phase, BackupPhase::Completed | BackupPhase::PartiallyFailed);
        if waits || phase.is_finalizing() || has_ended {
            for operation in operations(stack, backup, waits).await? {
                let id = operation.spec.operation_id.clone();
                if told.get(&id) != Some(&operation) {
                    show.observe(&Event::Operation(&operation));
                    told.insert(id, operation);
                }
            }
        }
        if is_final(phase) {
            return Ok(status);
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn is_final(phase: BackupPhase) -> bool {
    use BackupPhase::{Completed, Failed, FailedValidation, PartiallyFailed};
    matches!(phase, Completed | PartiallyFailed | Failed | FailedValidation)
}

/// The operations as `velero backup describe --details` gets them: while they run, the server writes what it knows of
/// them into the bucket only when it is asked to.
async fn operations(stack: &Stack, backup: &Backup, running: bool) -> Result<Vec<Operation>> {
    if running {
        let target = json!({"kind": "BackupItemOperations", "name": BACKUP});
        let request = json!({"metadata": {"generateName": "demo-"}, "spec": {"target": target}});
        let request = stack.cluster.create(DOWNLOAD_REQUEST, VELERO_NAMESPACE, request).await?;
        let name = text(&request, "/metadata/name").to_owned();
        until("the server's answer to a download request", Duration::from_secs(30), || async {
            let request = stack.cluster.get(DOWNLOAD_REQUEST, VELERO_NAMESPACE, &name).await?;
            let request = request.context("the download request is gone")?;
            let processed = text(&request, "/status/phase") == "Processed";
            Ok(if processed { Look::Found(()) } else { Look::NotYet(request["status"].to_string()) })
        })
        .await?;
        stack.cluster.delete(DOWNLOAD_REQUEST, VELERO_NAMESPACE, &name).await?;
    }
    backup.operation_records().await
}

async fn after_backup(checks: &mut Checks, stack: &Stack, status: &Value, show: &Show) -> Result<()> {
    let seen = show.report();
    let completed = seen.operations.values().filter(|one| one.status.phase == OperationPhase::Completed);
    let number = |pointer| u64::try_from(count(status, pointer)).unwrap_or(u64::MAX);
    let phase = BackupPhase::from_name(text(status, "/phase"));
    ensure!(is_final(phase), "the backup has not ended: {status}");
    checks.backed_up(&BackedUp {
        phase,
        counts: (number("/errors"), number("/warnings")),
        completed: completed.count(),
        stored: stored(stack).await?,
        objects: snapshot_objects(stack).await?,
    });
    Ok(())
}

async fn stored(stack: &Stack) -> Result<Option<Stored>> {
    Ok(Some(Stored {
        snapshots: stack.driver.snapshots().await?.len(),
        attempts: stack.driver.control.calls_of("CreateSnapshot").await?.len(),
    }))
}

async fn snapshot_objects(stack: &Stack) -> Result<usize> {
    let snapshots = stack.cluster.names(SNAPSHOT, "").await?;
    Ok(snapshots.len() + stack.cluster.names(SNAPSHOT_CONTENT, "").await?.len())
}

/// What the server's log says of the plugin.
struct OfLog {
    starts: usize,
    plugin_lines: Vec<String>,
    complaints: Vec<String>,
}

fn seen_of_log(stack: &Stack) -> Result<OfLog> {
    let log = stack.server_log()?;
    let lines = log.lines()?;
    let of_plugin = lines.iter().filter(|line| line.plugin.as_deref() == Some(PLUGIN));
    Ok(OfLog {
        starts: log.starts(PLUGIN)?,
        plugin_lines: of_plugin.map(|line| format!("{} {}", line.level, line.message)).collect(),
        complaints: log.complaints(PLUGIN)?.into_iter().map(|line| line.raw).collect(),
    })
}
