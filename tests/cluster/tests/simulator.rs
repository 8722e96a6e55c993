//! The simulated storage controllers: what they make, what they take down, and what they leak.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use cluster::Cluster;
use cluster::simulator::{Driver, Fault, Readiness, Settings, Simulator};
use serde_json::{Value, json};
use tonic::Code;

const DRIVER: &str = "disk.csi.example";
const SNAPSHOTS: &str = "volumesnapshots.snapshot.storage.k8s.io";
const CONTENTS: &str = "volumesnapshotcontents.snapshot.storage.k8s.io";
const FINALIZER: &str = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection";
const BEING_CREATED: &str = "snapshot.storage.kubernetes.io/volumesnapshot-being-created";
/// Far above what any step takes.
const SAFE: Duration = Duration::from_secs(30);

struct Stage {
    cluster: Cluster,
    simulator: Simulator,
}

impl Stage {
    /// A cluster with classes, and the claim `app/data` bound to a volume of 1 MiB.
    async fn new(settings: Settings, deletion_policy: &str) -> Self {
        let cluster = Cluster::start().await.unwrap();
        let simulator = Simulator::start(&cluster, settings, &[DRIVER]);
        for object in [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "app"}}),
            json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "disk"},
                "provisioner": DRIVER,
            }),
            json!({
                "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
                "metadata": {"name": "snap"}, "driver": DRIVER, "deletionPolicy": deletion_policy,
            }),
            claim("data", &json!(null)),
        ] {
            cluster.apply(object).unwrap();
        }
        let stage = Self { cluster, simulator };
        stage.bound("data").await;
        stage
    }

    fn driver(&self) -> &Driver {
        self.simulator.driver(DRIVER)
    }

    async fn wait(&self, resource: &str, namespace: &str, name: &str, expected: fn(&Value) -> bool) -> Value {
        let seen = |object: Option<&Value>| object.is_some_and(expected);
        self.cluster.wait(resource, namespace, name, SAFE, seen).await.unwrap().unwrap()
    }

    async fn gone(&self, resource: &str, namespace: &str, name: &str) {
        self.cluster.wait(resource, namespace, name, SAFE, |object| object.is_none()).await.unwrap();
    }

    async fn bound(&self, name: &str) -> Value {
        self.wait("persistentvolumeclaims", "app", name, |claim| claim["status"]["phase"] == "Bound").await
    }

    fn snapshot(&self, name: &str) -> Value {
        self.cluster
            .apply(json!({
                "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
                "metadata": {"namespace": "app", "name": name},
                "spec": {"volumeSnapshotClassName": "snap", "source": {"persistentVolumeClaimName": "data"}},
            }))
            .unwrap()
    }

    async fn ready(&self, name: &str) -> Value {
        self.wait(SNAPSHOTS, "app", name, |snapshot| snapshot["status"]["readyToUse"] == true).await
    }

    fn in_storage(&self) -> usize {
        self.driver().read(|state| state.snapshots.len())
    }

    /// A snapshot in storage that no object stands for; its handle.
    async fn orphan(&self) -> String {
        let uid = self.snapshot("orphan")["metadata"]["uid"].as_str().unwrap().to_owned();
        let snapshot = self.ready("orphan").await;
        let content = snapshot["status"]["boundVolumeSnapshotContentName"].as_str().unwrap();
        assert_eq!(content, format!("snapcontent-{uid}"));
        let retain = json!({"spec": {"deletionPolicy": "Retain"}});
        let content = self.cluster.patch(CONTENTS, "", content, &retain).unwrap();
        let name = content["metadata"]["name"].as_str().unwrap();
        // The content first, as Velero does: the controller may still believe that it is to be deleted.
        self.cluster.delete(CONTENTS, "", name).unwrap();
        self.cluster.delete(SNAPSHOTS, "app", "orphan").unwrap();
        self.gone(CONTENTS, "", name).await;
        self.gone(SNAPSHOTS, "app", "orphan").await;
        assert_eq!(self.in_storage(), 1);
        content["status"]["snapshotHandle"].as_str().unwrap().to_owned()
    }

    /// A content for a snapshot that exists, as a deletion of a backup makes it.
    fn temporary(&self, handle: &str, finalizers: &Value) {
        self.cluster
            .apply(json!({
                "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
                "metadata": {"name": "temporary", "finalizers": finalizers},
                "spec": {
                    "deletionPolicy": "Delete", "driver": DRIVER, "source": {"snapshotHandle": handle},
                    "volumeSnapshotRef": {"namespace": "never", "name": "was"},
                },
            }))
            .unwrap();
    }

    async fn until(&self, what: &str, mut done: impl FnMut(&Driver) -> bool) {
        let waited = tokio::time::timeout(SAFE, async {
            while !done(self.driver()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        assert!(waited.await.is_ok(), "{what}");
    }
}

fn claim(name: &str, source: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"namespace": "app", "name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "disk", "dataSource": source,
            "resources": {"requests": {"storage": "1Mi"}},
        },
    })
}

#[tokio::test]
async fn snapshot_is_taken_and_goes_with_its_object_under_policy_delete() {
    let stage = Stage::new(Settings::default(), "Delete").await;
    stage.snapshot("s");
    let snapshot = stage.ready("s").await;
    assert_eq!(snapshot["status"]["restoreSize"], "1Mi");
    let name = snapshot["status"]["boundVolumeSnapshotContentName"].as_str().unwrap();
    let content = stage.cluster.get(CONTENTS, "", name).unwrap().unwrap();
    assert_eq!(content["spec"]["volumeSnapshotRef"]["uid"], snapshot["metadata"]["uid"]);
    assert_eq!(content["status"]["restoreSize"], 1 << 20);
    assert_eq!(content["metadata"]["finalizers"], json!([FINALIZER]));
    let claim = stage.wait("persistentvolumeclaims", "app", "data", |claim| {
        claim["metadata"]["finalizers"].as_array().is_some_and(|held| held.len() == 1)
    });
    assert_eq!(claim.await["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));

    stage.cluster.delete(SNAPSHOTS, "app", "s").unwrap();
    stage.gone(SNAPSHOTS, "app", "s").await;
    stage.gone(CONTENTS, "", name).await;
    assert_eq!(stage.in_storage(), 0);
    assert_eq!(stage.driver().count("DeleteSnapshot"), 1);
}

#[tokio::test]
async fn content_and_snapshot_stay_under_policy_retain() {
    let stage = Stage::new(Settings::default(), "Retain").await;
    stage.snapshot("s");
    let snapshot = stage.ready("s").await;
    let name = snapshot["status"]["boundVolumeSnapshotContentName"].as_str().unwrap();
    stage.cluster.delete(SNAPSHOTS, "app", "s").unwrap();
    stage.gone(SNAPSHOTS, "app", "s").await;
    assert!(stage.cluster.get(CONTENTS, "", name).unwrap().is_some());
    stage.cluster.delete(CONTENTS, "", name).unwrap();
    stage.gone(CONTENTS, "", name).await;
    assert_eq!((stage.in_storage(), stage.driver().count("DeleteSnapshot")), (1, 0));
}

#[tokio::test]
async fn slow_snapshot_is_known_by_its_handle_before_it_is_ready() {
    let stage = Stage::new(Settings::default(), "Delete").await;
    stage.driver().order(Fault::on("CreateSnapshot").volume("app/data").never_ready()).unwrap();
    stage.snapshot("s");
    let handle = |snapshot: &Value| snapshot["status"]["boundVolumeSnapshotContentName"].is_string();
    let snapshot = stage.wait(SNAPSHOTS, "app", "s", handle).await;
    let name = snapshot["status"]["boundVolumeSnapshotContentName"].as_str().unwrap();
    let known = |content: &Value| content["status"]["snapshotHandle"].is_string();
    let content = stage.wait(CONTENTS, "", name, known).await;
    assert_eq!(content["status"]["readyToUse"], false);
    let id = content["status"]["snapshotHandle"].as_str().unwrap().to_owned();
    stage.driver().change(|state| state.set_readiness(&id, Readiness::At(jiff::Timestamp::now()))).unwrap();
    stage.ready("s").await;
}

#[tokio::test]
async fn retryable_error_is_told_and_overcome_with_one_snapshot_in_storage() {
    let stage = Stage::new(Settings::default(), "Delete").await;
    let busy =
        Fault::on("CreateSnapshot").times(2).error(Code::ResourceExhausted, "array is busy").after_effect();
    stage.driver().order(busy).unwrap();
    let uid = stage.snapshot("s")["metadata"]["uid"].as_str().unwrap().to_owned();
    let name = format!("snapcontent-{uid}");
    let failed = |content: &Value| content["status"]["error"].is_object();
    let content = stage.wait(CONTENTS, "", &name, failed).await;
    let message = content["status"]["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("Failed to create snapshot: failed to take snapshot of the volume vol-"),
        "{message}"
    );
    assert!(
        message.ends_with(r#": "rpc error: code = ResourceExhausted desc = array is busy""#),
        "{message}"
    );
    assert_eq!(content["metadata"]["annotations"][BEING_CREATED], "yes", "it may be under way");
    assert!(stage.ready("s").await["status"].get("error").is_none());
    assert_eq!(stage.driver().read(|state| state.counters.snapshots_created), 1);
    stage.wait(CONTENTS, "", &name, |content| content["metadata"]["annotations"].is_null()).await;
}

#[tokio::test]
async fn final_error_ends_the_creation_and_reaches_the_snapshot() {
    let stage = Stage::new(Settings::default(), "Delete").await;
    stage.driver().order(Fault::on("CreateSnapshot").error(Code::InvalidArgument, "no such pool")).unwrap();
    stage.snapshot("s");
    let failed = |snapshot: &Value| {
        snapshot["status"]["error"]["message"]
            .as_str()
            .is_some_and(|message| message.contains("no such pool"))
    };
    let snapshot = stage.wait(SNAPSHOTS, "app", "s", failed).await;
    assert_eq!(snapshot["status"]["readyToUse"], false);
    // Nothing is under way, so the deletion goes through.
    stage.cluster.delete(SNAPSHOTS, "app", "s").unwrap();
    stage.gone(SNAPSHOTS, "app", "s").await;
}

#[tokio::test]
async fn snapshot_without_its_claim_says_so() {
    let stage = Stage::new(Settings::default(), "Delete").await;
    stage.cluster.delete("persistentvolumeclaims", "app", "data").unwrap();
    stage.gone("persistentvolumeclaims", "app", "data").await;
    stage.snapshot("s");
    let failed = |snapshot: &Value| snapshot["status"]["error"]["message"].is_string();
    let snapshot = stage.wait(SNAPSHOTS, "app", "s", failed).await;
    assert_eq!(
        snapshot["status"]["error"]["message"],
        "Failed to create snapshot content with error snapshot controller failed to update s on API server: \
         cannot get claim from snapshot"
    );
}

#[tokio::test]
async fn claim_is_restored_from_a_ready_snapshot_and_its_volume_goes_with_it() {
    let stage = Stage::new(Settings::default(), "Delete").await;
    stage.snapshot("s");
    let source = json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"});
    stage.cluster.apply(claim("restored", &source)).unwrap();
    let restored = stage.bound("restored").await;
    let volume = restored["spec"]["volumeName"].as_str().unwrap();
    assert!(stage.driver().read(|state| state.volumes.values().any(|volume| volume.source.is_some())));
    stage.cluster.delete("persistentvolumeclaims", "app", "restored").unwrap();
    stage.gone("persistentvolumes", "", volume).await;
    assert_eq!(stage.driver().read(|state| state.volumes.len()), 1);
}

#[tokio::test]
async fn snapshot_of_a_content_made_in_advance_is_bound() {
    let stage = Stage::new(Settings::default(), "Delete").await;
    let handle = stage.orphan().await;
    for object in [
        json!({
            "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
            "metadata": {"name": "static"},
            "spec": {
                "deletionPolicy": "Delete", "driver": DRIVER, "source": {"snapshotHandle": handle},
                "volumeSnapshotRef": {"namespace": "app", "name": "restored"},
            },
        }),
        json!({
            "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
            "metadata": {"namespace": "app", "name": "restored"},
            "spec": {"source": {"volumeSnapshotContentName": "static"}},
        }),
    ] {
        stage.cluster.apply(object).unwrap();
    }
    let snapshot = stage.ready("restored").await;
    // Deleted before the controller has put its finalizer on the content, the snapshot would leak; so with the real one.
    let held = |content: &Value| content["metadata"]["finalizers"] == json!([FINALIZER]);
    let content = stage.wait(CONTENTS, "", "static", held).await;
    assert_eq!(content["spec"]["volumeSnapshotRef"]["uid"], snapshot["metadata"]["uid"]);
    stage.cluster.delete(SNAPSHOTS, "app", "restored").unwrap();
    stage.gone(CONTENTS, "", "static").await;
    assert_eq!(stage.in_storage(), 0);
}

// === Deletion through a temporary content ===

#[tokio::test]
async fn temporary_content_without_a_finalizer_leaks() {
    let stage = Stage::new(Settings::default(), "Delete").await;
    let handle = stage.orphan().await;
    stage.temporary(&handle, &json!([]));
    let known = |content: &Value| content["status"]["snapshotHandle"].is_string();
    stage.wait(CONTENTS, "", "temporary", known).await;
    assert!(stage.cluster.delete(CONTENTS, "", "temporary").unwrap().is_none(), "it is gone at once");
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!((stage.in_storage(), stage.driver().count("DeleteSnapshot")), (1, 0));
}

#[tokio::test]
async fn temporary_content_that_is_deleted_before_its_status_is_known_leaks() {
    // So slow that creation and deletion arrive together.
    let settings = Settings { informer_lag: Duration::from_millis(100), ..Settings::default() };
    let stage = Stage::new(settings, "Delete").await;
    let handle = stage.orphan().await;
    stage.temporary(&handle, &json!([FINALIZER]));
    assert!(stage.cluster.delete(CONTENTS, "", "temporary").unwrap().is_some(), "the finalizer holds it");
    stage.gone(CONTENTS, "", "temporary").await;
    assert_eq!((stage.in_storage(), stage.driver().count("DeleteSnapshot")), (1, 0));
}

#[tokio::test]
async fn temporary_content_with_finalizer_and_handle_deletes_the_snapshot() {
    let stage = Stage::new(Settings::default(), "Delete").await;
    let handle = stage.orphan().await;
    stage.temporary(&handle, &json!([FINALIZER]));
    stage.cluster.patch(CONTENTS, "", "temporary", &json!({"status": {"snapshotHandle": handle}})).unwrap();
    stage.cluster.delete(CONTENTS, "", "temporary").unwrap();
    stage.gone(CONTENTS, "", "temporary").await;
    assert_eq!((stage.in_storage(), stage.driver().count("DeleteSnapshot")), (0, 1));
}

/// Deletes a temporary content while the sidecar waits for the snapshot's status.
async fn delete_while_the_status_is_asked_for(stage: &Stage, status: &Value) {
    let handle = stage.orphan().await;
    stage.driver().order(Fault::on("ListSnapshots").hang().id("slow")).unwrap();
    let calls = stage.driver().count("ListSnapshots");
    stage.temporary(&handle, &json!([FINALIZER]));
    stage.until("status asked for", |driver| driver.count("ListSnapshots") > calls).await;
    let mut status = status.clone();
    status["snapshotHandle"] = handle.into();
    stage.cluster.patch(CONTENTS, "", "temporary", &json!({"status": status})).unwrap();
    stage.cluster.delete(CONTENTS, "", "temporary").unwrap();
    // The deletion has arrived in the cache; the write that follows has not when the sidecar looks again.
    tokio::time::sleep(Duration::from_millis(300)).await;
    stage.driver().faults().remove("slow");
}

#[tokio::test]
async fn deletion_is_overlooked_when_it_meets_a_status_write_on_a_content_that_says_ready() {
    let lag = Duration::from_millis(100);
    let resync = Duration::from_secs(3);
    let settings = Settings { informer_lag: lag, resync, ..Settings::default() };
    let stage = Stage::new(settings, "Delete").await;
    delete_while_the_status_is_asked_for(&stage, &json!({"readyToUse": true})).await;
    let known = |content: &Value| content["status"]["creationTime"].is_i64();
    stage.wait(CONTENTS, "", "temporary", known).await;
    tokio::time::sleep(5 * lag).await;
    assert_eq!((stage.in_storage(), stage.driver().count("DeleteSnapshot")), (1, 0), "stuck");
    stage.gone(CONTENTS, "", "temporary").await;
    assert_eq!(stage.in_storage(), 0, "the resync helps");
}

#[tokio::test]
async fn deletion_is_seen_when_the_content_gets_ready_by_the_status_write() {
    let settings = Settings { informer_lag: Duration::from_millis(100), ..Settings::default() };
    let stage = Stage::new(settings, "Delete").await;
    delete_while_the_status_is_asked_for(&stage, &json!({})).await;
    stage.gone(CONTENTS, "", "temporary").await;
    assert_eq!(stage.in_storage(), 0);
}
