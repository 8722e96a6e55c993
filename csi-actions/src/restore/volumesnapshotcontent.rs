//! Contents at restore: each becomes one that no snapshot is bound to yet, for the snapshot that the restore makes.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use velero_plugin::restore::{Outcome, RestoreInput, RestoreItemActionV2};
use velero_plugin::{Context as _, Error, Item, ResourceIdentifier, ResourceSelector, Result};

use super::classes::Classes;
use super::content::{ForSnapshot, rewrite};
use super::present::create_or_take;
use super::{PATIENCE, is_claim_there, labels_of, wants_empty_volumes};
use crate::cluster::Cluster;
use crate::cluster::resource::CONTENTS;
use crate::environment::Environment;
use crate::object::{Content, annotation, label};
use crate::secrets::{self, SecretRef};
use crate::{keys, names};

/// The action on contents.
#[derive(Debug)]
pub struct ContentRestore {
    environment: Arc<Environment>,
    cluster: Cluster,
    classes: Classes,
}

impl ContentRestore {
    /// The action in `environment`.
    pub fn new(environment: Arc<Environment>) -> Self {
        let cluster = environment.cluster.patient(PATIENCE);
        Self { environment, classes: Classes::of(cluster.clone()), cluster }
    }

    async fn restored(&self, input: &RestoreInput) -> Result<Outcome> {
        let RestoreInput { item, from_backup, restore } = input;
        let archived = from_backup.object();
        let content = Content(archived);
        let Some((namespace, snapshot)) = content.snapshot() else {
            return Err(Error::new("it names no snapshot, so nothing could use it"));
        };
        let Some(handle) = content.handle() else {
            return Err(Error::new(
                "there is no snapshot handle in the archive, so its data can't be found: the storage had not cut the \
                 snapshot when it was archived",
            ));
        };
        if let Some(claim) = annotation(archived, keys::CLAIM)
            && is_claim_there(&self.cluster, restore, namespace, claim).await?
        {
            tracing::info!(
                "VolumeSnapshotContent {}: not restored, since claim {namespace}/{claim} exists and keeps its data",
                item.name()
            );
            return Ok(Outcome::skip());
        }
        let name = names::restored(restore.uid(), snapshot);
        let target = ForSnapshot { namespace: restore.target_namespace(namespace), name: &name };
        let class = self.classes.choose(content.driver(), content.class()).await;
        let changed = item.edited(|document| {
            rewrite(document, item.object(), target, handle, class)?;
            for (key, value) in labels_of(restore) {
                document.set(&["metadata", "labels", &key], value)?;
            }
            Ok(())
        })?;
        if self.environment.server.release().await.looks_for_archived_name() {
            return self.create(&changed).await;
        }
        let secret = archived_secret(archived, class)?;
        Ok(Outcome::changed(changed).with_additional_items(secret))
    }

    /// Creates the content in place of a server that takes the original, which still lives, for it.
    async fn create(&self, content: &Item) -> Result<Outcome> {
        create_or_take(&self.cluster, CONTENTS, "", content.object()).await?;
        tracing::info!("made VolumeSnapshotContent {}, which this server would leave out", content.name());
        Ok(Outcome::skip())
    }
}

#[async_trait]
impl RestoreItemActionV2 for ContentRestore {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::resources(["volumesnapshotcontents.snapshot.storage.k8s.io"])
    }

    async fn execute(&self, input: RestoreInput) -> Result<Outcome> {
        if self.environment.is_alongside() {
            return Ok(Outcome::unchanged());
        }
        let what = format!("VolumeSnapshotContent {}", input.item.name());
        if wants_empty_volumes(&input.restore) {
            tracing::debug!("{what}: not restored, since restorePVs is false");
            return Ok(Outcome::skip());
        }
        self.restored(&input).await.context(what)
    }
}

/// The Secret that deletes the snapshot, where it is in the archive: our backup put it there. That of the class is this
/// cluster's own already.
fn archived_secret(archived: &Value, class: Option<&Value>) -> Result<Option<ResourceIdentifier>> {
    let is_ours = label(archived, keys::BACKUP_UID).is_some();
    if !is_ours || class.is_some_and(|class| secrets::deleting(class).is_some()) {
        return Ok(None);
    }
    Ok(secrets::of_content(archived).map(SecretRef::identifier).transpose()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn c36_the_secret_is_restored_where_our_archive_has_it_and_the_cluster_names_none() {
        let archived = |uid: Value| {
            json!({"metadata": {"labels": {"velero.io/backup-uid": uid}, "annotations": {
                "snapshot.storage.kubernetes.io/deletion-secret-name": "s",
                "snapshot.storage.kubernetes.io/deletion-secret-namespace": "hpe"}}})
        };
        let secret = |archived: Value, class: Option<&Value>| {
            archived_secret(&archived, class).unwrap().map(|secret| secret.to_string())
        };
        assert_eq!(secret(archived(json!("u")), None).as_deref(), Some("secrets hpe/s"));
        assert_eq!(secret(archived(json!("u")), Some(&json!({}))).as_deref(), Some("secrets hpe/s"));
        assert_eq!(secret(archived(Value::Null), None), None, "Velero's own archives don't hold it");
        assert_eq!(secret(json!({"metadata": {"labels": {"velero.io/backup-uid": "u"}}}), None), None);
        let class = json!({"parameters": {"csi.storage.k8s.io/snapshotter-secret-name": "t",
            "csi.storage.k8s.io/snapshotter-secret-namespace": "n"}});
        assert_eq!(secret(archived(json!("u")), Some(&class)), None);
    }
}
