//! The custom resource definitions of the snapshotter and of Velero.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::api_server::Access;
use crate::process::Launcher;

/// Installs every definition in a folder and waits until each is served.
pub(crate) async fn install_folder(
    launcher: &Launcher,
    kubernetes: &Path,
    access: &Access,
    folder: &Path,
) -> Result<()> {
    kubectl(launcher, kubernetes, access, &["apply", "--server-side", "-f", &folder.to_string_lossy()], &[])
        .await?;
    established(launcher, kubernetes, access).await
}

/// Installs the definitions that this Velero brings, as its own `install` command prints them.
pub(crate) async fn install_velero(
    launcher: &Launcher,
    kubernetes: &Path,
    access: &Access,
    velero: &Path,
) -> Result<()> {
    let mut print = launcher.command(velero);
    print.args(["install", "--crds-only", "--dry-run", "-o", "json"]);
    let printed = print.output().await.context("cannot start velero install")?;
    ensure!(
        printed.status.success(),
        "velero install ended with {}: {}",
        printed.status,
        String::from_utf8_lossy(&printed.stderr)
    );
    kubectl(launcher, kubernetes, access, &["apply", "--server-side", "-f", "-"], &printed.stdout).await?;
    established(launcher, kubernetes, access).await
}

async fn established(launcher: &Launcher, kubernetes: &Path, access: &Access) -> Result<()> {
    let wait = ["wait", "--for=condition=Established", "customresourcedefinitions", "--all", "--timeout=60s"];
    kubectl(launcher, kubernetes, access, &wait, &[]).await
}

async fn kubectl(
    launcher: &Launcher,
    kubernetes: &Path,
    access: &Access,
    arguments: &[&str],
    input: &[u8],
) -> Result<()> {
    let mut command: Command = launcher.command(kubernetes);
    command.arg("kubectl").arg("--kubeconfig").arg(&access.kubeconfig).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot start kubectl")?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input).await?;
    }
    let output = child.wait_with_output().await?;
    ensure!(
        output.status.success(),
        "kubectl {} ended with {}: {}",
        arguments.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
