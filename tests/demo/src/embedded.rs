//! A cluster and a storage that live in this process.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use cluster::Cluster;
use cluster::simulator::{Driver, Settings, Simulator};
use demo::checks::Stored;
use demo::shop::{self, CLAIMS, NAMESPACE};
use serde_json::{Value, json};
use velero_host::cluster::ApiCluster;

use crate::story::{Means, Scene, Story};

const BACKUP: &str = "shop-nightly";
const DRIVER: &str = "disk.csi.example";
/// Far above what the provisioner takes.
const BOUND_WITHIN: Duration = Duration::from_secs(30);

/// The cluster and its storage, until dropped.
struct Embedded {
    cluster: Cluster,
    simulator: Simulator,
    kubeconfig: PathBuf,
}

/// Tells the story; what runs is killed when this is dropped.
pub(crate) async fn tell(means: Means<'_>) -> Result<ExitCode> {
    let scene = Embedded::set(means.folder).await?;
    means.show.line(&shop::told());
    let mut story = Story::begin(means, &scene, BACKUP).await?;
    story.back_up().await?;
    story.finalize().await?;
    story.look_into_the_archive().await?;
    story.delete().await?;
    Ok(story.end())
}

impl Embedded {
    /// Starts both and sets the shop up.
    async fn set(folder: &Path) -> Result<Self> {
        let cluster = Cluster::start().await.context("start the embedded cluster")?;
        let simulator = Simulator::start(&cluster, Settings::default(), &[DRIVER]);
        let kubeconfig = folder.join("kubeconfig");
        cluster.kubeconfig(&kubeconfig)?;
        let scene = Self { cluster, simulator, kubeconfig };
        for object in objects().into_iter().chain(shop::objects(NAMESPACE)) {
            scene.cluster.apply(object)?;
        }
        for claim in CLAIMS {
            scene.cluster.apply(claim.object(NAMESPACE, claim.size, "disk"))?;
            let bound =
                |claim: Option<&Value>| claim.is_some_and(|claim| claim["status"]["phase"] == "Bound");
            scene.cluster.wait("persistentvolumeclaims", NAMESPACE, claim.name, BOUND_WITHIN, bound).await?;
        }
        for fault in shop::faults() {
            scene.driver().order(fault)?;
        }
        scene.cluster.clear_requests();
        Ok(scene)
    }

    fn driver(&self) -> &Driver {
        self.simulator.driver(DRIVER)
    }
}

#[async_trait]
impl Scene for Embedded {
    fn namespace(&self) -> &str {
        NAMESPACE
    }

    fn kubeconfig_of_plugin(&self) -> &Path {
        &self.kubeconfig
    }

    async fn cluster(&self) -> Result<ApiCluster> {
        Ok(ApiCluster::connect(&self.kubeconfig).await?)
    }

    fn stored(&self) -> Option<Stored> {
        Some(Stored {
            snapshots: self.driver().read(|state| state.snapshots.len()),
            attempts: self.driver().count("CreateSnapshot"),
        })
    }

    async fn snapshot_objects(&self) -> Result<usize> {
        let count = |resource: &str| anyhow::Ok(self.cluster.list(resource, "")?.len());
        Ok(count("volumesnapshots.snapshot.storage.k8s.io")?
            + count("volumesnapshotcontents.snapshot.storage.k8s.io")?)
    }

    fn requests_of_plugin(&self) -> (usize, usize) {
        let requests = self.cluster.requests();
        let of_plugin = || requests.iter().filter(|request| request.client.starts_with("csi-actions/"));
        let failed = of_plugin().filter(|request| request.code.is_some_and(|code| code >= 500));
        (of_plugin().count(), failed.count())
    }
}

fn objects() -> Vec<Value> {
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    vec![
        namespace("velero"),
        namespace(NAMESPACE),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": "disk"}, "provisioner": DRIVER, "volumeBindingMode": "Immediate"}),
        json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
            "metadata": {"name": "disk", "labels": {"velero.io/csi-volumesnapshot-class": "true"}},
            "driver": DRIVER, "deletionPolicy": "Delete"}),
    ]
}
