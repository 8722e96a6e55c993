//! Makes sure that the restored snapshot of a claim and its content exist, also where the restore leaves them out or
//! the archive has none: a claim that waits for what never comes is Pending for ever.

use serde_json::{Value, json};
use velero_plugin::Restore;

use super::classes::Classes;
use super::content::{self, ForSnapshot};
use super::labels_of;
use super::stored::StoredSnapshot;
use crate::cluster::resource::{CONTENTS, Resource, SNAPSHOT_GROUP, SNAPSHOTS};
use crate::cluster::{ApiError, Cluster, Reason};
use crate::keys;

/// Why a snapshot can't be made present.
#[derive(Debug, thiserror::Error)]
pub(super) enum PresentError {
    /// The API server refused, or can't be reached.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// Nothing tells what the content would have to point at.
    #[error(
        "VolumeSnapshot {snapshot} of the archive has no content there, and nothing says which driver and handle it has: \
         its data can't be found"
    )]
    Unknown {
        /// The archived name.
        snapshot: String,
    },
}

/// What is there now.
#[derive(Debug)]
pub(super) struct Present {
    /// The restored snapshot; `None` where Velero must still restore it.
    pub snapshot: Option<Value>,
    /// Its content.
    pub content: Option<Value>,
    /// Whether the snapshot was made here, so that Velero must not restore it once more.
    pub is_made: bool,
}

/// Looks for the restored `snapshot` and its content, and makes what is missing as far as `of_claim`, or else the snapshot
/// itself, tells where the data is. Can be repeated. `archived` is the snapshot's name in the archive.
pub(super) async fn ensure(
    cluster: &Cluster,
    classes: &Classes,
    restore: &Restore,
    snapshot: ForSnapshot<'_>,
    archived: &str,
    of_claim: Option<StoredSnapshot>,
) -> Result<Present, PresentError> {
    let found = cluster.find(SNAPSHOTS, snapshot.namespace, snapshot.name).await?;
    let content = cluster.find(CONTENTS, "", snapshot.name).await?;
    let stored = of_claim.or_else(|| StoredSnapshot::of_snapshot(found.as_ref()?));
    let content = match (content, &stored) {
        (Some(content), _) => Some(content),
        (None, Some(stored)) => Some(make_content(cluster, classes, restore, snapshot, stored).await?),
        // The snapshot was restored, and would have brought the content with it.
        (None, None) if found.is_some() => {
            return Err(PresentError::Unknown { snapshot: archived.to_owned() });
        }
        (None, None) => None,
    };
    match (found, stored) {
        (None, Some(stored)) => {
            let made = make_snapshot(cluster, restore, snapshot, &stored).await?;
            Ok(Present { snapshot: Some(made), content, is_made: true })
        }
        (snapshot, _) => Ok(Present { snapshot, content, is_made: false }),
    }
}

/// Makes the content of `snapshot`, or takes the one of an earlier attempt.
pub(super) async fn make_content(
    cluster: &Cluster,
    classes: &Classes,
    restore: &Restore,
    snapshot: ForSnapshot<'_>,
    stored: &StoredSnapshot,
) -> Result<Value, ApiError> {
    let class = classes.choose(&stored.driver, stored.class.as_deref()).await;
    let content = content::from_stored(stored, snapshot, class, &labels_of(restore));
    create_or_take(cluster, CONTENTS, "", &content).await
}

async fn make_snapshot(
    cluster: &Cluster,
    restore: &Restore,
    snapshot: ForSnapshot<'_>,
    stored: &StoredSnapshot,
) -> Result<Value, ApiError> {
    let object = json!({
        "apiVersion": format!("{SNAPSHOT_GROUP}/{}", SNAPSHOTS.version),
        "kind": "VolumeSnapshot",
        "metadata": {
            "namespace": snapshot.namespace,
            "name": snapshot.name,
            "labels": labels_of(restore),
            "annotations": {
                keys::DELETION_POLICY: "Retain",
                keys::DRIVER_NAME: stored.driver,
                keys::SNAPSHOT_HANDLE: stored.handle,
            },
        },
        "spec": {"source": {"volumeSnapshotContentName": snapshot.name}},
    });
    create_or_take(cluster, SNAPSHOTS, snapshot.namespace, &object).await
}

/// Creates `object`. One of its name is the same, since the name holds the UID of the restore.
pub(super) async fn create_or_take(
    cluster: &Cluster,
    resource: Resource,
    namespace: &str,
    object: &Value,
) -> Result<Value, ApiError> {
    match cluster.create(resource, namespace, object).await {
        Err(error) if error.reason == Reason::AlreadyExists => {
            cluster.get(resource, namespace, crate::object::name(object)).await
        }
        created => created,
    }
}
