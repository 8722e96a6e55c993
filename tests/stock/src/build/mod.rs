//! Makes everything that a stack is started from: Go programs, a Python environment and our own binaries.

pub mod cargo;
pub mod go;
mod python;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::minor::Minor;
use crate::screen::Screen;

pub use cargo::{Ours, Plugin};

/// Where each program of one stack lies. Written by the process that builds, read by the one that runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Programs {
    /// etcd, the control plane and kubectl in one, chosen by its first argument.
    pub kubernetes: PathBuf,
    /// The controller beside the CSI sidecars.
    pub snapshot_controller: PathBuf,
    /// The sidecar that takes snapshots.
    pub csi_snapshotter: PathBuf,
    /// The sidecar that makes volumes.
    pub csi_provisioner: PathBuf,
    /// Folder of the `VolumeSnapshot` custom resource definitions.
    pub snapshot_crds: PathBuf,
    /// Velero's own object store plugin for S3.
    pub object_store_plugin: PathBuf,
    /// Server, client and built-in plugins in one.
    pub velero: PathBuf,
    /// S3 and EC2.
    pub moto_server: PathBuf,
    /// What this workspace builds.
    pub ours: Ours,
}

/// The cache: one folder for everything that is built, keyed by what it is built from.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// In the folder `root`, which need not exist.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// `$VELERO_STOCK_CACHE`, else a folder in the user's cache.
    ///
    /// # Errors
    /// When neither that variable nor a home is set.
    pub fn from_environment() -> Result<Self> {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(root) = var("VELERO_STOCK_CACHE") {
            return Ok(Self::new(root));
        }
        let Some(cache) = var("XDG_CACHE_HOME").or_else(|| var("HOME").map(|home| home.join(".cache")))
        else {
            bail!("no place for the built programs: set VELERO_STOCK_CACHE to a folder");
        };
        Ok(Self::new(cache.join("velero-plugins").join("stock")))
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of one thing built, named by the digest of its inputs: a change makes a new folder.
    fn entry(&self, name: &str, key: &str) -> PathBuf {
        self.root.join("bin").join(format!("{name}-{key}"))
    }
}

/// A digest's first 8 bytes in hexadecimal: enough to tell the builds of one thing apart.
fn short(digest: Sha256) -> String {
    let first = digest.finalize().iter().take(8).fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte));
    format!("{first:016x}")
}

/// Whether the server of `minor` was built before, so that a run need not wait for it.
///
/// # Errors
/// When the files that it is built from cannot be read.
pub fn is_cached(cache: &Cache, minor: Minor) -> Result<bool> {
    Ok(go::built(cache, &go::velero(minor))?.is_some())
}

/// Whether everything that is not built yet can be built on this machine.
///
/// # Errors
/// When a tool is missing that something unbuilt needs: the text names each tool and how to install it.
pub fn check_tools(cache: &Cache, minors: &[Minor]) -> Result<()> {
    let mut modules = vec![go::KUBERNETES, go::SIDECARS, go::OBJECT_STORE_PLUGIN];
    modules.extend(minors.iter().copied().map(go::velero));
    let mut missing = Vec::new();
    for module in &modules {
        if go::built(cache, module)?.is_none() {
            missing.extend(go::missing_tool());
            break;
        }
    }
    if python::built(cache)?.is_none() {
        missing.extend(python::missing_tool());
    }
    ensure!(missing.is_empty(), "the stack cannot be built on this machine\n  {}", missing.join("\n  "));
    Ok(())
}

/// Builds what is missing of others' programs for a run on `minor`, and says where all of it lies.
///
/// # Errors
/// When a download, a compiler or an installation fails.
pub fn programs(cache: &Cache, minor: Minor, ours: &Ours, screen: &Screen) -> Result<Programs> {
    let modules = [go::velero(minor), go::KUBERNETES, go::SIDECARS, go::OBJECT_STORE_PLUGIN];
    let [velero, kubernetes, sidecars, object_store] = modules;
    let velero = go::build(cache, &velero, screen)?;
    let kubernetes = go::build(cache, &kubernetes, screen)?;
    let sidecars = go::build(cache, &sidecars, screen)?;
    let object_store = go::build(cache, &object_store, screen)?;
    let moto = python::build(cache, screen)?;
    Ok(Programs {
        kubernetes: kubernetes.join("kubernetes"),
        snapshot_controller: sidecars.join("snapshot-controller"),
        csi_snapshotter: sidecars.join("csi-snapshotter"),
        csi_provisioner: sidecars.join("csi-provisioner"),
        snapshot_crds: sidecars.join("crds"),
        object_store_plugin: object_store.join("velero-plugin-for-aws"),
        velero: velero.join("velero"),
        moto_server: moto.join("bin").join("moto_server"),
        ours: ours.clone(),
    })
}

/// The CSI conformance suite, built on demand: no stack needs it.
///
/// # Errors
/// When it is not there and cannot be built.
pub fn csi_sanity(cache: &Cache, screen: &Screen) -> Result<PathBuf> {
    if go::built(cache, &go::CSI_SANITY)?.is_none()
        && let Some(missing) = go::missing_tool()
    {
        bail!("csi-sanity cannot be built on this machine\n  {missing}");
    }
    Ok(go::build(cache, &go::CSI_SANITY, screen)?.join("csi-sanity"))
}

/// The CSI driver of the tests alone.
///
/// # Errors
/// When cargo fails.
pub fn csi_driver(screen: &Screen) -> Result<PathBuf> {
    cargo::csi_driver(screen)
}
