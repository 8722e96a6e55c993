//! What a scenario plays on: one namespace, two classes, a bound claim, and the storage behind it.

use std::sync::Arc;
use std::time::Duration;

use csi_driver::control;
use csi_driver::fault::{Delay, Fault};
use csi_driver::state::Readiness;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::object::text;
use crate::script::{Entry, StandIns};
use crate::simulator::Driver;

/// Longer than the real controllers' longest wait in a scenario.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(50);

/// Why a scenario did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The API server can't be reached or refused.
    #[error("{0} in {1} failed: {2}")]
    Request(&'static str, String, String),
    /// The driver can't be reached or refused an order.
    #[error("driver of the scenario: {0}")]
    Storage(String),
    /// An object never became what a step waits for.
    #[error("{path} did not become {what} within {PATIENCE:?}, it is {last}")]
    Never {
        /// The object.
        path: String,
        /// What was waited for.
        what: &'static str,
        /// Its last state.
        last: Box<Value>,
    },
}

/// The storage that a scenario gives orders to.
#[derive(Debug)]
pub enum Storage {
    /// A driver of the simulator.
    Simulated(Arc<Driver>),
    /// The driver of the stock tests, by its control API.
    Real(control::Client),
}

impl Storage {
    pub(super) async fn order(&self, fault: Fault) -> Result<(), Trouble> {
        match self {
            Self::Simulated(driver) => driver.order(fault).map(|_| ()).map_err(storage),
            Self::Real(client) => client.order(&fault).await.map(|_| ()).map_err(storage),
        }
    }

    pub(super) async fn clear(&self) -> Result<(), Trouble> {
        match self {
            Self::Simulated(driver) => driver.faults().clear(),
            Self::Real(client) => client.withdraw_all().await.map_err(storage)?,
        }
        Ok(())
    }

    pub(super) async fn make_ready(&self, id: &str) -> Result<(), Trouble> {
        match self {
            Self::Simulated(driver) => {
                let now = Readiness::At(jiff::Timestamp::now());
                driver.change(|state| state.set_readiness(id, now)).map_err(storage)
            }
            Self::Real(client) => client.set_readiness(id, Delay::AfterMs(0)).await.map_err(storage),
        }
    }

    /// Snapshots that exist, and how many were really created and deleted.
    async fn count(&self) -> Result<Value, Trouble> {
        let (snapshots, counters) = match self {
            Self::Simulated(driver) => driver.read(|state| (state.snapshots.len(), state.counters)),
            Self::Real(client) => {
                let snapshots = client.snapshots().await.map_err(storage)?.len();
                (snapshots, client.counters().await.map_err(storage)?)
            }
        };
        Ok(json!({
            "snapshots": snapshots,
            "created": counters.snapshots_created, "deleted": counters.snapshots_deleted,
            "volumesCreated": counters.volumes_created, "volumesDeleted": counters.volumes_deleted,
        }))
    }
}

/// The stage of one scenario.
pub(super) struct Bed<'a> {
    client: &'a Client,
    pub(super) storage: &'a Storage,
    pub(super) driver: String,
    pub(super) namespace: String,
    before: Value,
    stand_ins: StandIns,
    entries: Vec<Entry>,
}

impl<'a> Bed<'a> {
    pub(super) async fn prepare(
        client: &'a Client,
        storage: &'a Storage,
        driver: &str,
        namespace: &str,
        policy: &str,
    ) -> Result<Self, Trouble> {
        let before = storage.count().await?;
        let bed = Self {
            client,
            storage,
            driver: driver.to_owned(),
            namespace: namespace.to_owned(),
            before,
            stand_ins: StandIns::of(namespace),
            entries: Vec::new(),
        };
        bed.create(
            "/api/v1/namespaces",
            json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": namespace}}),
        )
        .await?;
        bed.create("/apis/storage.k8s.io/v1/storageclasses", json!({
            "kind": "StorageClass", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": namespace}, "provisioner": driver,
        }))
        .await?;
        bed.create("/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses", json!({
            "kind": "VolumeSnapshotClass", "apiVersion": "snapshot.storage.k8s.io/v1", "metadata": {"name": namespace},
            "driver": driver, "deletionPolicy": policy,
        }))
        .await?;
        bed.create(
            "/apis/groupsnapshot.storage.k8s.io/v1beta2/volumegroupsnapshotclasses",
            json!({
                "kind": "VolumeGroupSnapshotClass", "apiVersion": "groupsnapshot.storage.k8s.io/v1beta2",
                "metadata": {"name": namespace}, "driver": driver, "deletionPolicy": policy,
            }),
        )
        .await?;
        bed.claim("data", json!(null)).await?;
        bed.wait(&bed.claim_path("data"), "bound", |claim| text(claim, "/status/phase") == "Bound").await?;
        Ok(bed)
    }

    /// Takes the classes away and gives back what was noted. The namespace goes by itself.
    pub(super) async fn end(self) -> Result<Vec<Entry>, Trouble> {
        self.storage.clear().await?;
        let name = &self.namespace;
        for path in [
            format!("/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses/{name}"),
            format!("/apis/groupsnapshot.storage.k8s.io/v1beta2/volumegroupsnapshotclasses/{name}"),
            format!("/api/v1/namespaces/{name}"),
        ] {
            self.delete(&path).await?;
        }
        self.gone(&format!("/api/v1/namespaces/{name}")).await?;
        // Or the next scenario would count what this one deletes.
        let over = |volumes: &Value| {
            let mut left = volumes["items"].as_array().into_iter().flatten();
            !left.any(|volume| text(volume, "/spec/storageClassName") == name)
        };
        self.wait("/api/v1/persistentvolumes", "without the volumes of the scenario", over).await?;
        self.delete(&format!("/apis/storage.k8s.io/v1/storageclasses/{name}")).await?;
        Ok(self.entries)
    }

    // === Objects ===

    pub(super) fn claim_path(&self, name: &str) -> String {
        format!("/api/v1/namespaces/{}/persistentvolumeclaims/{name}", self.namespace)
    }

    pub(super) fn snapshot_path(&self, name: &str) -> String {
        format!("/apis/snapshot.storage.k8s.io/v1/namespaces/{}/volumesnapshots/{name}", self.namespace)
    }

    pub(super) fn group_path(&self, name: &str) -> String {
        let namespace = &self.namespace;
        format!(
            "/apis/groupsnapshot.storage.k8s.io/v1beta2/namespaces/{namespace}/volumegroupsnapshots/{name}"
        )
    }

    pub(super) fn content_path(name: &str) -> String {
        format!("/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents/{name}")
    }

    pub(super) async fn claim(&self, name: &str, source: Value) -> Result<(), Trouble> {
        let path = format!("/api/v1/namespaces/{}/persistentvolumeclaims", self.namespace);
        let claim = json!({
            "kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": self.namespace, "dataSource": source,
                "resources": {"requests": {"storage": "1Mi"}},
            },
        });
        self.create(&path, claim).await.map(|_| ())
    }

    /// Makes a snapshot; gives back the name that its content gets.
    pub(super) async fn snapshot(&self, name: &str, source: Value) -> Result<String, Trouble> {
        let path = format!("/apis/snapshot.storage.k8s.io/v1/namespaces/{}/volumesnapshots", self.namespace);
        let snapshot = json!({
            "kind": "VolumeSnapshot", "apiVersion": "snapshot.storage.k8s.io/v1", "metadata": {"name": name},
            "spec": {"volumeSnapshotClassName": self.namespace, "source": source},
        });
        let created = self.create(&path, snapshot).await?;
        Ok(format!("snapcontent-{}", text(&created, "/metadata/uid")))
    }

    /// Makes a group snapshot of the claims with the label `group` = `name`.
    pub(super) async fn group(&self, name: &str) -> Result<(), Trouble> {
        let group = json!({
            "kind": "VolumeGroupSnapshot", "apiVersion": "groupsnapshot.storage.k8s.io/v1beta2",
            "metadata": {"name": name},
            "spec": {
                "volumeGroupSnapshotClassName": self.namespace,
                "source": {"selector": {"matchLabels": {"group": name}}},
            },
        });
        self.create(self.group_path("").trim_end_matches('/'), group).await.map(|_| ())
    }

    /// Makes a content for a snapshot in storage, meant for the snapshot `name`.
    pub(super) async fn content(
        &self,
        content: &str,
        handle: &str,
        name: &str,
        finalizers: &[&str],
    ) -> Result<(), Trouble> {
        self.content_of(&self.driver, content, handle, name, finalizers).await
    }

    /// The same for another driver.
    pub(super) async fn content_of(
        &self,
        driver: &str,
        content: &str,
        handle: &str,
        name: &str,
        finalizers: &[&str],
    ) -> Result<(), Trouble> {
        let content = json!({
            "kind": "VolumeSnapshotContent", "apiVersion": "snapshot.storage.k8s.io/v1",
            "metadata": {"name": content, "finalizers": finalizers},
            "spec": {
                "deletionPolicy": "Delete", "driver": driver, "source": {"snapshotHandle": handle},
                "volumeSnapshotRef": {"namespace": self.namespace, "name": name},
            },
        });
        self.create("/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents", content).await.map(|_| ())
    }

    // === Requests ===

    async fn create(&self, path: &str, object: Value) -> Result<Value, Trouble> {
        match self.send("POST", path, Some(&object)).await? {
            (200..300, created) => Ok(created),
            (_, refusal) => Err(Trouble::Request("POST", path.to_owned(), refusal.to_string())),
        }
    }

    pub(super) async fn list(&self, path: &str) -> Result<Vec<Value>, Trouble> {
        let (_, list) = self.send("GET", path.trim_end_matches('/'), None).await?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    pub(super) async fn patch(&self, path: &str, change: Value) -> Result<Value, Trouble> {
        match self.send("PATCH", path, Some(&change)).await? {
            (200..300, patched) => Ok(patched),
            (_, refusal) => Err(Trouble::Request("PATCH", path.to_owned(), refusal.to_string())),
        }
    }

    pub(super) async fn delete(&self, path: &str) -> Result<(), Trouble> {
        match self.send("DELETE", path, None).await? {
            (200..300 | 404, _) => Ok(()),
            (_, refusal) => Err(Trouble::Request("DELETE", path.to_owned(), refusal.to_string())),
        }
    }

    pub(super) async fn wait(
        &self,
        path: &str,
        what: &'static str,
        expected: impl Fn(&Value) -> bool,
    ) -> Result<Value, Trouble> {
        let end = Instant::now() + PATIENCE;
        loop {
            let (code, object) = self.send("GET", path, None).await?;
            if code == 200 && expected(&object) {
                return Ok(object);
            }
            if Instant::now() > end {
                return Err(Trouble::Never { path: path.to_owned(), what, last: Box::new(object) });
            }
            sleep(PAUSE).await;
        }
    }

    pub(super) async fn gone(&self, path: &str) -> Result<(), Trouble> {
        let end = Instant::now() + PATIENCE;
        loop {
            let (code, object) = self.send("GET", path, None).await?;
            if code == 404 {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(Trouble::Never { path: path.to_owned(), what: "gone", last: Box::new(object) });
            }
            sleep(PAUSE).await;
        }
    }

    async fn send(
        &self,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Value), Trouble> {
        let trouble = |error: String| Trouble::Request(method, path.to_owned(), error);
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(CONTENT_TYPE, kind)
            .body(Body::from(body.map(Value::to_string).unwrap_or_default().into_bytes()))
            .map_err(|error| trouble(error.to_string()))?;
        let response = self.client.send(request).await.map_err(|error| trouble(error.to_string()))?;
        let code = response.status().as_u16();
        let bytes =
            response.into_body().collect().await.map_err(|error| trouble(error.to_string()))?.to_bytes();
        Ok((code, serde_json::from_slice(&bytes).unwrap_or_default()))
    }

    // === Notes ===

    /// Notes what matters of a snapshot or a content: spec, status, and what controllers leave in the metadata.
    pub(super) fn note(&mut self, what: &str, object: &Value) {
        let mut kept = json!({
            "annotations": object["metadata"]["annotations"], "finalizers": object["metadata"]["finalizers"],
            "spec": object["spec"], "status": object["status"],
        });
        for field in ["volumeSnapshotRef", "volumeGroupSnapshotRef"] {
            if let Some(Value::Object(reference)) = kept.pointer_mut(&format!("/spec/{field}")) {
                // That of the moment in which the content was made.
                reference.remove("resourceVersion");
            }
        }
        hide_times(&mut kept["status"]);
        self.stand_ins.name(&self.driver, "<driver>");
        self.stand_ins.learn_uid(text(object, "/metadata/uid"));
        self.add(what, kept);
    }

    /// Notes what is in storage, and what came and went since the start of the scenario.
    pub(super) async fn note_storage(&mut self, what: &str) -> Result<(), Trouble> {
        let mut counts = self.storage.count().await?;
        for (field, value) in counts.as_object_mut().into_iter().flatten() {
            let difference =
                value.as_i64().unwrap_or_default() - self.before[field].as_i64().unwrap_or_default();
            *value = difference.into();
        }
        self.add(what, counts);
        Ok(())
    }

    fn add(&mut self, what: &str, answer: Value) {
        let scene = self.namespace.rsplit_once('-').map_or("", |(_, scene)| scene);
        let what = format!("{scene}: {what}");
        self.entries.push(Entry { what, code: 200, answer: self.stand_ins.normal(answer) });
    }
}

/// Times in nanoseconds are numbers, which have no stand-in.
fn hide_times(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(time) = map.get_mut("creationTime").filter(|time| time.is_i64()) {
                *time = "<nanoseconds>".into();
            }
            map.values_mut().for_each(hide_times);
        }
        Value::Array(list) => list.iter_mut().for_each(hide_times),
        _ => {}
    }
}

fn storage(error: impl std::fmt::Display) -> Trouble {
    Trouble::Storage(error.to_string())
}
