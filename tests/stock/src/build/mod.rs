//! Makes everything that a stack is started from: Go programs, a Python environment and our own binaries.

mod cargo;
mod go;
mod python;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::minor::Minor;
use crate::screen::Screen;

pub(crate) use cargo::{Ours, Plugin};

/// Where each program of one stack lies. Written by the process that builds, read by the one that runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Programs {
    /// etcd, the control plane and kubectl in one, chosen by its first argument.
    pub(crate) kubernetes: PathBuf,
    pub(crate) snapshot_controller: PathBuf,
    pub(crate) csi_snapshotter: PathBuf,
    pub(crate) csi_provisioner: PathBuf,
    /// Folder of the `VolumeSnapshot` custom resource definitions.
    pub(crate) snapshot_crds: PathBuf,
    /// Velero's own object store plugin for S3.
    pub(crate) object_store_plugin: PathBuf,
    pub(crate) velero: PathBuf,
    pub(crate) moto_server: PathBuf,
    pub(crate) ours: Ours,
}

/// The cache: one folder for everything that is built, keyed by what it is built from.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    root: PathBuf,
}

impl Cache {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// `$VELERO_STOCK_CACHE`, else a folder in the user's cache.
    pub(crate) fn from_environment() -> Result<Self> {
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

    pub(crate) fn root(&self) -> &Path {
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
pub(crate) fn is_cached(cache: &Cache, minor: Minor) -> Result<bool> {
    Ok(go::built(cache, &go::velero(minor))?.is_some())
}

/// Whether everything that is not built yet can be built on this machine.
///
/// # Errors
/// When a tool is missing that something unbuilt needs: the text names each tool and how to install it.
pub(crate) fn check_tools(cache: &Cache, minors: &[Minor]) -> Result<()> {
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
pub(crate) fn programs(cache: &Cache, minor: Minor, ours: &Ours, screen: &Screen) -> Result<Programs> {
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
pub(crate) fn csi_sanity(cache: &Cache, screen: &Screen) -> Result<PathBuf> {
    if go::built(cache, &go::CSI_SANITY)?.is_none()
        && let Some(missing) = go::missing_tool()
    {
        bail!("csi-sanity cannot be built on this machine\n  {missing}");
    }
    Ok(go::build(cache, &go::CSI_SANITY, screen)?.join("csi-sanity"))
}

/// The CSI driver of the tests alone.
pub(crate) fn csi_driver(screen: &Screen) -> Result<PathBuf> {
    cargo::csi_driver(screen)
}
