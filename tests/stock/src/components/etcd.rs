//! etcd, the store under the API server.

use std::path::Path;

use anyhow::Result;

use super::START_LIMIT;
use crate::http::Http;
use crate::ports::Ports;
use crate::process::{Launcher, Process};

pub(crate) async fn start(
    launcher: &Launcher,
    kubernetes: &Path,
    folder: &Path,
    ports: Ports,
) -> Result<Process> {
    let clients = format!("http://127.0.0.1:{}", ports.etcd);
    let peers = format!("http://127.0.0.1:{}", ports.etcd_peers);
    let mut command = launcher.command(kubernetes);
    command
        .arg("etcd")
        .arg("--data-dir")
        .arg(folder.join("etcd"))
        .args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients])
        .args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers])
        .args(["--initial-cluster", &format!("default={peers}")])
        // The data is worth nothing after a crash, and disks of test machines are slow.
        .arg("--unsafe-no-fsync");
    let mut process = launcher.start("etcd", command)?;
    let http = Http::to(ports.etcd)?;
    process.ready(START_LIMIT, || http.answers("/health")).await?;
    Ok(process)
}
