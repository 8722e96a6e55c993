//! A whole round of polls against an embedded Kubernetes API, and what it costs there.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use cluster::Cluster;
use serde::Serialize;
use serde_json::{Value, json};

use crate::client::{self, Client, Plugin};
use crate::item;
use crate::subject::Polled;

/// A new process was asked about each operation in turn.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    #[serde(flatten)]
    pub(crate) polled: client::Polled,
    /// Requests that listed objects.
    pub(crate) lists: usize,
    /// All other requests.
    pub(crate) others: usize,
    /// All requests by verb and resource.
    pub(crate) requests: BTreeMap<String, usize>,
}

/// A cluster with so many snapshots under way; every other one is ready.
#[derive(Debug)]
pub(crate) struct Bed {
    cluster: Cluster,
    operations: usize,
}

impl Bed {
    pub(crate) async fn new(operations: usize) -> Result<Self> {
        let cluster = Cluster::start().await.context("the embedded API does not start")?;
        for name in ["app", "velero"] {
            cluster.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))?;
        }
        for number in 0..operations {
            let snapshot = cluster.apply(snapshot(number))?;
            let snapshot_uid = snapshot["metadata"]["uid"].as_str().unwrap_or_default();
            cluster.apply(content(number, snapshot_uid))?;
        }
        Ok(Self { cluster, operations })
    }

    /// Writes a kubeconfig for the cluster.
    pub(crate) fn kubeconfig(&self, path: &Path) -> Result<()> {
        self.cluster.kubeconfig(path).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Polls all operations in a new process of the plugin.
    pub(crate) fn poll(
        &self,
        client: &Client,
        plugin: Plugin<'_>,
        polled: Polled,
        kubeconfig: &Path,
    ) -> Result<Figures> {
        let action = match polled {
            Polled::Contents(action) | Polled::Snapshots(action) => action,
        };
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let operations: Vec<_> = (0..self.operations).map(|number| operation(number, polled, &now)).collect();
        let backup = item::backup("WaitingForPluginOperations");
        self.cluster.clear_requests();
        let job = client::Progress { plugin, action, operations: &operations, backup: &backup };
        let seen = client.progress(&job, kubeconfig)?;
        ensure!(
            (seen.completed, seen.failed) == (self.operations.div_ceil(2), 0),
            "{action} says that {} of {} operations are completed and {} failed, but every other snapshot is ready",
            seen.completed,
            self.operations,
            seen.failed
        );
        Ok(Figures::new(seen, self.cluster.counts()))
    }
}

impl Figures {
    fn new(polled: client::Polled, by_client: BTreeMap<String, BTreeMap<String, usize>>) -> Self {
        let mut requests = BTreeMap::new();
        for (what, count) in by_client.into_values().flatten() {
            *requests.entry(what).or_insert(0) += count;
        }
        let all: usize = requests.values().sum();
        let lists =
            requests.iter().filter(|(what, _)| what.starts_with("list ")).map(|(_, count)| count).sum();
        Self { polled, lists, others: all - lists, requests }
    }
}

fn names(number: usize) -> (String, String) {
    (format!("velero-data-{number}"), format!("snapcontent-{number}"))
}

fn operation(number: usize, polled: Polled, began: &str) -> String {
    let (snapshot, content) = names(number);
    match polled {
        Polled::Contents(_) => format!("_/{content}/{began}"),
        Polled::Snapshots(_) => format!("app/{snapshot}/{began}"),
    }
}

fn labels() -> Value {
    let backup = item::backup("");
    json!({"velero.io/backup-name": backup["metadata"]["name"], "velero.io/backup-uid": backup["metadata"]["uid"]})
}

fn is_ready(number: usize) -> bool {
    number.is_multiple_of(2)
}

fn snapshot(number: usize) -> Value {
    let (name, content) = names(number);
    json!({
        "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
        "metadata": {"namespace": "app", "name": name, "labels": labels()},
        "spec": {
            "source": {"persistentVolumeClaimName": format!("data-{number}")},
            "volumeSnapshotClassName": "snapshots",
        },
        "status": {
            "boundVolumeSnapshotContentName": content, "readyToUse": is_ready(number),
            "creationTime": "2026-01-01T00:00:00Z", "restoreSize": "1Gi",
        },
    })
}

fn content(number: usize, snapshot_uid: &str) -> Value {
    let (snapshot, name) = names(number);
    json!({
        "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
        "metadata": {"name": name, "labels": labels()},
        "spec": {
            "driver": "csi.example.io", "deletionPolicy": "Delete",
            "source": {"volumeHandle": format!("volume-{number}")},
            "volumeSnapshotClassName": "snapshots",
            "volumeSnapshotRef": {
                "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
                "namespace": "app", "name": snapshot, "uid": snapshot_uid,
            },
        },
        "status": {
            "snapshotHandle": format!("handle-{number}"), "readyToUse": is_ready(number),
            "creationTime": 1_767_225_600_000_000_000_u64, "restoreSize": 1_073_741_824,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lists_count_as_lists() {
        let polled = client::Polled { calls: 4, completed: 2, failed: 0, duration: 5, cpu: 3 };
        let counts = |pairs: &[(&str, usize)]| -> BTreeMap<String, usize> {
            pairs.iter().map(|(what, count)| ((*what).to_owned(), *count)).collect()
        };
        let by_client = BTreeMap::from([
            ("a".to_owned(), counts(&[("list pods", 2), ("get pods", 3), ("watch pods", 1)])),
            ("b".to_owned(), counts(&[("get pods", 1), ("get /api/list ", 1)])),
        ]);
        let figures = Figures::new(polled, by_client);
        assert_eq!((figures.lists, figures.others), (2, 6));
        assert_eq!(figures.requests["get pods"], 4);
    }
}
