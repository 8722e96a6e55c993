//! Snapshots at restore: each becomes one of an existing content, under a name that follows from the restore.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use velero_plugin::restore::{Outcome, RestoreInput, RestoreItemActionV2};
use velero_plugin::{
    Context as _, Error, Item, ResourceIdentifier, ResourceSelector, Restore, Result, label,
};

use super::classes::Classes;
use super::content::ForSnapshot;
use super::present::make_content;
use super::stored::StoredSnapshot;
use super::{PATIENCE, is_claim_there, traces, wants_empty_volumes};
use crate::cluster::Cluster;
use crate::cluster::resource::{CONTENTS, SNAPSHOT_GROUP};
use crate::environment::Environment;
use crate::object::Snapshot;
use crate::{keys, names};

/// The action on snapshots.
#[derive(Debug)]
pub struct SnapshotRestore {
    environment: Arc<Environment>,
    cluster: Cluster,
    classes: Classes,
}

/// Where the content of a snapshot comes from.
#[derive(Debug, PartialEq, Eq)]
enum Source<'a> {
    /// Velero restores the archived one of this name.
    Archive(&'a str),
    /// It is made here.
    Made(StoredSnapshot),
}

impl SnapshotRestore {
    /// The action in `environment`.
    pub fn new(environment: Arc<Environment>) -> Self {
        let cluster = environment.cluster.patient(PATIENCE);
        Self { environment, classes: Classes::of(cluster.clone()), cluster }
    }

    async fn restored(&self, input: &RestoreInput) -> Result<Outcome> {
        let RestoreInput { item, from_backup, restore } = input;
        let archived = from_backup.object();
        if let Some(claim) = Snapshot(archived).claim()
            && is_claim_there(&self.cluster, restore, item.namespace(), claim).await?
        {
            tracing::info!(
                "VolumeSnapshot {}/{}: not restored, since claim {claim} exists and keeps its data",
                item.namespace(),
                item.name()
            );
            return Ok(Outcome::skip());
        }
        let name = names::restored(restore.uid(), item.name());
        let additional = match source(archived, restore)? {
            Source::Archive(content) => {
                Some(ResourceIdentifier::new(SNAPSHOT_GROUP, CONTENTS.plural, "", content)?)
            }
            Source::Made(stored) => {
                let namespace = restore.target_namespace(item.namespace());
                let snapshot = ForSnapshot { namespace, name: &name };
                make_content(&self.cluster, &self.classes, restore, snapshot, &stored).await?;
                None
            }
        };
        Ok(Outcome::changed(rewritten(item, &name, restore)?).with_additional_items(additional))
    }
}

#[async_trait]
impl RestoreItemActionV2 for SnapshotRestore {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::resources(["volumesnapshots.snapshot.storage.k8s.io"])
    }

    async fn execute(&self, input: RestoreInput) -> Result<Outcome> {
        if self.environment.is_alongside() {
            return Ok(Outcome::unchanged());
        }
        let what = format!("VolumeSnapshot {}/{}", input.item.namespace(), input.item.name());
        if wants_empty_volumes(&input.restore) {
            tracing::debug!("{what}: not restored, since restorePVs is false");
            return Ok(Outcome::skip());
        }
        self.restored(&input).await.context(what)
    }
}

/// Where the content of the `archived` snapshot comes from in this restore.
fn source<'a>(archived: &'a Value, restore: &Restore) -> Result<Source<'a>> {
    let filtered = restore.get(&["spec", "includeClusterResources"]) == Some(&Value::Bool(false));
    match Snapshot(archived).bound_content() {
        Some(content) if !filtered => Ok(Source::Archive(content)),
        bound => StoredSnapshot::of_snapshot(archived).map(Source::Made).ok_or_else(|| {
            Error::new(if bound.is_some() {
                "includeClusterResources is false, which leaves out its content, and its annotations don't say which driver \
                 and handle it has: restore without that setting"
            } else {
                "it has no bound content in the archive, and its annotations don't say which driver and handle it has: its \
                 data can't be found"
            })
        }),
    }
}

/// The snapshot as it is created. Its namespace stays: Velero maps it afterwards.
fn rewritten(item: &Item, name: &str, restore: &Restore) -> Result<Item> {
    Ok(item.edited(|document| {
        traces::remove(document, item.object())?;
        document.set(&["metadata", "name"], name)?;
        document.set(&["metadata", "annotations", keys::DELETION_POLICY], "Retain")?;
        document.set(&["metadata", "labels", keys::RESTORE_UID], label::valid_value(restore.uid()))?;
        document.set(&["spec", "source"], json!({"volumeSnapshotContentName": name}))?;
        document.remove(&["spec", "volumeSnapshotClassName"]);
        Ok(())
    })?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "a value written at the call reads best")]

    use super::*;

    fn restore(spec: Value) -> Restore {
        Restore::from(json!({"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}, "spec": spec}))
    }

    fn annotated() -> Value {
        json!({"velero.io/csi-driver-name": "d.csi", "velero.io/csi-volumesnapshot-handle": "h"})
    }

    #[test]
    fn i53_i54_c24_the_content_comes_from_the_archive_or_from_the_annotations_or_there_is_an_error() {
        let bound = json!({"boundVolumeSnapshotContentName": "c"});
        let made =
            || Source::Made(StoredSnapshot { driver: "d.csi".into(), handle: "h".into(), class: None });
        let table = [
            (json!({"metadata": {}, "status": bound}), json!({}), Some(Source::Archive("c"))),
            (json!({"status": bound}), json!({"includeClusterResources": true}), Some(Source::Archive("c"))),
            (json!({"status": bound}), json!({"includeClusterResources": false}), None),
            (
                json!({"metadata": {"annotations": annotated()}, "status": bound}),
                json!({"includeClusterResources": false}),
                Some(made()),
            ),
            (json!({"metadata": {"annotations": annotated()}}), json!({}), Some(made())),
            (json!({"metadata": {}}), json!({}), None),
        ];
        for (archived, spec, expected) in &table {
            let source = source(archived, &restore(spec.clone()));
            assert_eq!(source.ok(), *expected, "{archived} {spec}");
        }
        let error = source(&json!({}), &restore(json!({}))).unwrap_err();
        assert!(error.to_string().contains("no bound content"), "{error}");
    }

    #[test]
    fn c20_c22_c23_c24_i52_a_snapshot_is_renamed_retained_and_stays_in_its_namespace() {
        let item = Item::try_from(json!({"kind": "VolumeSnapshot",
            "metadata": {"name": "velero-data-abcde", "namespace": "a"},
            "spec": {"source": {"persistentVolumeClaimName": "data"}, "volumeSnapshotClassName": "k", "future": 1}}))
        .unwrap();
        let name = names::restored("11111111-2222-3333-4444-555555555555", item.name());
        let snapshot =
            rewritten(&item, &name, &restore(json!({"namespaceMapping": {"a": "a-copy"}}))).unwrap();
        assert_eq!(snapshot.name(), "dd6ca9ebc0c73c744c9951e002b9abdf0824a447a64a51cd4afecd9d3ab0b522");
        assert_eq!(snapshot.namespace(), "a");
        assert_eq!(snapshot.annotation("velero.io/csi-vsc-deletion-policy"), Some("Retain"));
        assert_eq!(
            snapshot.object()["spec"],
            json!({"source": {"volumeSnapshotContentName": snapshot.name()}, "future": 1})
        );
    }
}
