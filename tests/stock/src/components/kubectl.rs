//! kubectl, as a user calls it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use tokio::io::AsyncWriteExt;

use super::api_server::Access;
use crate::process::Launcher;

/// kubectl with the rights of an administrator.
#[derive(Clone, Debug)]
pub(crate) struct Kubectl {
    launcher: Launcher,
    kubernetes: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    pub(crate) fn new(launcher: &Launcher, kubernetes: &Path, access: &Access) -> Self {
        let (launcher, kubernetes) = (launcher.clone(), kubernetes.to_owned());
        Self { launcher, kubernetes, kubeconfig: access.kubeconfig.clone() }
    }

    /// Gives it something to read; what it prints.
    ///
    /// # Errors
    /// When it fails; with its words.
    pub(crate) async fn run(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>> {
        let mut command = self.launcher.command(&self.kubernetes);
        command.arg("kubectl").arg("--kubeconfig").arg(&self.kubeconfig).args(arguments);
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
        Ok(output.stdout)
    }
}
