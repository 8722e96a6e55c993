//! A real Kubernetes API as tests use it: objects as JSON values, every call with a time limit.

mod kind;
pub mod wait;

pub use kind::*;

use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

/// A client with the rights of its kubeconfig.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
}

impl Cluster {
    /// Of the current context of the file.
    ///
    /// # Errors
    /// When the file says nothing that a connection can be made of.
    pub async fn from_kubeconfig(path: &Path) -> Result<Self> {
        // An error only means that another one is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let file = Kubeconfig::read_from(path)?;
        let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        config.connect_timeout = Some(Duration::from_secs(5));
        config.read_timeout = Some(Duration::from_secs(20));
        config.write_timeout = Some(Duration::from_secs(20));
        Ok(Self { client: Client::try_from(config)? })
    }

    /// Whether the server calls itself ready.
    pub async fn ready(&self) -> bool {
        let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else { return false };
        matches!(self.client.request_text(request).await, Ok(text) if text == "ok")
    }

    /// The object, if there is one.
    ///
    /// # Errors
    /// When the API server refuses or is not reached.
    pub async fn get(&self, kind: Kind, namespace: &str, name: &str) -> Result<Option<Value>> {
        let found = self.api(kind, namespace).get_opt(name).await;
        found.with_context(|| told("get", kind, namespace, name))?.map(json).transpose()
    }

    /// The objects in `namespace`, or in all of them when it is empty.
    ///
    /// # Errors
    /// When the API server refuses or is not reached.
    pub async fn list(&self, kind: Kind, namespace: &str) -> Result<Vec<Value>> {
        let list = self.api(kind, namespace).list(&ListParams::default()).await;
        list.with_context(|| told("list", kind, namespace, ""))?.items.into_iter().map(json).collect()
    }

    /// The names of the objects in `namespace`, or in all of them when it is empty.
    ///
    /// # Errors
    /// When the API server refuses or is not reached.
    pub async fn names(&self, kind: Kind, namespace: &str) -> Result<Vec<String>> {
        let objects = self.list(kind, namespace).await?;
        Ok(objects.iter().map(|object| text(object, "/metadata/name").to_owned()).collect())
    }

    /// The objects in all namespaces as they are and as they change, until the API server ends it or is silent for long.
    ///
    /// # Errors
    /// When the API server refuses or is not reached.
    pub async fn watch(&self, kind: Kind) -> Result<impl Stream<Item = Result<Value>> + use<>> {
        let events = self.api(kind, "").watch(&WatchParams::default(), "0").await;
        let events = events.with_context(|| told("watch", kind, "", ""))?;
        Ok(events.filter_map(|event| async {
            match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => Some(json(object)),
                Ok(_) => None,
                Err(error) => Some(Err(error.into())),
            }
        }))
    }

    /// Creates the object in `namespace`; `apiVersion` and `kind` come from the kind.
    ///
    /// # Errors
    /// When the API server refuses or is not reached.
    pub async fn create(&self, kind: Kind, namespace: &str, mut object: Value) -> Result<Value> {
        let resource = kind.resource();
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
    ///
    /// # Errors
    /// When the API server refuses or is not reached.
    pub async fn merge(&self, kind: Kind, namespace: &str, name: &str, patch: &Value) -> Result<Value> {
        let merged =
            self.api(kind, namespace).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        json(merged.with_context(|| told("patch", kind, namespace, name))?)
    }

    /// Merges `patch` into the status of the object, which [`merge`](Self::merge) leaves as it is.
    ///
    /// # Errors
    /// When the API server refuses or is not reached.
    pub async fn merge_status(&self, kind: Kind, namespace: &str, name: &str, patch: &Value) -> Result<()> {
        let api = self.api(kind, namespace);
        let merged = api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        merged.with_context(|| told("patch the status of", kind, namespace, name))?;
        Ok(())
    }

    /// Asks for the deletion; an object that is gone already is no error.
    ///
    /// # Errors
    /// When the API server refuses or is not reached.
    pub async fn delete(&self, kind: Kind, namespace: &str, name: &str) -> Result<()> {
        match self.api(kind, namespace).delete(name, &DeleteParams::default()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error).with_context(|| told("delete", kind, namespace, name)),
        }
    }

    /// The states that the object was in after `version`, up to the first that is the `last`, which must have been by now.
    ///
    /// # Errors
    /// When the API server refuses, is not reached or does not remember so far back, or there was no such state.
    pub async fn states(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        version: &str,
        last: impl Fn(&Value) -> bool,
    ) -> Result<Vec<Value>> {
        let told = || told("watch", kind, namespace, name);
        let past = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(5);
        let events = self.api(kind, namespace).watch(&past, version).await.with_context(told)?;
        let mut events = pin!(events);
        let mut states = Vec::new();
        while let Some(event) = events.try_next().await.with_context(told)? {
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                    states.push(json(object)?);
                }
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(refusal) => bail!("{}: {}", told(), refusal.message),
            }
            if states.last().is_some_and(&last) {
                return Ok(states);
            }
        }
        bail!("{}: its last state is missing after {states:?}", told())
    }

    fn api(&self, kind: Kind, namespace: &str) -> Api<DynamicObject> {
        let resource = kind.resource();
        if namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        }
    }
}

/// The text at a JSON pointer, or nothing.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The number at a JSON pointer; Kubernetes leaves zeroes out.
pub fn count(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

fn json(object: DynamicObject) -> Result<Value> {
    Ok(serde_json::to_value(object)?)
}

fn told(verb: &str, kind: Kind, namespace: &str, name: &str) -> String {
    format!("cannot {verb} {} {namespace}/{name}", kind.resource().plural)
}
