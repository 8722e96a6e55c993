//! The custom resource definitions of the snapshotter and of Velero.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::kubectl::Kubectl;
use crate::process::Launcher;

/// Installs every definition in a folder and waits until each is served.
pub(crate) async fn install_folder(kubectl: &Kubectl, folder: &Path) -> Result<()> {
    kubectl.run(&["apply", "--server-side", "-f", &folder.to_string_lossy()], &[]).await?;
    established(kubectl).await
}

/// Installs the definitions that this Velero brings, as its own `install` command prints them.
pub(crate) async fn install_velero(kubectl: &Kubectl, launcher: &Launcher, velero: &Path) -> Result<()> {
    let mut print = launcher.command(velero);
    print.args(["install", "--crds-only", "--dry-run", "-o", "json"]);
    let printed = print.output().await.context("cannot start velero install")?;
    ensure!(
        printed.status.success(),
        "velero install ended with {}: {}",
        printed.status,
        String::from_utf8_lossy(&printed.stderr)
    );
    kubectl.run(&["apply", "--server-side", "-f", "-"], &printed.stdout).await?;
    established(kubectl).await
}

async fn established(kubectl: &Kubectl) -> Result<()> {
    let wait = ["wait", "--for=condition=Established", "customresourcedefinitions", "--all", "--timeout=60s"];
    kubectl.run(&wait, &[]).await?;
    Ok(())
}
