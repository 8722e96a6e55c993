//! Classes at restore: one that the cluster has already is the cluster's own.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use velero_plugin::restore::{Outcome, RestoreInput, RestoreItemActionV2};
use velero_plugin::{Context as _, ResourceIdentifier, ResourceSelector, Result};

use super::{PATIENCE, traces, wants_empty_volumes};
use crate::cluster::Cluster;
use crate::cluster::resource::CLASSES;
use crate::environment::Environment;
use crate::keys;
use crate::object::annotation;
use crate::secrets::{self, SecretRef};

/// The action on classes.
#[derive(Debug)]
pub struct ClassRestore {
    environment: Arc<Environment>,
    cluster: Cluster,
}

impl ClassRestore {
    /// The action in `environment`.
    pub fn new(environment: Arc<Environment>) -> Self {
        let cluster = environment.cluster.patient(PATIENCE);
        Self { environment, cluster }
    }
}

#[async_trait]
impl RestoreItemActionV2 for ClassRestore {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::resources(["volumesnapshotclasses.snapshot.storage.k8s.io"])
    }

    async fn execute(&self, input: RestoreInput) -> Result<Outcome> {
        let RestoreInput { item, restore, .. } = input;
        if self.environment.is_alongside() {
            return Ok(Outcome::unchanged());
        }
        let class = format!("VolumeSnapshotClass {}", item.name());
        if wants_empty_volumes(&restore) {
            tracing::debug!("{class}: not restored, since restorePVs is false");
            return Ok(Outcome::skip());
        }
        // Archived beside a snapshot and not because someone asked for it, it must not cost a warning where it differs.
        let updates =
            restore.get(&["spec", "existingResourcePolicy"]).is_some_and(|policy| policy == "update");
        if !updates && self.cluster.find(CLASSES, "", item.name()).await.context(&class)?.is_some() {
            tracing::debug!("{class}: the cluster has it");
            return Ok(Outcome::skip());
        }
        let secrets = archived_secrets(item.object()).context(&class)?;
        let changed = item.edited(|document| traces::remove(document, item.object()))?;
        Ok(Outcome::changed(changed).with_additional_items(secrets))
    }
}

/// The Secrets of the class where they are in the archive: the mark says that our backup put them there.
fn archived_secrets(archived: &Value) -> Result<Vec<ResourceIdentifier>> {
    if annotation(archived, keys::MUST_INCLUDE).is_none() {
        return Ok(Vec::new());
    }
    Ok(secrets::of_class(archived).into_iter().map(SecretRef::identifier).collect::<Result<_, _>>()?)
}
