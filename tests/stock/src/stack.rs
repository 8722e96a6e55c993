//! A whole stack: started in order, used by scenarios, ended with this value.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::try_join;

use crate::application::Application;
use crate::backup::Backup;
use crate::build::{Plugin, Programs};
use crate::cluster::{CLAIM, Cluster, VOLUME, text};
use crate::components::api_server::{self, Access};
use crate::components::bucket::{self, Bucket};
use crate::components::driver::{self, Driver};
use crate::components::kubectl::Kubectl;
use crate::components::proxy::{self, FaultProxy};
use crate::components::snapshots::{self, Pace, Snapshots};
use crate::components::velero::{self, Server, Velero};
use crate::components::{controllers, crds, etcd, storage};
use crate::minor::Minor;
use crate::ports::Ports;
use crate::process::{Launcher, Process};
use crate::restore::Restore;
use crate::sandbox::Sandbox;
use crate::screen::Screen;
use crate::server_log::ServerLog;

/// Kubernetes, storage and bucket, and at most one Velero server on them.
pub(crate) struct Stack {
    pub(crate) cluster: Cluster,
    pub(crate) bucket: Bucket,
    pub(crate) driver: Driver,
    pub(crate) access: Access,
    pub(crate) kubectl: Kubectl,
    pub(crate) proxy: FaultProxy,
    minor: Minor,
    programs: Programs,
    ports: Ports,
    launcher: Launcher,
    folder: PathBuf,
    velero: Option<(Server, Velero)>,
    servers_started: usize,
    // Fields drop in this order: what depends on another thing ends before it.
    _snapshots: Snapshots,
    _moto: Process,
    _controllers: Process,
    _api_server: Process,
    _etcd: Process,
}

impl Stack {
    /// Starts everything but Velero in `folder`, which must be empty.
    ///
    /// # Errors
    /// When a component ends or is not ready in time; what was started is ended again.
    pub(crate) async fn start(
        minor: Minor,
        programs: Programs,
        sandbox: Sandbox,
        folder: &Path,
        pace: Pace,
        screen: &Screen,
    ) -> Result<Self> {
        let logs = folder.join("logs");
        let home = folder.join("home");
        std::fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
        std::fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
        let launcher = Launcher { logs, home, screen: screen.clone() };
        let ports = Ports::choose(sandbox)?;
        let access = Access::create(folder, ports)?;

        let kubernetes = &programs.kubernetes;
        let kubectl = Kubectl::new(&launcher, kubernetes, &access);
        let control_plane = async {
            let etcd = etcd::start(&launcher, kubernetes, folder, ports).await?;
            let (api_server, cluster) =
                api_server::start(&launcher, kubernetes, folder, &access, ports).await?;
            let controllers =
                controllers::start(&launcher, kubernetes, folder, &access, &cluster, ports).await?;
            crds::install_folder(&kubectl, &programs.snapshot_crds).await?;
            crds::install_velero(&kubectl, &launcher, &programs.velero).await?;
            storage::create_classes(&cluster).await?;
            anyhow::Ok((etcd, api_server, cluster, controllers))
        };
        let ((etcd, api_server, cluster, controllers), (moto, bucket), driver) = try_join!(
            control_plane,
            bucket::start(&launcher, &programs.moto_server, ports),
            driver::start(&launcher, &programs.ours.csi_driver, folder, ports),
        )?;
        let snapshots = snapshots::start(&launcher, &programs, &access, &driver.socket, pace).await?;
        velero::install(&cluster, &bucket, folder).await?;
        let proxy = proxy::start(&access, folder).await?;
        Ok(Self {
            cluster,
            bucket,
            driver,
            access,
            kubectl,
            proxy,
            minor,
            programs,
            ports,
            launcher,
            folder: folder.to_owned(),
            velero: None,
            servers_started: 0,
            _snapshots: snapshots,
            _moto: moto,
            _controllers: controllers,
            _api_server: api_server,
            _etcd: etcd,
        })
    }

    /// The release of its servers.
    pub(crate) fn minor(&self) -> Minor {
        self.minor
    }

    /// A plugin of ours.
    pub(crate) fn plugin(&self, name: &str) -> Result<Plugin> {
        let found = self.programs.ours.plugins.iter().find(|plugin| plugin.name == name);
        Ok(found.with_context(|| format!("no plugin binary is called {name}"))?.clone())
    }

    /// The plugin that breaks the protocol as told.
    pub(crate) fn misbehaving(&self, behaviour: &str) -> Plugin {
        Plugin { name: behaviour.to_owned(), path: self.programs.ours.misbehave.clone() }
    }

    /// Where each component writes its output.
    pub(crate) fn logs(&self) -> &Path {
        &self.launcher.logs
    }

    /// Makes sure that a server runs as stated, with a restart if the running one differs.
    pub(crate) async fn server(&mut self, server: Server) -> Result<()> {
        if self.velero.as_ref().is_some_and(|(running, _)| *running == server) {
            return Ok(());
        }
        self.stop_server().await?;
        self.start_server(server).await
    }

    /// Stops the server as Kubernetes does, if one runs.
    pub(crate) async fn stop_server(&mut self) -> Result<()> {
        match self.velero.take() {
            Some((_, velero)) => velero.stop().await,
            None => Ok(()),
        }
    }

    /// Starts a server and waits until it is ready. None may be running.
    pub(crate) async fn start_server(&mut self, server: Server) -> Result<()> {
        let mut velero = self.spawn_server(&server)?;
        velero.ready(&self.cluster).await?;
        self.velero = Some((server, velero));
        Ok(())
    }

    /// Starts a server that is expected to end by itself; gives its exit code and its log.
    pub(crate) async fn server_refusal(&mut self, server: &Server) -> Result<(Option<i32>, ServerLog)> {
        self.stop_server().await?;
        let mut velero = self.spawn_server(server)?;
        let code = velero.refusal(Duration::from_secs(60)).await?;
        Ok((code, velero.log.clone()))
    }

    /// Kills the server, leaving its plugins to themselves; gives how it was started.
    pub(crate) async fn kill_server(&mut self) -> Result<Server> {
        let (server, velero) = self.velero.take().context("no server runs")?;
        velero.kill_alone().await?;
        Ok(server)
    }

    /// The running server's log.
    pub(crate) fn server_log(&self) -> Result<&ServerLog> {
        self.velero.as_ref().map(|(_, velero)| &velero.log).context("no server runs")
    }

    /// How many processes of the plugin run, on this stack's servers that are or were.
    pub(crate) fn plugin_processes(&self, name: &str) -> Result<usize> {
        Ok(self.plugin_ids(name)?.len())
    }

    /// Kills the processes of the plugin; gives their number.
    pub(crate) fn kill_plugin(&self, name: &str) -> Result<usize> {
        let ids = self.plugin_ids(name)?;
        for id in &ids {
            kill(*id, Signal::SIGKILL).with_context(|| format!("cannot kill {name}"))?;
        }
        Ok(ids.len())
    }

    fn plugin_ids(&self, name: &str) -> Result<Vec<Pid>> {
        let mut ids = Vec::new();
        for entry in std::fs::read_dir("/proc").context("cannot read /proc")? {
            // A process may end while it is looked at.
            let path = entry?.path();
            let Ok(command) = std::fs::read(path.join("cmdline")) else { continue };
            let program = command.split(|byte| *byte == 0).next().unwrap_or_default();
            let program = PathBuf::from(String::from_utf8_lossy(program).into_owned());
            if program.starts_with(&self.folder) && program.file_name().is_some_and(|file| file == name) {
                let id = path.file_name().and_then(|id| id.to_str()?.parse().ok());
                ids.push(Pid::from_raw(id.with_context(|| format!("{} is no process", path.display()))?));
            }
        }
        Ok(ids)
    }

    pub(crate) async fn application(&self, namespace: &str, claims: usize) -> Result<Application> {
        Application::create(&self.cluster, namespace, claims).await
    }

    /// Requests a backup of the application's namespace; `spec` is laid over the defaults.
    pub(crate) async fn backup(&self, name: &str, application: &Application, spec: &Value) -> Result<Backup> {
        Backup::request(&self.cluster, &self.bucket, name, &application.namespace, spec).await
    }

    /// Requests a restore of the backup; `spec` is laid over the defaults.
    pub(crate) async fn restore(&self, name: &str, backup: &Backup, spec: &Value) -> Result<Restore> {
        Restore::request(&self.cluster, &self.bucket, name, backup, spec).await
    }

    /// The directory that is the volume of a bound claim.
    pub(crate) async fn volume(&self, namespace: &str, claim: &str) -> Result<PathBuf> {
        let found = self.cluster.get(CLAIM, namespace, claim).await?;
        let found = found.with_context(|| format!("there is no claim {namespace}/{claim}"))?;
        let volume = text(&found, "/spec/volumeName");
        let volume = self.cluster.get(VOLUME, "", volume).await?;
        let volume =
            volume.with_context(|| format!("claim {namespace}/{claim} is bound to nothing: {found}"))?;
        Ok(self.driver.volume(text(&volume, "/spec/csi/volumeHandle")))
    }

    fn spawn_server(&mut self, server: &Server) -> Result<Velero> {
        self.servers_started += 1;
        let number = self.servers_started;
        let kubeconfig = if server.through_proxy { &self.proxy.kubeconfig } else { &self.access.kubeconfig };
        velero::spawn(&self.launcher, &self.programs, &self.folder, kubeconfig, self.ports, server, number)
    }
}
