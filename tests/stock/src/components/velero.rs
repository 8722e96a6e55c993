//! The Velero server: what it needs in the cluster, its start with a choice of plugins, and its restart.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use super::bucket::{self, Bucket};
use crate::build::{Plugin, Programs};
use crate::cluster::{Cluster, DEPLOYMENT, NAMESPACE, SERVER_STATUS, STORAGE_LOCATION, text};
use crate::ports::Ports;
use crate::process::{Launcher, Process};
use crate::server_log::ServerLog;
use crate::wait::{Look, until};

pub(crate) const VELERO_NAMESPACE: &str = "velero";

/// The location's first validation has to wait for a plugin process.
const READY_LIMIT: Duration = Duration::from_secs(90);

/// How a server is started. A scenario states it; the stack restarts the server when the next one differs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Server {
    /// `--features=EnableCSI`: the built-in CSI actions take part.
    pub(crate) enable_csi: bool,
    /// Plugin binaries beside the object store's.
    pub(crate) plugins: Vec<Plugin>,
    /// Server and plugins reach the API server through the fault proxy.
    pub(crate) through_proxy: bool,
    /// `--item-operation-sync-frequency`; else Velero's own 10 s.
    pub(crate) progress_interval: Option<Duration>,
    /// `--resource-timeout`; else Velero's own 10 min.
    pub(crate) resource_timeout: Option<Duration>,
    /// Settings of its plugins, which have its environment.
    pub(crate) environment: Vec<(&'static str, &'static str)>,
}

/// A started server.
#[derive(Debug)]
pub(crate) struct Velero {
    process: Process,
    pub(crate) log: ServerLog,
}

/// Creates what an installation has besides the definitions: namespace, location, deployment.
pub(crate) async fn install(cluster: &Cluster, bucket: &Bucket, folder: &Path) -> Result<()> {
    let credentials = "[default]\naws_access_key_id=stock\naws_secret_access_key=stock\n";
    fs::write(credentials_file(folder), credentials)?;
    cluster.create(NAMESPACE, "", json!({"metadata": {"name": VELERO_NAMESPACE}})).await?;
    let location = json!({
        "metadata": {"name": "default"},
        "spec": {
            "provider": "velero.io/aws",
            "default": true,
            "objectStorage": {"bucket": bucket::NAME},
            // No "credential": Velero would write it to /tmp/credentials, where servers side by side overwrite each other.
            "config": {"region": "us-east-1", "s3ForcePathStyle": "true", "s3Url": bucket.url()},
        },
    });
    cluster.create(STORAGE_LOCATION, VELERO_NAMESPACE, location).await?;
    // Every restore looks this up and ends PartiallyFailed without it. No controller of pods runs, so it is a name only.
    let labels = json!({"component": "velero", "deploy": "velero"});
    let deployment = json!({
        "metadata": {"name": "velero"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "velero", "image": "velero"}]}},
        },
    });
    cluster.create(DEPLOYMENT, VELERO_NAMESPACE, deployment).await?;
    Ok(())
}

/// Starts a server; it need not become ready.
pub(crate) fn spawn(
    launcher: &Launcher,
    programs: &Programs,
    folder: &Path,
    kubeconfig: &Path,
    ports: Ports,
    server: &Server,
    number: usize,
) -> Result<Velero> {
    let plugin_dir = folder.join(format!("plugins-{number}"));
    fs::create_dir_all(&plugin_dir)?;
    let object_store =
        Plugin { name: "velero-plugin-for-aws".to_owned(), path: programs.object_store_plugin.clone() };
    for plugin in server.plugins.iter().chain([&object_store]) {
        // Velero takes the mode of the entry itself, so no symbolic link.
        let target = plugin_dir.join(&plugin.name);
        if fs::hard_link(&plugin.path, &target).is_err() {
            fs::copy(&plugin.path, &target)
                .with_context(|| format!("cannot copy {}", plugin.path.display()))?;
        }
    }
    let mut command = launcher.command(&programs.velero);
    command
        .arg("server")
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args([
            "--namespace",
            VELERO_NAMESPACE,
            "--log-level",
            "debug",
            "--log-format",
            "json",
            "--plugin-dir",
        ])
        .arg(&plugin_dir)
        .arg(format!("--metrics-address=127.0.0.1:{}", ports.velero_metrics))
        .arg(format!("--profiler-address=127.0.0.1:{}", ports.velero_profiler))
        .env("KUBECONFIG", kubeconfig)
        .env("VELERO_NAMESPACE", VELERO_NAMESPACE)
        .env("AWS_SHARED_CREDENTIALS_FILE", credentials_file(folder))
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .envs(server.environment.iter().copied());
    if server.enable_csi {
        command.arg("--features=EnableCSI");
    }
    if let Some(interval) = server.progress_interval {
        command.arg(format!("--item-operation-sync-frequency={}s", interval.as_secs()));
    }
    if let Some(timeout) = server.resource_timeout {
        command.arg(format!("--resource-timeout={}s", timeout.as_secs()));
    }
    let process = launcher.start(&format!("velero-{number}"), command)?;
    let log = ServerLog::at(process.log());
    Ok(Velero { process, log })
}

impl Velero {
    /// Waits until the server answers requests and the backup location is Available.
    pub(crate) async fn ready(&mut self, cluster: &Cluster) -> Result<()> {
        let request = cluster
            .create(
                SERVER_STATUS,
                VELERO_NAMESPACE,
                json!({"metadata": {"generateName": "stock-"}, "spec": {}}),
            )
            .await?;
        let name = text(&request, "/metadata/name");
        self.process
            .ready(READY_LIMIT, || async {
                let answer = cluster.get(SERVER_STATUS, VELERO_NAMESPACE, name).await;
                let location = cluster.get(STORAGE_LOCATION, VELERO_NAMESPACE, "default").await;
                matches!(answer, Ok(Some(answer)) if text(&answer, "/status/phase") == "Processed")
                    && matches!(location, Ok(Some(location)) if text(&location, "/status/phase") == "Available")
            })
            .await
    }

    /// Waits for a server that is expected to refuse its plugins; gives its exit code.
    pub(crate) async fn refusal(&mut self, limit: Duration) -> Result<Option<i32>> {
        Ok(self.process.ended(limit).await?.code())
    }

    /// Ends the server as Kubernetes does: SIGTERM, then SIGKILL for the whole group.
    pub(crate) async fn stop(self) -> Result<()> {
        self.process.stop(Duration::from_secs(10)).await
    }

    /// Kills the server alone: its plugins lose their host without a word.
    pub(crate) async fn kill_alone(self) -> Result<()> {
        self.process.kill_alone().await
    }
}

/// Names of the plugins that the server has registered, sorted.
pub(crate) async fn registered(cluster: &Cluster) -> Result<Vec<String>> {
    let request = json!({"metadata": {"generateName": "stock-"}, "spec": {}});
    let request = cluster.create(SERVER_STATUS, VELERO_NAMESPACE, request).await?;
    let name = text(&request, "/metadata/name").to_owned();
    until("the server's list of plugins", Duration::from_secs(20), || async {
        let Some(answer) = cluster.get(SERVER_STATUS, VELERO_NAMESPACE, &name).await? else {
            return Ok(Look::NotYet("the request is gone".to_owned()));
        };
        if text(&answer, "/status/phase") != "Processed" {
            return Ok(Look::NotYet(answer["status"].to_string()));
        }
        let plugins = answer.pointer("/status/plugins").and_then(|plugins| plugins.as_array()).cloned();
        let mut names: Vec<String> =
            plugins.unwrap_or_default().iter().map(|plugin| text(plugin, "/name").to_owned()).collect();
        names.sort();
        Ok(Look::Found(names))
    })
    .await
}

fn credentials_file(folder: &Path) -> PathBuf {
    folder.join("cloud-credentials")
}
