//! A cluster with a driver, and the actions as Velero calls them: each stage in an environment of its own, since each
//! stage is a new process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cluster::Rule;
use cluster::simulator::{Driver, Settings as Pace, Simulator};
use csi_actions::backup::persistentvolumeclaim::ClaimBackup;
use csi_actions::backup::volumesnapshot::SnapshotBackup;
use csi_actions::backup::volumesnapshotcontent::ContentBackup;
use csi_actions::cluster::permissions;
use csi_actions::delete::volumesnapshotcontent::ContentDelete;
use csi_actions::environment::Environment;
use csi_actions::release::Release;
use csi_actions::settings::{Mode, Settings};
use serde_json::{Value, json};
use tempfile::TempDir;
use velero_plugin::backup::{BackupItemActionV2 as _, DeleteItemAction as _, Outcome};
use velero_plugin::{Backup, HostArgs, Item, OperationId, Progress, Result};

pub(crate) const DRIVER: &str = "disk.csi.example";
pub(crate) const CLAIMS: &str = "persistentvolumeclaims";
pub(crate) const SNAPSHOTS: &str = "volumesnapshots.snapshot.storage.k8s.io";
pub(crate) const CONTENTS: &str = "volumesnapshotcontents.snapshot.storage.k8s.io";
/// Far above what any step takes.
pub(crate) const SAFE: Duration = Duration::from_secs(60);

/// A cluster, its driver, and where its kubeconfig is.
pub(crate) struct Bed {
    pub(crate) cluster: cluster::Cluster,
    /// None while the controllers and the driver are down.
    simulator: Option<Simulator>,
    folder: TempDir,
}

/// What one claim became in a backup.
#[derive(Debug)]
pub(crate) struct Archived {
    pub(crate) claim: Value,
    pub(crate) snapshot: Value,
    pub(crate) content: Value,
    pub(crate) operation: Option<OperationId>,
    pub(crate) post_operation_items: Vec<String>,
}

impl Bed {
    /// With classes, and the namespace `app`.
    pub(crate) async fn new() -> Self {
        Self::with(Pace::default(), "Delete").await
    }

    pub(crate) async fn with(pace: Pace, deletion_policy: &str) -> Self {
        let cluster = cluster::Cluster::start().await.unwrap();
        let simulator = Simulator::start(&cluster, pace, &[DRIVER]);
        let folder = TempDir::new().unwrap();
        cluster.kubeconfig(&folder.path().join("config")).unwrap();
        for object in [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "app"}}),
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "disk"},
                "provisioner": DRIVER}),
            json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
                "metadata": {"name": "snap"}, "driver": DRIVER, "deletionPolicy": deletion_policy}),
        ] {
            cluster.apply(object).unwrap();
        }
        Self { cluster, simulator: Some(simulator), folder }
    }

    pub(crate) fn driver(&self) -> &Driver {
        self.simulator.as_ref().expect("the driver is down").driver(DRIVER)
    }

    /// From now on nothing is done by the controllers, or by the driver.
    pub(crate) fn stop_controllers(&mut self) {
        self.simulator = None;
    }

    /// Controllers, with a driver whose storage is empty.
    pub(crate) fn start_controllers(&mut self) {
        self.simulator = Some(Simulator::start(&self.cluster, Pace::default(), &[DRIVER]));
    }

    /// The number of snapshots in the storage.
    pub(crate) fn in_storage(&self) -> usize {
        self.driver().read(|state| state.snapshots.len())
    }

    /// A claim in `app`, bound to a volume of 1 MiB, as the cluster has it.
    pub(crate) async fn claim(&self, name: &str) -> Value {
        self.cluster
            .apply(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"namespace": "app", "name": name, "labels": {"tier": "db", "app.kubernetes.io/instance": "shop"}},
                "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "disk",
                    "resources": {"requests": {"storage": "1Mi"}}}}))
            .unwrap();
        self.seen(CLAIMS, "app", name, |claim| claim["status"]["phase"] == "Bound").await
    }

    /// Waits until an object is as expected.
    pub(crate) async fn seen(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        expected: impl Fn(&Value) -> bool,
    ) -> Value {
        let seen = |object: Option<&Value>| object.is_some_and(&expected);
        self.cluster.wait(resource, namespace, name, SAFE, seen).await.unwrap().unwrap()
    }

    pub(crate) async fn gone(&self, resource: &str, namespace: &str, name: &str) {
        self.cluster.wait(resource, namespace, name, SAFE, |object| object.is_none()).await.unwrap();
    }

    /// Makes requests to the API server fail as the rules say.
    pub(crate) fn order(&self, rules: impl IntoIterator<Item = Rule>) {
        for rule in rules {
            self.cluster.order(rule).unwrap();
        }
    }

    /// How many requests failed to order since the log was cleared.
    pub(crate) fn hits(&self) -> usize {
        self.cluster.requests().iter().filter(|request| !request.rules.is_empty()).count()
    }

    pub(crate) fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.cluster.get(resource, namespace, name).unwrap()
    }

    pub(crate) fn list(&self, resource: &str) -> Vec<Value> {
        self.cluster.list(resource, "").unwrap()
    }

    /// Waits until the storage is as expected.
    pub(crate) async fn until(&self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let waited = tokio::time::timeout(SAFE, async {
            while !done(self) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        assert!(waited.await.is_ok(), "never: {what}");
    }

    /// The file by which a process finds the cluster.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    /// What a new process finds itself in.
    pub(crate) fn environment(&self) -> Arc<Environment> {
        self.environment_in(Mode::Standalone)
    }

    pub(crate) fn environment_in(&self, mode: Mode) -> Arc<Environment> {
        self.environment_with(settings(mode))
    }

    pub(crate) fn environment_with(&self, settings: Settings) -> Arc<Environment> {
        let arguments = HostArgs::new([format!("--kubeconfig={}", self.kubeconfig().display()).into()]);
        let cluster = csi_actions::cluster::Cluster::of_server(arguments);
        Arc::new(Environment::new(settings, cluster, Release::From1_18_1.into()))
    }

    /// The action on claims in a new process.
    pub(crate) async fn back_up_claim(&self, claim: &Value, backup: &Value) -> Result<Outcome> {
        ClaimBackup::new(self.environment()).execute(item(claim), of(backup)).await
    }

    /// A claim's way into the archive: the claim, its snapshot, and the content.
    pub(crate) async fn back_up(&self, claim: &Value, backup: &Value) -> Archived {
        self.back_up_in(self.environment(), claim, backup).await
    }

    /// The same, in a process with an environment of its own.
    pub(crate) async fn back_up_in(
        &self,
        environment: Arc<Environment>,
        claim: &Value,
        backup: &Value,
    ) -> Archived {
        let outcome = ClaimBackup::new(environment.clone()).execute(item(claim), of(backup)).await.unwrap();
        let claim = result(&outcome);
        let snapshot = self.additional(&outcome, "volumesnapshots");
        let outcome =
            SnapshotBackup::new(environment.clone()).execute(item(&snapshot), of(backup)).await.unwrap();
        let snapshot = result(&outcome);
        let content = self.additional(&outcome, "volumesnapshotcontents");
        let on_snapshot = outcome.operation().map(|(id, items)| (id.clone(), items.to_vec()));
        let outcome = ContentBackup::new(environment).execute(item(&content), of(backup)).await.unwrap();
        let content = outcome.changes().item().map_or(content, |item| item.object().clone());
        let on_content = outcome.operation().map(|(id, items)| (id.clone(), items.to_vec()));
        assert!(on_snapshot.is_none() || on_content.is_none(), "two operations would wait for one snapshot");
        let (operation, post_operation_items) = match on_snapshot.or(on_content) {
            Some((id, items)) => (Some(id), items.iter().map(ToString::to_string).collect()),
            None => (None, Vec::new()),
        };
        Archived { claim, snapshot, content, operation, post_operation_items }
    }

    /// The additional item of `resource` in the outcome, as Velero fetches it.
    pub(crate) fn additional(&self, outcome: &Outcome, resource: &str) -> Value {
        let items = outcome.changes().additional_items();
        let id = items.iter().find(|id| id.resource() == resource).unwrap();
        self.get(&format!("{}.{}", id.resource(), id.group()), id.namespace(), id.name()).unwrap()
    }

    /// One poll, in a new process.
    pub(crate) async fn poll(&self, operation: &OperationId, backup: &Value) -> Progress {
        ContentBackup::new(self.environment()).progress(operation.clone(), of(backup)).await.unwrap()
    }

    /// Polls until the operation ends.
    pub(crate) async fn finished(&self, operation: &OperationId, backup: &Value) -> Progress {
        tokio::time::timeout(SAFE, async {
            loop {
                let progress = self.poll(operation, backup).await;
                if !progress.is_running() {
                    return progress;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await
        .unwrap()
    }

    /// Finalizes what was archived: reads all post-operation items, then runs the actions on each. The content as it
    /// is archived in the end.
    pub(crate) async fn finalize(&self, archived: &Archived, backup: &Value) -> Value {
        let mut backup = backup.clone();
        backup["status"]["phase"] = "Finalizing".into();
        let mut content = self.get(CONTENTS, "", name(&archived.content));
        let snapshot = self.get(SNAPSHOTS, "app", name(&archived.snapshot));
        let environment = self.environment();
        if let Some(content) = &mut content {
            let outcome =
                ContentBackup::new(environment.clone()).execute(item(content), of(&backup)).await.unwrap();
            assert!(outcome.operation().is_none(), "no operation may start while finalizing");
            if let Some(changed) = outcome.changes().item() {
                *content = changed.object().clone();
            }
        }
        if let Some(snapshot) = &snapshot {
            let outcome =
                SnapshotBackup::new(environment).execute(item(snapshot), of(&backup)).await.unwrap();
            assert!(outcome.operation().is_none(), "no operation may start while finalizing");
        }
        content.unwrap_or_else(|| archived.content.clone())
    }

    /// The deletion of a backup with these contents, in a new process.
    pub(crate) async fn delete(&self, contents: &[&Value], backup: &Value) -> Vec<Result<()>> {
        let action = ContentDelete::new(self.environment());
        let mut results = Vec::new();
        for content in contents {
            results.push(action.execute(item(content), of(backup)).await);
        }
        results
    }
}

/// The list of permissions is true: it has every request that any test has made.
impl Drop for Bed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for request in self.cluster.requests() {
            let info = &request.info;
            let is_ours = request.client.starts_with("csi-actions/") && info.is_resource();
            let asks = info.group == "authorization.k8s.io";
            assert!(
                !is_ours
                    || asks
                    || permissions::lists(&info.verb, &info.group, &info.resource, &info.subresource),
                "no entry in cluster/permissions.rs: {info:?}"
            );
        }
    }
}

pub(crate) fn settings(mode: Mode) -> Settings {
    let arguments = HostArgs::default();
    Settings { mode, restore_wait: SAFE, ..Settings::read(&arguments, |_| None).0 }
}

/// A backup in progress, with little patience for its drivers.
pub(crate) fn backup(name: &str) -> Value {
    json!({"apiVersion": "velero.io/v1", "kind": "Backup",
        "metadata": {"namespace": "velero", "name": name, "uid": format!("uid-of-{name}")},
        "spec": {"csiSnapshotTimeout": "30s"}, "status": {"phase": "InProgress"}})
}

pub(crate) fn item(object: &Value) -> Item {
    Item::try_from(object.clone()).unwrap()
}

pub(crate) fn of(backup: &Value) -> Backup {
    Backup::from(backup.clone())
}

/// The item as an action returned it.
pub(crate) fn result(outcome: &Outcome) -> Value {
    outcome.changes().item().unwrap().object().clone()
}

/// Whether the item goes into the archive as it came, with nothing beside it.
pub(crate) fn is_untouched(outcome: &Outcome) -> bool {
    outcome.changes().item().is_none()
        && outcome.changes().additional_items().is_empty()
        && outcome.operation().is_none()
}

pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

pub(crate) fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap()
}
