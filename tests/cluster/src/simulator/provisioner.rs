//! The csi-provisioner sidecar: makes volumes for the claims of one driver, empty or from a snapshot, and deletes them.

use std::sync::Arc;

use csi_driver::state::{CapacityRange, NewVolume, Parameters, Source};
use serde_json::{Value, json};

use super::binder::PROVISIONER;
use super::context::{Context, Trouble, annotation, set};
use super::controller::{Controller, Next};
use super::driver::Driver;
use super::informer::Event;
use super::keys::{CLAIMS, CONTENTS, SNAPSHOTS, STORAGE_CLASSES, VOLUMES};
use super::quantity;
use crate::object::{self, text};
use crate::rules::update::Part;
use crate::store::Key;

const FINALIZER: &str = "external-provisioner.volume.kubernetes.io/finalizer";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// The sidecar of one driver.
#[derive(Debug)]
pub(super) struct Provisioner {
    context: Context,
    driver: Arc<Driver>,
}

impl Controller for Provisioner {
    fn watches(&self) -> &'static [&'static str] {
        &[CLAIMS, VOLUMES, STORAGE_CLASSES]
    }

    fn concerns(&self, event: &Event) -> Vec<Key> {
        let wanted = [CLAIMS, VOLUMES].into_iter().any(|name| event.key.resource == name.into());
        (wanted && event.after.is_some()).then(|| event.key.clone()).into_iter().collect()
    }

    async fn sync(&self, key: &Key) -> Result<Next, Trouble> {
        let Some(object) = self.context.cache.get(key) else { return Ok(Next::Rest) };
        if key.resource == CLAIMS.into() {
            self.provision(&object).await?;
        } else {
            self.delete(key, &object).await?;
        }
        Ok(Next::Rest)
    }

    fn context(&self) -> &Context {
        &self.context
    }
}

impl Provisioner {
    pub(super) fn new(context: Context, driver: Arc<Driver>) -> Self {
        Self { context, driver }
    }

    async fn provision(&self, claim: &Value) -> Result<(), Trouble> {
        let name = format!("pvc-{}", object::uid(claim));
        let asked = annotation(claim, PROVISIONER) == Some(self.driver.name());
        let open = set(claim, "/spec/volumeName").is_none() && !object::deleting(claim);
        if !asked || !open || self.context.cached(VOLUMES, "", &name).is_some() {
            return Ok(());
        }
        let class_name = text(claim, "/spec/storageClassName");
        let class = self.context.get(&Key::new(STORAGE_CLASSES, "", class_name))?;
        let new = NewVolume {
            name: name.clone(),
            capacity: CapacityRange {
                required_bytes: quantity::parse(text(claim, "/spec/resources/requests/storage")),
                limit_bytes: 0,
            },
            source: self.source(claim)?.map(Source::Snapshot),
            parameters: parameters(&class, claim, &name),
        };
        let volume = self.driver.create_volume(new, self.context.settings.rpc_timeout).await?;
        let object = json!({
            "metadata": {
                "name": name, "annotations": {PROVISIONED_BY: self.driver.name()}, "finalizers": [FINALIZER],
            },
            "spec": {
                "capacity": {"storage": quantity::format(volume.capacity_bytes)},
                "accessModes": claim["spec"]["accessModes"],
                "volumeMode": claim["spec"]["volumeMode"],
                "storageClassName": class_name,
                "persistentVolumeReclaimPolicy": class["reclaimPolicy"],
                "csi": {"driver": self.driver.name(), "volumeHandle": volume.id},
                "claimRef": {
                    "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                    "namespace": object::namespace(claim), "name": object::name(claim), "uid": object::uid(claim),
                    "resourceVersion": object::resource_version(claim),
                },
            },
        });
        match self.context.create(VOLUMES, "", object) {
            Ok(_) | Err(crate::error::ApiError::AlreadyExists(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The handle of the snapshot that the claim is to be made from; none for an empty volume.
    fn source(&self, claim: &Value) -> Result<Option<String>, Trouble> {
        let source = &claim["spec"]["dataSource"];
        if text(source, "/kind") != "VolumeSnapshot" {
            return Ok(None);
        }
        let (namespace, name) = (object::namespace(claim), text(source, "/name"));
        let snapshot = self.context.get(&Key::new(SNAPSHOTS, namespace, name))?;
        let refuse = |why: &str| Err(Trouble::Object(format!("snapshot {name} {why}")));
        if object::deleting(&snapshot) {
            return refuse("is currently being deleted");
        }
        let Some(bound) = set(&snapshot, "/status/boundVolumeSnapshotContentName") else {
            return refuse("is not bound");
        };
        if snapshot["status"]["readyToUse"] != true {
            return refuse("is not ready");
        }
        let content = self.context.get(&Key::new(CONTENTS, "", bound))?;
        let reference = &content["spec"]["volumeSnapshotRef"];
        if text(reference, "/uid") != object::uid(&snapshot) {
            return refuse("is bound to a content that is not bound to it");
        }
        if text(&content, "/spec/driver") != self.driver.name() {
            return refuse("is of another driver");
        }
        match set(&content, "/status/snapshotHandle") {
            Some(handle) => Ok(Some(handle.to_owned())),
            None => refuse("has no handle"),
        }
    }

    /// Deletes a volume whose claim is gone, in storage and in the cluster.
    async fn delete(&self, key: &Key, volume: &Value) -> Result<(), Trouble> {
        let ours = annotation(volume, PROVISIONED_BY) == Some(self.driver.name());
        let over = text(volume, "/status/phase") == "Released";
        if !ours || !over || text(volume, "/spec/persistentVolumeReclaimPolicy") != "Delete" {
            return Ok(());
        }
        let handle = text(volume, "/spec/csi/volumeHandle");
        self.driver.delete_volume(handle, self.context.settings.rpc_timeout).await?;
        match self.context.delete(key) {
            Ok(_) => {
                self.context.patch(key, Part::Main, |object| {
                    object::set_finalizer(object, FINALIZER, false);
                })?;
                Ok(())
            }
            Err(crate::error::ApiError::NotFound(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The class's parameters without those for the sidecar, and the names of the objects behind the request.
fn parameters(class: &Value, claim: &Value, volume: &str) -> Parameters {
    let given = class["parameters"].as_object().into_iter().flatten();
    let mut parameters: Parameters = given
        .filter(|(key, _)| !key.starts_with("csi.storage.k8s.io/"))
        .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    for (key, value) in
        [("pvc/name", object::name(claim)), ("pvc/namespace", object::namespace(claim)), ("pv/name", volume)]
    {
        parameters.insert(format!("csi.storage.k8s.io/{key}"), value.to_owned());
    }
    parameters
}
