//! kube-apiserver with certificates of its own and the kubeconfig that leads to it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::START_LIMIT;
use crate::cluster::Cluster;
use crate::ports::Ports;
use crate::process::{Launcher, Process};

const ADMIN_TOKEN: &str = "stock-admin";

/// Files that the API server and its neighbours share.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) kubeconfig: PathBuf,
    /// Signs service account tokens.
    pub(crate) service_account_key: PathBuf,
    service_account_public: PathBuf,
    ca: PathBuf,
    cert: PathBuf,
    key: PathBuf,
    tokens: PathBuf,
}

impl Access {
    /// Makes a certificate authority, a server certificate for loopback, the key of service account tokens, an
    /// administrator's token and a kubeconfig.
    pub(crate) fn create(folder: &Path, ports: Ports) -> Result<Self> {
        let access = Self {
            kubeconfig: folder.join("kubeconfig"),
            service_account_key: folder.join("service-account.key"),
            service_account_public: folder.join("service-account.pub"),
            ca: folder.join("ca.crt"),
            cert: folder.join("api-server.crt"),
            key: folder.join("api-server.key"),
            tokens: folder.join("tokens.csv"),
        };
        let ca_key = KeyPair::generate()?;
        let mut ca = CertificateParams::new(Vec::new())?;
        ca.distinguished_name.push(DnType::CommonName, "stock");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_cert = ca.self_signed(&ca_key)?;
        let key = KeyPair::generate()?;
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let cert = CertificateParams::new(names)?.signed_by(&key, &Issuer::new(ca, ca_key))?;
        fs::write(&access.ca, ca_cert.pem())?;
        fs::write(&access.cert, cert.pem())?;
        fs::write(&access.key, key.serialize_pem())?;
        let accounts = KeyPair::generate()?;
        fs::write(&access.service_account_key, accounts.serialize_pem())?;
        fs::write(&access.service_account_public, accounts.public_key_pem())?;
        fs::write(&access.tokens, format!("{ADMIN_TOKEN},admin,admin,\"system:masters\"\n"))?;
        fs::write(&access.kubeconfig, access.kubeconfig_to(&format!("https://127.0.0.1:{}", ports.api)))?;
        Ok(access)
    }

    /// A kubeconfig with the administrator's rights for a server at `url`: the API server or something before it.
    pub(crate) fn kubeconfig_to(&self, url: &str) -> String {
        serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "stock", "cluster": {"server": url, "certificate-authority": self.ca}}],
            "users": [{"name": "admin", "user": {"token": ADMIN_TOKEN}}],
            "contexts": [{"name": "stock", "context": {"cluster": "stock", "user": "admin", "namespace": "velero"}}],
            "current-context": "stock",
        })
        .to_string()
    }
}

pub(crate) async fn start(
    launcher: &Launcher,
    kubernetes: &Path,
    folder: &Path,
    access: &Access,
    ports: Ports,
) -> Result<(Process, Cluster)> {
    let mut command = launcher.command(kubernetes);
    command
        .arg("kube-apiserver")
        .arg(format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd))
        .arg(format!("--secure-port={}", ports.api))
        .arg("--bind-address=127.0.0.1")
        // With loopback alone there is no address to choose from. Nobody connects to this one (RFC 5737).
        .args(["--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none"])
        .arg(format!("--cert-dir={}", folder.join("certs").display()))
        .arg(format!("--tls-cert-file={}", access.cert.display()))
        .arg(format!("--tls-private-key-file={}", access.key.display()))
        .arg(format!("--service-account-key-file={}", access.service_account_public.display()))
        .arg(format!("--service-account-signing-key-file={}", access.service_account_key.display()))
        .arg("--service-account-issuer=https://kubernetes.default.svc")
        .arg(format!("--token-auth-file={}", access.tokens.display()))
        .args(["--authorization-mode=RBAC", "--allow-privileged", "--service-cluster-ip-range=10.96.0.0/16"])
        // A stack that is killed has nobody to wait for.
        .arg("--shutdown-delay-duration=0s");
    let mut process = launcher.start("kube-apiserver", command)?;
    let cluster = Cluster::from_kubeconfig(&access.kubeconfig).await?;
    process.ready(START_LIMIT, || cluster.ready()).await?;
    Ok((process, cluster))
}
