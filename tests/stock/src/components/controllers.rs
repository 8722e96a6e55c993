//! kube-controller-manager: binds volumes, ends namespaces, collects garbage. What a fake of the API forgets.

use std::path::Path;

use anyhow::Result;

use super::START_LIMIT;
use super::api_server::Access;
use crate::cluster::{Cluster, NAMESPACE};
use crate::ports::Ports;
use crate::process::{Launcher, Process};

pub(crate) async fn start(
    launcher: &Launcher,
    kubernetes: &Path,
    folder: &Path,
    access: &Access,
    cluster: &Cluster,
    ports: Ports,
) -> Result<Process> {
    let mut command = launcher.command(kubernetes);
    command
        .arg("kube-controller-manager")
        .arg(format!("--kubeconfig={}", access.kubeconfig.display()))
        .arg(format!("--service-account-private-key-file={}", access.service_account_key.display()))
        .arg(format!("--secure-port={}", ports.controllers))
        .arg("--bind-address=127.0.0.1")
        .arg(format!("--cert-dir={}", folder.join("certs").display()))
        .args(["--leader-elect=false", "--use-service-account-credentials=false"]);
    let mut process = launcher.start("kube-controller-manager", command)?;
    process
        .ready(START_LIMIT, || async {
            // Its service account controller is the first to leave a trace.
            let accounts = crate::cluster::SERVICE_ACCOUNT;
            matches!(cluster.get(accounts, "default", "default").await, Ok(Some(_)))
                && matches!(cluster.get(NAMESPACE, "", "kube-system").await, Ok(Some(_)))
        })
        .await?;
    Ok(process)
}
