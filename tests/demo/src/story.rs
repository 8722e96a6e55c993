//! The run: backup, rounds, finalize, a look into the archive, deletion.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use object_store::local::LocalFileSystem;
use serde_json::json;
use tempfile::TempDir;
use velero_host::archive::Archive;
use velero_host::cluster::ApiCluster;
use velero_host::model::Backup;
use velero_host::operation::OperationPhase;
use velero_host::phase;
use velero_host::registry::list;
use velero_host::server::{Parts, Profile, Server};
use velero_host::session::{Journal, Launch, Processes, Start};
use velero_host::store::BackupStore;
use velero_plugin::BackupPhase;

use crate::checks::Checks;
use crate::cli::Cli;
use crate::report::Report;
use crate::scene::{NAMESPACE, Scene, TROUBLED, VOLUMES};
use crate::show::Show;

const BACKUP: &str = "shop-nightly";

/// Tells it; the exit code is 1 when something was not as it must be.
pub(crate) async fn tell(cli: &Cli, plugin: &Path) -> Result<ExitCode> {
    let began = Instant::now();
    let show = Arc::new(Show::new(cli.verbose));
    let folder = TempDir::with_prefix("velero-demo-").context("make a folder for the run")?;
    let scene = Scene::set().await?;
    show.line(&format!("namespace {NAMESPACE} with {VOLUMES} volumes; the storage refuses {TROUBLED} once"));
    let server = server(cli, plugin, &scene, folder.path(), &show).await?;

    let object = json!({"metadata": {"name": BACKUP}, "spec": {"includedNamespaces": [NAMESPACE]}});
    let mut backup = Backup::new(object, "5f2c2f3e-0000-4000-8000-000000000001")?;
    let mut rounds = 0;
    server.back_up(&mut backup).await?;
    while phase::is_waiting(backup.phase()) {
        tokio::time::sleep(cli.round()).await;
        server.round(&mut backup).await?;
        rounds += 1;
    }
    server.finalize(&mut backup).await?;
    let mut checks = Checks::default();
    after_backup(&mut checks, &backup, &scene, &show)?;
    if let Some(contents) = server.store().contents(BACKUP).await? {
        let archive = Archive::read(&contents)?;
        show.line(&format!("the archive holds {} files; the items:", archive.paths().count()));
        for item in archive.items() {
            let slash = if item.namespace.is_empty() { "" } else { "/" };
            show.line(&format!("  {} {}{slash}{}", item.group_resource, item.namespace, item.name));
        }
    }

    let deletion = server.delete(&mut backup).await?;
    show.line("the backup is deleted");
    after_deletion(&mut checks, &server, &scene, deletion.errors.len() + deletion.logged.len()).await?;
    let seen = show.report();
    // The list at the server's start, the items, the rounds, finalize, the deletion.
    checks.equal("plugin processes, one for each stage", &seen.starts.len(), &(rounds + 4));
    checks.equal("processes that ended badly", &seen.bad_ends, &0);
    checks.equal("warnings, errors and faults in the logs", &seen.spoiling_lines.len(), &0);
    let report =
        Report { seen: &seen, total: began.elapsed(), requests: scene.requests_of_plugin(), checks: &checks };
    println!("{}", report.tables());
    Ok(if checks.hold() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn server(cli: &Cli, plugin: &Path, scene: &Scene, folder: &Path, show: &Arc<Show>) -> Result<Server> {
    let kubeconfig = folder.join("kubeconfig");
    scene.cluster.kubeconfig(&kubeconfig)?;
    let bucket = folder.join("bucket");
    std::fs::create_dir(&bucket)?;
    let launch = Launch {
        minor: cli.minor,
        server_arguments: vec!["--log-level=info".to_owned()],
        environment: vec![
            ("KUBECONFIG".to_owned(), kubeconfig.to_string_lossy().into_owned()),
            // A plugin that is killed leaves its socket behind; the folder goes with the run.
            ("TMPDIR".to_owned(), folder.to_string_lossy().into_owned()),
        ],
    };
    let start: Arc<dyn Start> = Arc::new(Processes(launch));
    let journal = Journal::new(show.clone());
    let command = plugin.to_string_lossy().into_owned();
    let registry = list(&[command], cli.minor, &start, &journal).await?;
    show.line(&format!("csi-actions lists {} actions", registry.entries().len()));
    Ok(Server::new(Parts {
        minor: cli.minor,
        enable_csi: false,
        profile: Profile::Released,
        cluster: Arc::new(ApiCluster::connect(&kubeconfig).await?),
        store: BackupStore::new(Arc::new(LocalFileSystem::new_with_prefix(&bucket)?), ""),
        registry,
        start,
        observer: show.clone(),
        now: Arc::new(Timestamp::now),
    }))
}

fn after_backup(checks: &mut Checks, backup: &Backup, scene: &Scene, show: &Show) -> Result<()> {
    let seen = show.report();
    let completed =
        seen.operations.values().filter(|one| one.status.phase == OperationPhase::Completed).count();
    checks.equal("the backup's phase", &backup.phase(), &BackupPhase::Completed);
    checks.equal(
        "errors and warnings of the backup",
        &(backup.count("errors"), backup.count("warnings")),
        &(0, 0),
    );
    checks.equal("completed operations", &completed, &VOLUMES);
    checks.equal("snapshots in the storage after the backup", &scene.snapshots(), &VOLUMES);
    checks.equal("the storage was asked again after its refusal", &(scene.attempts() > VOLUMES), &true);
    checks.equal("snapshot objects left in the cluster", &scene.snapshot_objects()?, &0);
    Ok(())
}

async fn after_deletion(checks: &mut Checks, server: &Server, scene: &Scene, errors: usize) -> Result<()> {
    checks.equal("errors of the deletion", &errors, &0);
    checks.equal("snapshots in the storage after the deletion", &scene.snapshots(), &0);
    checks.equal("snapshot objects left after the deletion", &scene.snapshot_objects()?, &0);
    checks.equal("files left of the backup", &server.store().keys(BACKUP).await?.len(), &0);
    Ok(())
}
