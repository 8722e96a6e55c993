//! The run: backup, rounds, finalize, a look into the archive, deletion. `velero-host` plays the server.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use async_trait::async_trait;
use demo::checks::{BackedUp, Checks, Deleted, Stored};
use demo::report::Report;
use demo::show::Show;
use jiff::Timestamp;
use object_store::local::LocalFileSystem;
use serde_json::json;
use uuid::Uuid;
use velero_host::archive::Archive;
use velero_host::cluster::ApiCluster;
use velero_host::model::Backup;
use velero_host::operation::OperationPhase;
use velero_host::phase;
use velero_host::registry::{Registry, list};
use velero_host::server::{Parts, Profile, RESOURCE_TIMEOUT, Server};
use velero_host::session::{Journal, Launch, Processes, Start};
use velero_host::store::BackupStore;

use crate::cli::Cli;

/// Where the story takes place.
#[async_trait]
pub(crate) trait Scene: Sync {
    /// The namespace that is backed up.
    fn namespace(&self) -> &str;

    /// By which the plugin finds the cluster.
    fn kubeconfig_of_plugin(&self) -> &Path;

    /// The cluster as the server sees it.
    async fn cluster(&self) -> Result<ApiCluster>;

    /// What the storage tells, where it can be asked.
    fn stored(&self) -> Option<Stored>;

    /// How many snapshots and contents the cluster holds of the namespace.
    async fn snapshot_objects(&self) -> Result<usize>;

    /// Requests of the plugin to the API server: all, and those that failed.
    fn requests_of_plugin(&self) -> (usize, usize);
}

/// What a story is told with.
#[derive(Clone, Copy)]
pub(crate) struct Means<'a> {
    pub(crate) cli: &'a Cli,
    pub(crate) plugin: &'a Path,
    /// All that is written goes into it.
    pub(crate) folder: &'a Path,
    pub(crate) show: &'a Arc<Show>,
}

/// A story while it is told.
pub(crate) struct Story<'a> {
    scene: &'a dyn Scene,
    show: Arc<Show>,
    making: Making,
    server: Server,
    backup: Backup,
    round: Duration,
    rounds: usize,
    pub(crate) checks: Checks,
    began: Instant,
}

/// What servers are made of.
struct Making {
    cli: Cli,
    cluster: ApiCluster,
    bucket: Arc<LocalFileSystem>,
    registry: Registry,
    start: Arc<dyn Start>,
    show: Arc<Show>,
}

impl Making {
    /// One that has just started.
    fn server(&self) -> Server {
        Server::new(Parts {
            minor: self.cli.minor,
            enable_csi: false,
            resource_timeout: RESOURCE_TIMEOUT,
            profile: Profile::Released,
            cluster: Arc::new(self.cluster.clone()),
            store: BackupStore::new(self.bucket.clone(), ""),
            registry: self.registry.clone(),
            start: self.start.clone(),
            observer: self.show.clone(),
            now: Arc::new(Timestamp::now),
        })
    }
}

impl<'a> Story<'a> {
    /// Starts the server, which lists the plugin.
    pub(crate) async fn begin(means: Means<'_>, scene: &'a dyn Scene, backup: &str) -> Result<Self> {
        let Means { cli, plugin, folder, show } = means;
        let began = Instant::now();
        let bucket = folder.join("bucket");
        std::fs::create_dir(&bucket)?;
        let launch = Launch {
            minor: cli.minor,
            server_arguments: vec!["--log-level=info".to_owned()],
            environment: vec![
                ("KUBECONFIG".to_owned(), scene.kubeconfig_of_plugin().to_string_lossy().into_owned()),
                // A plugin that is killed leaves its socket behind; the folder goes with the run.
                ("TMPDIR".to_owned(), folder.to_string_lossy().into_owned()),
            ],
        };
        let start: Arc<dyn Start> = Arc::new(Processes(launch));
        let command = plugin.to_string_lossy().into_owned();
        let registry = list(&[command], cli.minor, &start, &Journal::new(show.clone())).await?;
        show.line(&format!("csi-actions lists {} actions", registry.entries().len()));
        let making = Making {
            cli: cli.clone(),
            cluster: scene.cluster().await?,
            bucket: Arc::new(LocalFileSystem::new_with_prefix(&bucket)?),
            registry,
            start,
            show: show.clone(),
        };
        let object =
            json!({"metadata": {"name": backup}, "spec": {"includedNamespaces": [scene.namespace()]}});
        Ok(Self {
            scene,
            show: show.clone(),
            server: making.server(),
            making,
            // Names of snapshots are made of it.
            backup: Backup::new(object, &Uuid::new_v4().to_string())?,
            round: cli.round(),
            rounds: 0,
            checks: Checks::default(),
            began,
        })
    }

    /// The items, and rounds until all operations have ended. When it is dropped, all snapshots are still in the cluster.
    pub(crate) async fn back_up(&mut self) -> Result<()> {
        self.server.back_up(&mut self.backup).await?;
        while phase::is_waiting(self.backup.phase()) {
            tokio::time::sleep(self.round).await;
            self.server.round(&mut self.backup).await?;
            self.rounds += 1;
        }
        Ok(())
    }

    /// Finalizes, which takes the snapshots out of the cluster: from here on the archive alone knows of them.
    pub(crate) async fn finalize(&mut self) -> Result<()> {
        self.server.finalize(&mut self.backup).await?;
        let seen = self.show.report();
        let completed =
            seen.operations.values().filter(|one| one.status.phase == OperationPhase::Completed).count();
        self.checks.backed_up(&BackedUp {
            phase: self.backup.phase(),
            counts: (self.backup.count("errors"), self.backup.count("warnings")),
            completed,
            stored: self.scene.stored(),
            objects: self.scene.snapshot_objects().await?,
        });
        Ok(())
    }

    /// Lists what the archive holds.
    pub(crate) async fn look_into_the_archive(&self) -> Result<()> {
        let Some(contents) = self.server.store().contents(self.backup.name()).await? else {
            bail!("the backup {} has no archive: {}", self.backup.name(), self.backup.object()["status"]);
        };
        let archive = Archive::read(&contents)?;
        let items = archive.items();
        self.show.archive(
            archive.paths().count(),
            items
                .iter()
                .map(|item| (item.group_resource.as_str(), item.namespace.as_str(), item.name.as_str())),
        );
        Ok(())
    }

    /// Deletes the backup. Can be repeated.
    pub(crate) async fn delete(&mut self) -> Result<()> {
        let deletion = self.server.delete(&mut self.backup).await?;
        self.show.line("the backup is deleted");
        self.checks.deleted(&Deleted {
            errors: deletion.errors.len() + deletion.logged.len(),
            stored: self.scene.stored(),
            objects: self.scene.snapshot_objects().await?,
            files: self.server.store().keys(self.backup.name()).await?.len(),
        });
        Ok(())
    }

    /// Deletes what a story that broke off has archived, as a server does that was started again.
    pub(crate) async fn give_up(&mut self) -> Result<()> {
        let server = self.making.server();
        if server.store().keys(self.backup.name()).await?.is_empty() {
            return Ok(());
        }
        let deletion = server.delete(&mut self.backup).await?;
        if let Some(error) = deletion.errors.iter().chain(&deletion.logged).next() {
            bail!("delete the backup {}: {error}", self.backup.name());
        }
        Ok(())
    }

    /// The tables; the exit code is 1 when something was not as it must be.
    pub(crate) fn end(mut self) -> ExitCode {
        let seen = self.show.report();
        // The list at the server's start, the items, the rounds, the deletion; finalize, unless there is nothing to it.
        let stages = self.rounds + 3 + usize::from(!seen.operations.is_empty());
        self.checks.equal("plugin processes, one for each stage", &seen.starts, &stages);
        self.checks.equal("processes that ended badly", &seen.bad_ends, &0);
        self.checks.equal("warnings, errors and faults in the logs", &seen.spoiling_lines.len(), &0);
        let report = Report {
            seen: &seen,
            total: self.began.elapsed(),
            requests: self.scene.requests_of_plugin(),
            checks: &self.checks,
        };
        println!("{}", report.tables());
        if self.checks.hold() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
