//! The snapshot controller and the two CSI sidecars that drive the driver of the tests.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::api_server::Access;
use crate::build::Programs;
use crate::process::{Launcher, Process};

/// How many requests a second the controllers allow themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub(crate) enum Pace {
    /// 100: their own limit would be seen instead of Velero.
    #[default]
    Lifted,
    /// Their default.
    Default,
}

impl Pace {
    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Lifted => &["--kube-api-qps=100", "--kube-api-burst=200"],
            Self::Default => &[],
        }
    }

    /// For people.
    pub(crate) fn told(self) -> &'static str {
        match self {
            Self::Lifted => "controllers at 100 requests/s",
            Self::Default => "controllers at their default of 5 requests/s",
        }
    }

    /// How soon csi-actions shall have cut ten snapshots.
    pub(crate) fn goal_for_ten(self) -> &'static str {
        match self {
            Self::Lifted => "≤ 3 s",
            Self::Default => "≤ 12 s",
        }
    }
}

/// A refused call is tried again soon; with the default of a second and doubling, a scenario would wait for it.
const RETRY: [&str; 1] = ["--retry-interval-start=200ms"];

/// The driver learns the names of claims and snapshots, so that faults can be ordered for one of them.
const METADATA: &str = "--extra-create-metadata";

/// Snapshots of several volumes at once, which are off by default.
const GROUPS: &str = "--feature-gates=CSIVolumeGroupSnapshot=true";

/// The three processes; none of them listens, so that they run is all that can be asked.
#[derive(Debug)]
pub(crate) struct Snapshots {
    _controller: Process,
    _snapshotter: Process,
    _provisioner: Process,
}

/// Starts all three. The driver must serve `socket` already: the sidecars end at once when it does not.
pub(crate) async fn start(
    launcher: &Launcher,
    programs: &Programs,
    access: &Access,
    socket: &Path,
    pace: Pace,
) -> Result<Snapshots> {
    let kubeconfig = format!("--kubeconfig={}", access.kubeconfig.display());
    let address = format!("--csi-address={}", socket.display());

    let mut controller = launcher.command(&programs.snapshot_controller);
    controller.args([&kubeconfig, "--leader-election=false", GROUPS]).args(RETRY).args(pace.flags());
    let mut controller = launcher.start("snapshot-controller", controller)?;

    let mut snapshotter = launcher.command(&programs.csi_snapshotter);
    snapshotter.args([&kubeconfig, &address, METADATA, GROUPS]).args(RETRY).args(pace.flags());
    let mut snapshotter = launcher.start("csi-snapshotter", snapshotter)?;

    let mut provisioner = launcher.command(&programs.csi_provisioner);
    provisioner
        .args([&kubeconfig, &address, METADATA, "--feature-gates=Topology=false"])
        .args(RETRY)
        .args(pace.flags());
    let mut provisioner = launcher.start("csi-provisioner", provisioner)?;

    for process in [&mut controller, &mut snapshotter, &mut provisioner] {
        still_runs(process).await?;
    }
    Ok(Snapshots { _controller: controller, _snapshotter: snapshotter, _provisioner: provisioner })
}

/// A wrong flag or a driver that it dislikes ends a sidecar within milliseconds.
async fn still_runs(process: &mut Process) -> Result<()> {
    if let Ok(status) = process.ended(Duration::from_millis(200)).await {
        bail!("it ended with {status} while starting\n{}", process.last_lines());
    }
    Ok(())
}
