//! The classes that lead claims and snapshots to the driver of the tests.

use anyhow::Result;
use serde_json::json;

use super::driver;
use crate::cluster::{CSI_DRIVER, Cluster, GROUP_CLASS, SNAPSHOT_CLASS, STORAGE_CLASS};

/// The classes for volumes, snapshots and groups have the same name.
pub(crate) const CLASS: &str = "stock";

pub(crate) async fn create_classes(cluster: &Cluster) -> Result<()> {
    let driver = json!({
        "metadata": {"name": driver::NAME},
        "spec": {"attachRequired": false, "podInfoOnMount": false},
    });
    cluster.create(CSI_DRIVER, "", driver).await?;
    create_class(cluster, CLASS).await?;
    let snapshot_class = json!({
        "metadata": {"name": CLASS, "labels": {"velero.io/csi-volumesnapshot-class": "true"}},
        "driver": driver::NAME,
        "deletionPolicy": "Delete",
    });
    cluster.create(SNAPSHOT_CLASS, "", snapshot_class).await?;
    let group_class = json!({
        "metadata": {"name": CLASS, "labels": {"velero.io/csi-volumegroupsnapshot-class": "true"}},
        "driver": driver::NAME,
        "deletionPolicy": "Delete",
    });
    cluster.create(GROUP_CLASS, "", group_class).await?;
    Ok(())
}

/// A storage class that leads claims to the driver.
pub(crate) async fn create_class(cluster: &Cluster, name: &str) -> Result<()> {
    let storage_class = json!({
        "metadata": {"name": name},
        "provisioner": driver::NAME,
        "reclaimPolicy": "Delete",
        // Binds without a scheduler and without a pod.
        "volumeBindingMode": "Immediate",
    });
    cluster.create(STORAGE_CLASS, "", storage_class).await?;
    Ok(())
}
