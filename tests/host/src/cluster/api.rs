//! A cluster behind an API server.

use async_trait::async_trait;
use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::core::params::{DeleteParams, GetParams, ListParams, Patch, PatchParams};
use kube::core::request::Request as ApiRequest;
use kube::{Client, Config, Error};
use serde_json::Value;

use super::{Cluster, ClusterError, ServerVersion};
use crate::discovery::{Discovery, Resource};
use crate::select::Labels;

const BACKUPS: &str = "/apis/velero.io/v1/namespaces";
const NOT_FOUND: u16 = 404;

/// Talks to an API server. Objects are read as they are sent, without a typed detour that could lose a field.
#[derive(Clone)]
pub struct ApiCluster {
    client: Client,
    keeps_backups: bool,
}

impl ApiCluster {
    /// Through `client`.
    pub fn new(client: Client) -> Self {
        Self { client, keeps_backups: true }
    }

    /// Puts no Backup into the cluster: a server that runs there would take it for one of its own.
    #[must_use]
    pub fn without_backups(self) -> Self {
        Self { keeps_backups: false, ..self }
    }

    /// By a kubeconfig file.
    ///
    /// # Errors
    ///
    /// When the file is none, or says nothing that a connection can be made of.
    pub async fn connect(kubeconfig: &std::path::Path) -> Result<Self, ConnectError> {
        // An error only means that another one is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok(Self::new(Client::try_from(config)?))
    }

    async fn send(
        &self,
        request: Result<Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Value, Error> {
        self.client.request(request.map_err(Error::BuildRequest)?).await
    }
}

/// Why there is no connection to a cluster.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each says what it is in its text")]
pub enum ConnectError {
    #[error("read the kubeconfig: {0}")]
    Kubeconfig(#[from] KubeconfigError),
    #[error("connect as the kubeconfig says: {0}")]
    Client(#[from] Error),
}

#[async_trait]
impl Cluster for ApiCluster {
    async fn discover(&self) -> Result<Discovery, ClusterError> {
        let mut resources = Vec::new();
        for version in self.client.list_core_api_versions().await?.versions {
            let list = self.client.list_core_api_resources(&version).await?;
            resources.extend(list.resources.into_iter().map(|one| resource("", &version, one)));
        }
        for group in self.client.list_api_groups().await?.groups {
            let Some(preferred) = group.preferred_version.as_ref().or(group.versions.first()) else {
                continue;
            };
            let list = self.client.list_api_group_resources(&preferred.group_version).await?;
            resources
                .extend(list.resources.into_iter().map(|one| resource(&group.name, &preferred.version, one)));
        }
        Ok(Discovery::new(resources))
    }

    async fn version(&self) -> Result<ServerVersion, ClusterError> {
        let Info { git_version, major, minor, .. } = self.client.apiserver_version().await?;
        Ok(ServerVersion { git_version, major, minor })
    }

    async fn list(
        &self,
        resource: &Resource,
        namespace: &str,
        labels: &Labels,
    ) -> Result<Vec<Value>, ClusterError> {
        const PAGE: u32 = 500;
        let mut params = ListParams { label_selector: labels.query(), ..ListParams::default() }.limit(PAGE);
        let mut objects = Vec::new();
        loop {
            let mut page = self.send(ApiRequest::new(resource.path(namespace)).list(&params)).await?;
            let next =
                page.pointer("/metadata/continue").and_then(Value::as_str).unwrap_or_default().to_owned();
            if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
                objects.extend(items.into_iter().map(|item| typed(item, resource)));
            }
            if next.is_empty() {
                return Ok(objects);
            }
            params = params.continue_token(&next);
        }
    }

    async fn get(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ClusterError> {
        match self.send(ApiRequest::new(resource.path(namespace)).get(name, &GetParams::default())).await {
            Ok(object) => Ok(Some(typed(object, resource))),
            Err(Error::Api(status)) if status.code == NOT_FOUND => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn record(&self, backup: &Value) -> Result<(), ClusterError> {
        if !self.keeps_backups {
            return Ok(());
        }
        let text = |pointer| backup.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let request = ApiRequest::new(format!("{BACKUPS}/{namespace}/backups"));
        // Of the metadata only what a client may set, so that the server's own fields stay its own.
        let mut object = backup.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata
                .retain(|field, _| matches!(field.as_str(), "name" | "namespace" | "labels" | "annotations"));
        }
        let params = PatchParams::apply("velero-host").force();
        tolerate_absence(self.send(request.patch(name, &params, &Patch::Apply(object))).await)
    }

    async fn forget(&self, namespace: &str, backup: &str) -> Result<(), ClusterError> {
        if !self.keeps_backups {
            return Ok(());
        }
        let request = ApiRequest::new(format!("{BACKUPS}/{namespace}/backups"));
        tolerate_absence(self.send(request.delete(backup, &DeleteParams::default())).await)
    }
}

/// A cluster without Velero's resources has no Backups to keep.
fn tolerate_absence(result: Result<Value, Error>) -> Result<(), ClusterError> {
    match result {
        Ok(_) => Ok(()),
        Err(Error::Api(status)) if status.code == NOT_FOUND => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The items of a list say neither version nor kind.
fn typed(mut object: Value, resource: &Resource) -> Value {
    object["apiVersion"] = resource.api_version().into();
    object["kind"] = resource.kind.clone().into();
    object
}

fn resource(group: &str, version: &str, listed: APIResource) -> Resource {
    Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: listed.kind,
        plural: listed.name,
        singular: listed.singular_name,
        short_names: listed.short_names.unwrap_or_default(),
        namespaced: listed.namespaced,
        verbs: listed.verbs,
    }
}
