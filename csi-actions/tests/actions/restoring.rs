//! A restore as Velero carries it out: contents, snapshots, then claims; additional items before the item; and the wait.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use csi_actions::environment::Environment;
use csi_actions::release::Release;
use csi_actions::restore::persistentvolume::VolumeRestore;
use csi_actions::restore::persistentvolumeclaim::ClaimRestore;
use csi_actions::restore::volumesnapshot::SnapshotRestore;
use csi_actions::restore::volumesnapshotclass::ClassRestore;
use csi_actions::restore::volumesnapshotcontent::ContentRestore;
use csi_actions::settings::Mode;
use serde_json::{Value, json};
use velero_plugin::restore::{Outcome, RestoreInput, RestoreItemActionV2};
use velero_plugin::testing::to_be_restored;
use velero_plugin::{OperationId, Progress, ResourceIdentifier, Restore};

use crate::bed::{Bed, CLAIMS, CONTENTS, SAFE, SNAPSHOTS, item, name};

pub(crate) const VOLUMES: &str = "persistentvolumes";
const CLASSES: &str = "volumesnapshotclasses.snapshot.storage.k8s.io";
/// In Velero's order.
const ORDER: [&str; 5] = [CLASSES, CONTENTS, SNAPSHOTS, VOLUMES, CLAIMS];
/// Velero asks every second.
const POLL: Duration = Duration::from_millis(20);

/// What is in the archive, by resource.
#[derive(Debug, Clone, Default)]
pub(crate) struct Archive(Vec<(&'static str, Value)>);

impl Archive {
    pub(crate) fn with(mut self, resource: &'static str, object: &Value) -> Self {
        self.0.push((resource, object.clone()));
        self
    }

    /// The object that an additional item names.
    fn find(&self, id: &ResourceIdentifier) -> Option<(&'static str, &Value)> {
        let is_it = |(resource, object): &&(&'static str, Value)| {
            resource.split('.').next() == Some(id.resource())
                && name(object) == id.name()
                && namespace(object) == id.namespace()
        };
        self.0.iter().find(is_it).map(|(resource, object)| (*resource, object))
    }
}

/// One restore, with its own process of the plugin.
pub(crate) struct Restoring<'a> {
    bed: &'a Bed,
    archive: Archive,
    restore: Value,
    release: Release,
    actions: BTreeMap<&'static str, Arc<dyn RestoreItemActionV2>>,
    /// Whether an item that was handled exists.
    handled: BTreeMap<(&'static str, String, String), bool>,
    /// The results of the restore.
    pub(crate) errors: Vec<String>,
    pub(crate) warnings: Vec<String>,
    /// How often a wait was answered with "no".
    pub(crate) not_ready: usize,
    operations: Vec<(&'static str, OperationId)>,
}

impl<'a> Restoring<'a> {
    /// On the newest server, in standalone mode.
    pub(crate) fn new(bed: &'a Bed, archive: Archive, restore: Value) -> Self {
        Self::on(bed, archive, restore, Release::From1_18_1, Mode::Standalone)
    }

    pub(crate) fn on(bed: &'a Bed, archive: Archive, restore: Value, release: Release, mode: Mode) -> Self {
        let base = bed.environment_in(mode);
        let environment = Arc::new(Environment::new(base.settings, base.cluster.clone(), release.into()));
        let shared = || Arc::clone(&environment);
        let actions: BTreeMap<&'static str, Arc<dyn RestoreItemActionV2>> = BTreeMap::from([
            (CLASSES, Arc::new(ClassRestore::new(shared())) as Arc<dyn RestoreItemActionV2>),
            (CONTENTS, Arc::new(ContentRestore::new(shared()))),
            (SNAPSHOTS, Arc::new(SnapshotRestore::new(shared()))),
            (VOLUMES, Arc::new(VolumeRestore::new(shared()))),
            (CLAIMS, Arc::new(ClaimRestore::new(shared()))),
        ]);
        Self {
            bed,
            archive,
            restore,
            release,
            actions,
            handled: BTreeMap::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
            not_ready: 0,
            operations: Vec::new(),
        }
    }

    /// Restores all that the filters let through, and says what it came to.
    pub(crate) async fn run(mut self) -> Self {
        for resource in ORDER {
            let items: Vec<Value> =
                self.archive.0.iter().filter(|(each, _)| *each == resource).map(|(_, o)| o.clone()).collect();
            for object in items {
                // Cluster-scoped types are passed over where namespaces are selected, but not as additional items.
                let selects = !self.restore["spec"]["includedNamespaces"].is_null();
                let cluster_scoped = namespace(&object).is_empty();
                if selects && cluster_scoped && self.restore["spec"]["includeClusterResources"] != true {
                    continue;
                }
                self.item(resource, object).await;
            }
        }
        self
    }

    /// Polls the operations until each has ended; what they came to.
    pub(crate) async fn finished(&self) -> Vec<Progress> {
        let mut ends = Vec::new();
        for (resource, id) in &self.operations {
            let polled = tokio::time::timeout(SAFE, async {
                loop {
                    let restore = Restore::from(self.restore.clone());
                    let progress = self.actions[resource].progress(id.clone(), restore).await.unwrap();
                    if !progress.is_running() {
                        return progress;
                    }
                    tokio::time::sleep(POLL).await;
                }
            });
            ends.push(polled.await.unwrap());
        }
        ends
    }

    /// Restores one item; whether it exists afterwards.
    async fn item(&mut self, resource: &'static str, object: Value) -> bool {
        if self.is_excluded(resource, &object) {
            return false;
        }
        let target = self.target(namespace(&object));
        let key = (resource, target.clone(), name(&object).to_owned());
        if let Some(exists) = self.handled.get(&key) {
            return *exists;
        }
        let exists = self.prepare(resource, object, &target).await;
        self.handled.insert(key, exists);
        exists
    }

    async fn prepare(&mut self, resource: &'static str, object: Value, target: &str) -> bool {
        if !target.is_empty() {
            let made = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": target}});
            self.bed.cluster.apply(made).unwrap();
        }
        // Only one that is to be kept is restored as it was.
        if resource == VOLUMES && object["spec"]["persistentVolumeReclaimPolicy"] != "Retain" {
            return false;
        }
        if resource == CLAIMS {
            self.volume_of(&object).await;
        }
        let archived_name = name(&object).to_owned();
        let came = to_be_restored(&object);
        let action = Arc::clone(&self.actions[resource]);
        let restore = Restore::from(self.restore.clone());
        let input = RestoreInput { item: item(&came), from_backup: item(&object), restore: restore.clone() };
        let outcome = match action.execute(input).await {
            Ok(outcome) => outcome,
            Err(error) => {
                self.errors.push(format!("error preparing {resource} {archived_name}: {error}"));
                return false;
            }
        };
        // Also of an item that is left out.
        if let Some(id) = outcome.operation() {
            self.operations.push((resource, id.clone()));
        }
        if outcome.changes().is_skipped() {
            return false;
        }
        let kept = self.additional(&outcome).await;
        if outcome.waits() {
            self.wait(action.as_ref(), kept, &restore).await;
        }
        let mut restored = outcome.changes().item().map_or(came, |item| item.object().clone());
        if resource == VOLUMES {
            reserve(&mut restored, &self.restore);
        }
        self.create(resource, restored, target, &archived_name)
    }

    /// Velero's own action, which runs before ours, brings the claim's volume as an additional item.
    async fn volume_of(&mut self, claim: &Value) {
        let Some(volume) = claim["spec"]["volumeName"].as_str() else { return };
        let id = ResourceIdentifier::new("", VOLUMES, "", volume).unwrap();
        let found = self.archive.find(&id).map(|(_, object)| object.clone());
        if let Some(object) = found {
            Box::pin(self.item(VOLUMES, object)).await;
        }
    }

    async fn additional(&mut self, outcome: &Outcome) -> Vec<ResourceIdentifier> {
        let mut kept = Vec::new();
        for id in outcome.changes().additional_items() {
            let Some((resource, object)) = self.archive.find(id) else {
                self.warnings
                    .push(format!("unable to restore additional item {id}: it is not in the archive"));
                continue;
            };
            let object = object.clone();
            if Box::pin(self.item(resource, object)).await {
                kept.push(id.clone());
            }
        }
        kept
    }

    async fn wait(
        &mut self,
        action: &dyn RestoreItemActionV2,
        kept: Vec<ResourceIdentifier>,
        restore: &Restore,
    ) {
        let waited = tokio::time::timeout(SAFE, async {
            loop {
                match action.are_additional_items_ready(kept.clone(), restore.clone()).await {
                    Ok(true) => return,
                    Ok(false) => self.not_ready += 1,
                    Err(error) => return self.errors.push(format!("additional items: {error}")),
                }
                tokio::time::sleep(POLL).await;
            }
        });
        waited.await.unwrap();
    }

    /// Creates the object unless one is there; whether one is then.
    fn create(
        &mut self,
        resource: &'static str,
        mut object: Value,
        target: &str,
        archived_name: &str,
    ) -> bool {
        let restored_name = name(&object).to_owned();
        let looked_for =
            if self.release.looks_for_archived_name() { archived_name } else { restored_name.as_str() };
        if self.bed.get(resource, target, looked_for).is_some() {
            self.warnings.push(format!("could not restore, {resource} {looked_for} already exists"));
            return true;
        }
        if !target.is_empty() {
            object["metadata"]["namespace"] = target.into();
        }
        object["metadata"]["labels"]["velero.io/backup-name"] = self.restore["spec"]["backupName"].clone();
        object["metadata"]["labels"]["velero.io/restore-name"] = self.restore["metadata"]["name"].clone();
        match self.bed.cluster.apply(object) {
            Ok(_) => true,
            Err(error) => {
                self.errors.push(format!("error restoring {resource} {restored_name}: {error}"));
                false
            }
        }
    }

    fn is_excluded(&self, resource: &str, object: &Value) -> bool {
        let spec = &self.restore["spec"];
        let cluster_scoped = namespace(object).is_empty();
        let included = spec["includedResources"].as_array();
        // Contents are restored whatever the lists say, but not against includeClusterResources.
        let filtered = included.is_some_and(|list| !list.iter().any(|each| each == resource));
        (filtered && resource != CONTENTS) || (cluster_scoped && spec["includeClusterResources"] == false)
    }

    fn target(&self, original: &str) -> String {
        Restore::from(self.restore.clone()).target_namespace(original).to_owned()
    }
}

/// A restore of the backup `b1` under this name.
pub(crate) fn restore(name: &str, spec: Value) -> Value {
    let mut restore = json!({"apiVersion": "velero.io/v1", "kind": "Restore",
        "metadata": {"namespace": "velero", "name": name, "uid": format!("uid-of-{name}")},
        "spec": {"backupName": "b1"}});
    if let (Some(whole), Value::Object(spec)) = (restore["spec"].as_object_mut(), spec) {
        whole.extend(spec);
    }
    restore
}

/// The claim that the volume was bound to may have it again.
fn reserve(volume: &mut Value, restore: &Value) {
    let reference = volume["spec"]["claimRef"].as_object_mut().unwrap();
    reference.retain(|field, _| field != "uid" && field != "resourceVersion");
    let namespace = reference["namespace"].as_str().unwrap().to_owned();
    reference["namespace"] = Restore::from(restore.clone()).target_namespace(&namespace).into();
}

fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}
