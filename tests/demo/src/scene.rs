//! What is backed up: a shop with three volumes on a storage that is quick, slow and once in trouble.

use std::time::Duration;

use anyhow::{Context as _, Result};
use cluster::Cluster;
use cluster::simulator::{Driver, Fault, Settings, Simulator};
use serde_json::{Value, json};
use tonic::Code;

/// The namespace that is backed up.
pub(crate) const NAMESPACE: &str = "shop";
const DRIVER: &str = "disk.csi.example";
/// Far above what the provisioner takes.
const BOUND_WITHIN: Duration = Duration::from_secs(30);

/// A claim, its size, and how long the storage takes until a snapshot of it can be used.
const CLAIMS: [(&str, &str, u64); 3] = [("catalog", "2Gi", 1), ("media", "500Gi", 9), ("orders", "40Gi", 5)];
/// The claim whose first snapshot the storage refuses, for a moment.
pub(crate) const TROUBLED: &str = "orders";

/// How many volumes there are.
pub(crate) const VOLUMES: usize = CLAIMS.len();

/// The cluster and its storage, until dropped.
pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    simulator: Simulator,
}

impl Scene {
    /// Starts both and sets the shop up.
    pub(crate) async fn set() -> Result<Self> {
        let cluster = Cluster::start().await.context("start the embedded cluster")?;
        let simulator = Simulator::start(&cluster, Settings::default(), &[DRIVER]);
        let scene = Self { cluster, simulator };
        for object in objects() {
            scene.cluster.apply(object)?;
        }
        for (name, size, seconds) in CLAIMS {
            scene.cluster.apply(claim(name, size))?;
            let bound =
                |claim: Option<&Value>| claim.is_some_and(|claim| claim["status"]["phase"] == "Bound");
            scene.cluster.wait("persistentvolumeclaims", NAMESPACE, name, BOUND_WITHIN, bound).await?;
            let volume = format!("{NAMESPACE}/{name}");
            let slow =
                Fault::on("CreateSnapshot").volume(volume.as_str()).ready_after(Duration::from_secs(seconds));
            scene.driver().order(slow)?;
            if name == TROUBLED {
                let trouble = Fault::on("CreateSnapshot").volume(volume.as_str()).times(1);
                scene.driver().order(trouble.error(Code::Unavailable, "the array is busy"))?;
            }
        }
        scene.cluster.clear_requests();
        Ok(scene)
    }

    fn driver(&self) -> &Driver {
        self.simulator.driver(DRIVER)
    }

    /// Snapshots in the storage.
    pub(crate) fn snapshots(&self) -> usize {
        self.driver().read(|state| state.snapshots.len())
    }

    /// How often the driver was asked for a snapshot.
    pub(crate) fn attempts(&self) -> usize {
        self.driver().count("CreateSnapshot")
    }

    /// Objects of the snapshot API in the cluster.
    pub(crate) fn snapshot_objects(&self) -> Result<usize> {
        let count = |resource: &str| anyhow::Ok(self.cluster.list(resource, "")?.len());
        Ok(count("volumesnapshots.snapshot.storage.k8s.io")?
            + count("volumesnapshotcontents.snapshot.storage.k8s.io")?)
    }

    /// Requests of the plugin to the API server: all, and those that failed.
    pub(crate) fn requests_of_plugin(&self) -> (usize, usize) {
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
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": NAMESPACE}, "data": {"currency": "EUR"}}),
        json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "database", "namespace": NAMESPACE}, "data": {"password": "aHVudGVyMg=="}}),
    ]
}

fn claim(name: &str, size: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "disk",
            "resources": {"requests": {"storage": size}}}})
}
