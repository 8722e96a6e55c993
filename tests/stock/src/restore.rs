//! One restore: requested, followed to its end, and what it said.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::backup::{Backup, collect_texts};
use crate::cluster::{Cluster, RESTORE, count, text};
use crate::components::bucket::Bucket;
use crate::components::velero::VELERO_NAMESPACE;
use crate::wait::{Look, until};

/// A restore that was requested.
#[derive(Clone)]
pub(crate) struct Restore {
    name: String,
    cluster: Cluster,
    bucket: Bucket,
}

/// A restore that will not change any more.
#[derive(Clone, Debug)]
pub(crate) struct Restored {
    pub(crate) phase: String,
    pub(crate) errors: i64,
    pub(crate) status: Value,
}

impl Restore {
    /// Requests a restore of `backup`; `spec` is laid over the defaults.
    pub(crate) async fn request(
        cluster: &Cluster,
        bucket: &Bucket,
        name: &str,
        backup: &Backup,
        spec: &Value,
    ) -> Result<Self> {
        let mut whole = json!({"backupName": backup.name});
        if let (Some(whole), Some(spec)) = (whole.as_object_mut(), spec.as_object()) {
            whole.extend(spec.clone());
        }
        let restore = json!({"metadata": {"name": name}, "spec": whole});
        cluster.create(RESTORE, VELERO_NAMESPACE, restore).await?;
        Ok(Self { name: name.to_owned(), cluster: cluster.clone(), bucket: bucket.clone() })
    }

    /// Waits until the phase is a final one.
    pub(crate) async fn settles(&self, limit: Duration) -> Result<Restored> {
        let status = until(&format!("restore {} at its end", self.name), limit, || async {
            let restore = self.cluster.get(RESTORE, VELERO_NAMESPACE, &self.name).await?;
            let restore = restore.with_context(|| format!("restore {} is gone", self.name))?;
            let phase = text(&restore, "/status/phase");
            if matches!(phase, "Completed" | "PartiallyFailed" | "Failed" | "FailedValidation") {
                return Ok(Look::Found(restore["status"].clone()));
            }
            Ok(Look::NotYet(restore["status"].to_string()))
        })
        .await?;
        Ok(Restored { phase: text(&status, "/phase").to_owned(), errors: count(&status, "/errors"), status })
    }

    /// All errors and warnings of the results, but the one that every restore of a namespace has: Kubernetes itself writes
    /// the ConfigMap with its certificate before Velero can.
    pub(crate) async fn complaints(&self) -> Result<Vec<String>> {
        let results = self.bucket.json(&format!("restores/{0}/restore-{0}-results.gz", self.name)).await?;
        let mut texts = Vec::new();
        for section in ["errors", "warnings"] {
            collect_texts(&results[section], &mut texts);
        }
        texts.retain(|text| !text.contains("kube-root-ca.crt"));
        Ok(texts)
    }
}
