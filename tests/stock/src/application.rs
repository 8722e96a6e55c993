//! What is backed up: a namespace with a ConfigMap and bound claims.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::cluster::{CLAIM, CONFIG_MAP, Cluster, NAMESPACE, text};
use crate::components::storage;
use crate::wait::{Look, until};

/// A namespace that stands for a user's application.
#[derive(Clone, Debug)]
pub(crate) struct Application {
    pub(crate) namespace: String,
    pub(crate) claims: Vec<String>,
}

impl Application {
    /// Creates the namespace and waits until the provisioner has bound all claims `data-0`, `data-1`, ….
    pub(crate) async fn create(cluster: &Cluster, namespace: &str, claims: usize) -> Result<Self> {
        cluster.create(NAMESPACE, "", json!({"metadata": {"name": namespace}})).await?;
        let settings = json!({"metadata": {"name": "settings", "labels": {"stock": "settings"}}, "data": {"colour": "blue"}});
        cluster.create(CONFIG_MAP, namespace, settings).await?;
        let claims: Vec<String> = (0..claims).map(|number| format!("data-{number}")).collect();
        for claim in &claims {
            create_claim(cluster, namespace, claim, storage::CLASS).await?;
        }
        let application = Self { namespace: namespace.to_owned(), claims };
        application.bound(cluster).await?;
        Ok(application)
    }

    /// Adds a claim of this storage class and waits until it is bound.
    pub(crate) async fn add_claim(&mut self, cluster: &Cluster, name: &str, class: &str) -> Result<()> {
        create_claim(cluster, &self.namespace, name, class).await?;
        self.claims.push(name.to_owned());
        self.bound(cluster).await
    }

    /// Waits until every claim is bound.
    pub(crate) async fn bound(&self, cluster: &Cluster) -> Result<()> {
        until("all claims bound", Duration::from_secs(60), || async {
            let claims = cluster.list(CLAIM, &self.namespace).await?;
            let phases: Vec<&str> = claims.iter().map(|claim| text(claim, "/status/phase")).collect();
            if phases.len() == self.claims.len() && phases.iter().all(|phase| *phase == "Bound") {
                return Ok(Look::Found(()));
            }
            Ok(Look::NotYet(format!("{phases:?}")))
        })
        .await
    }

    /// What a restore into `namespace` makes of it.
    pub(crate) fn restored_into(&self, namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), claims: self.claims.clone() }
    }

    /// Deletes the namespace with all in it and waits until it is gone.
    pub(crate) async fn delete(&self, cluster: &Cluster) -> Result<()> {
        cluster.delete(NAMESPACE, "", &self.namespace).await?;
        until("the namespace gone", Duration::from_secs(120), || async {
            Ok(match cluster.get(NAMESPACE, "", &self.namespace).await? {
                None => Look::Found(()),
                Some(namespace) => Look::NotYet(namespace["status"].to_string()),
            })
        })
        .await
    }
}

async fn create_claim(cluster: &Cluster, namespace: &str, name: &str, class: &str) -> Result<()> {
    let claim = json!({
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class,
            "resources": {"requests": {"storage": "1Mi"}},
        },
    });
    cluster.create(CLAIM, namespace, claim).await?;
    Ok(())
}
