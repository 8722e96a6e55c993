//! `velero-host` makes of a backup what a real server made of it, with the process of csi-actions and on the embedded
//! cluster: so both are what they play.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cluster::Cluster;
use cluster::simulator::{Settings, Simulator};
use serde_json::{Value, json};
use tempfile::TempDir;
use velero_host::cluster::ApiCluster;
use velero_host::event::{Event, Observer};
use velero_host::likeness::{FILES, Likeness};
use velero_host::minor::Minor;
use velero_host::model::Backup;
use velero_host::registry::list;
use velero_host::server::{Parts, Profile, RESOURCE_TIMEOUT, Server};
use velero_host::session::{Journal, Launch, Processes, Start};
use velero_host::store::{BackupFile, BackupStore, gunzip};

/// Of the real run.
const NAME: &str = "csi";
const DRIVER: &str = "csi.velero-rs.test";
/// Far above what any step takes.
const SAFE: Duration = Duration::from_secs(60);

/// The cluster of the real run, as far as the backup goes.
async fn set(cluster: &Cluster) {
    let labels = json!({"velero.io/csi-volumesnapshot-class": "true"});
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": "shop", "name": "kube-root-ca.crt"}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": "shop", "name": "default"}}),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "stock"},
            "provisioner": DRIVER, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}),
        json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
            "metadata": {"name": "stock", "labels": labels}, "driver": DRIVER, "deletionPolicy": "Delete"}),
    ] {
        cluster.apply(object).unwrap();
    }
    for (name, size) in [("catalog", "2Mi"), ("orders", "40Mi")] {
        cluster
            .apply(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"namespace": "shop", "name": name},
                "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "stock",
                    "resources": {"requests": {"storage": size}}}}))
            .unwrap();
        let bound = |claim: Option<&Value>| claim.is_some_and(|claim| claim["status"]["phase"] == "Bound");
        cluster.wait("persistentvolumeclaims", "shop", name, SAFE, bound).await.unwrap();
    }
}

/// Keeps the phases.
#[derive(Default)]
struct Phases(Mutex<Vec<&'static str>>);

impl Observer for Phases {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Phase { phase, .. } = event {
            self.0.lock().unwrap().push(phase.as_str());
        }
    }
}

#[tokio::test]
async fn a_backup_of_claims_is_what_a_real_server_made_of_them() {
    let cluster = Cluster::start().await.unwrap();
    let _simulator = Simulator::start(&cluster, Settings::default(), &[DRIVER]);
    set(&cluster).await;
    let folder = TempDir::new().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    cluster.kubeconfig(&kubeconfig).unwrap();

    let environment = vec![("KUBECONFIG".to_owned(), kubeconfig.display().to_string())];
    let start: Arc<dyn Start> = Arc::new(Processes(Launch { environment, ..Launch::default() }));
    let phases = Arc::new(Phases::default());
    let journal = Journal::new(phases.clone());
    let plugin = env!("CARGO_BIN_EXE_csi_actions_process").to_owned();
    let registry = list(&[plugin], Minor::V1_18, &start, &journal).await.unwrap();
    let server = Server::new(Parts {
        minor: Minor::V1_18,
        enable_csi: false,
        resource_timeout: RESOURCE_TIMEOUT,
        profile: Profile::Released,
        cluster: Arc::new(ApiCluster::connect(&kubeconfig).await.unwrap()),
        store: BackupStore::new(Arc::new(object_store::memory::InMemory::new()), ""),
        registry,
        start,
        observer: phases.clone(),
        now: Arc::new(jiff::Timestamp::now),
    });
    let object = json!({
        "metadata": {"name": NAME, "creationTimestamp": "2026-11-29T21:38:18Z"},
        "spec": {"includedNamespaces": ["shop"], "storageLocation": "default"},
    });
    let mut backup = Backup::new(object, "00000000-0000-4000-8000-000000000000").unwrap();
    server.back_up(&mut backup).await.unwrap();
    server.run_on(&mut backup, Duration::from_millis(100)).await.unwrap();

    let mut made = Vec::new();
    for (file, word) in FILES {
        let bytes = server.store().get(NAME, file).await.unwrap().expect(word);
        let bytes = if file == BackupFile::Metadata { bytes } else { gunzip(&bytes).unwrap() };
        made.push((file, serde_json::from_slice(&bytes).unwrap()));
    }
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../host/tests/golden").join(NAME);
    let real = Likeness::of_folder(&golden).unwrap().without_events();
    let made = Likeness::new(made, None).unwrap().without_events();
    let differences = real.differences(&made);
    assert!(differences.is_empty(), "real first:\n{}", differences.join("\n"));
    let seen = phases.0.lock().unwrap().clone();
    assert_eq!((seen.first(), seen.last()), (Some(&"Queued"), Some(&"Completed")));
}
