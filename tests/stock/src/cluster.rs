//! The Kubernetes API as the scenarios use it: objects as JSON values, every call with a time limit.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

/// A resource type: its group, version, kind and plural.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind(&'static str, &'static str, &'static str, &'static str);

pub(crate) const NAMESPACE: Kind = Kind("", "v1", "Namespace", "namespaces");
pub(crate) const CONFIG_MAP: Kind = Kind("", "v1", "ConfigMap", "configmaps");
pub(crate) const CLAIM: Kind = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims");
pub(crate) const VOLUME: Kind = Kind("", "v1", "PersistentVolume", "persistentvolumes");
pub(crate) const SERVICE_ACCOUNT: Kind = Kind("", "v1", "ServiceAccount", "serviceaccounts");
pub(crate) const DEPLOYMENT: Kind = Kind("apps", "v1", "Deployment", "deployments");
pub(crate) const STORAGE_CLASS: Kind = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses");
pub(crate) const CSI_DRIVER: Kind = Kind("storage.k8s.io", "v1", "CSIDriver", "csidrivers");
pub(crate) const SNAPSHOT: Kind = Kind("snapshot.storage.k8s.io", "v1", "VolumeSnapshot", "volumesnapshots");
pub(crate) const SNAPSHOT_CONTENT: Kind =
    Kind("snapshot.storage.k8s.io", "v1", "VolumeSnapshotContent", "volumesnapshotcontents");
pub(crate) const SNAPSHOT_CLASS: Kind =
    Kind("snapshot.storage.k8s.io", "v1", "VolumeSnapshotClass", "volumesnapshotclasses");
pub(crate) const BACKUP: Kind = Kind("velero.io", "v1", "Backup", "backups");
pub(crate) const RESTORE: Kind = Kind("velero.io", "v1", "Restore", "restores");
pub(crate) const DELETE_REQUEST: Kind =
    Kind("velero.io", "v1", "DeleteBackupRequest", "deletebackuprequests");
pub(crate) const STORAGE_LOCATION: Kind =
    Kind("velero.io", "v1", "BackupStorageLocation", "backupstoragelocations");
pub(crate) const SERVER_STATUS: Kind = Kind("velero.io", "v1", "ServerStatusRequest", "serverstatusrequests");

/// A client of the stack's API server with all rights.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
}

impl Cluster {
    pub(crate) async fn from_kubeconfig(path: &Path) -> Result<Self> {
        let file = Kubeconfig::read_from(path)?;
        let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        config.connect_timeout = Some(Duration::from_secs(5));
        config.read_timeout = Some(Duration::from_secs(20));
        config.write_timeout = Some(Duration::from_secs(20));
        Ok(Self { client: Client::try_from(config)? })
    }

    /// Whether the server calls itself ready.
    pub(crate) async fn ready(&self) -> bool {
        let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else { return false };
        matches!(self.client.request_text(request).await, Ok(text) if text == "ok")
    }

    pub(crate) async fn get(&self, kind: Kind, namespace: &str, name: &str) -> Result<Option<Value>> {
        let found = self.api(kind, namespace).get_opt(name).await;
        found.with_context(|| told("get", kind, namespace, name))?.map(json).transpose()
    }

    /// The objects in `namespace`, or in all of them when it is empty.
    pub(crate) async fn list(&self, kind: Kind, namespace: &str) -> Result<Vec<Value>> {
        let list = self.api(kind, namespace).list(&ListParams::default()).await;
        list.with_context(|| told("list", kind, namespace, ""))?.items.into_iter().map(json).collect()
    }

    pub(crate) async fn names(&self, kind: Kind, namespace: &str) -> Result<Vec<String>> {
        let objects = self.list(kind, namespace).await?;
        Ok(objects.iter().map(|object| text(object, "/metadata/name").to_owned()).collect())
    }

    /// Creates the object in `namespace`; `apiVersion` and `kind` come from the kind.
    pub(crate) async fn create(&self, kind: Kind, namespace: &str, mut object: Value) -> Result<Value> {
        let resource = resource(kind);
        object["apiVersion"] = resource.api_version.clone().into();
        object["kind"] = resource.kind.clone().into();
        let object: DynamicObject = serde_json::from_value(object)?;
        let name = object
            .metadata
            .name
            .clone()
            .or_else(|| object.metadata.generate_name.clone())
            .unwrap_or_default();
        let created = self.api(kind, namespace).create(&PostParams::default(), &object).await;
        json(created.with_context(|| told("create", kind, namespace, &name))?)
    }

    /// Merges `patch` into the object.
    pub(crate) async fn merge(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value> {
        let merged =
            self.api(kind, namespace).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        json(merged.with_context(|| told("patch", kind, namespace, name))?)
    }

    /// Asks for the deletion; an object that is gone already is no error.
    pub(crate) async fn delete(&self, kind: Kind, namespace: &str, name: &str) -> Result<()> {
        match self.api(kind, namespace).delete(name, &DeleteParams::default()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error).with_context(|| told("delete", kind, namespace, name)),
        }
    }

    fn api(&self, kind: Kind, namespace: &str) -> Api<DynamicObject> {
        let resource = resource(kind);
        if namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        }
    }
}

/// The text at a JSON pointer, or nothing.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The number at a JSON pointer; Kubernetes leaves zeroes out.
pub(crate) fn count(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

fn json(object: DynamicObject) -> Result<Value> {
    Ok(serde_json::to_value(object)?)
}

fn told(verb: &str, kind: Kind, namespace: &str, name: &str) -> String {
    format!("cannot {verb} {} {namespace}/{name}", kind.3)
}

fn resource(Kind(group, version, kind, plural): Kind) -> ApiResource {
    ApiResource::from_gvk_with_plural(&kube::api::GroupVersionKind::gvk(group, version, kind), plural)
}
