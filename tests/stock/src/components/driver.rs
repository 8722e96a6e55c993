//! The CSI driver of the tests: its start, and what it is asked about the storage.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Result;
use csi_driver::control::Client;

use super::START_LIMIT;
use crate::ports::Ports;
use crate::process::{Launcher, Process};

/// The driver's name in classes and volumes.
pub(crate) const NAME: &str = "csi.velero-rs.test";

/// The running driver.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) socket: PathBuf,
    /// Orders faults, and knows what the storage really holds.
    pub(crate) control: Client,
    storage: PathBuf,
    _process: Process,
}

pub(crate) async fn start(
    launcher: &Launcher,
    program: &Path,
    folder: &Path,
    ports: Ports,
) -> Result<Driver> {
    let socket = folder.join("csi.sock");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports.driver_control));
    let storage = folder.join("storage");
    let mut command = launcher.command(program);
    command
        .arg("--endpoint")
        .arg(format!("unix://{}", socket.display()))
        .arg("--state-dir")
        .arg(&storage)
        .args(["--control", &address.to_string(), "--driver-name", NAME]);
    let mut process = launcher.start("csi-driver", command)?;
    let control = Client::new(address)?;
    process.ready(START_LIMIT, || async { socket.exists() && control.health().await.is_ok() }).await?;
    Ok(Driver { socket, control, storage, _process: process })
}

impl Driver {
    /// Handles of the snapshots that the storage holds, sorted.
    pub(crate) async fn snapshots(&self) -> Result<Vec<String>> {
        let mut handles: Vec<String> =
            self.control.snapshots().await?.into_iter().map(|view| view.snapshot.id).collect();
        handles.sort();
        Ok(handles)
    }

    /// The directory that is the volume of this handle.
    pub(crate) fn volume(&self, handle: &str) -> PathBuf {
        self.storage.join("volumes").join(handle)
    }
}
