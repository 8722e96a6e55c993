//! Actions on the items of a restore, one file per resource.
//!
//! Velero restores the contents first, then the snapshots, the volumes, and the claims last. The snapshot and its content get a name
//! that follows from the restore and the archived snapshot, so that each of the three finds the others without asking.

pub mod persistentvolume;
pub mod persistentvolumeclaim;
pub mod volumesnapshot;
pub mod volumesnapshotclass;
pub mod volumesnapshotcontent;

mod binding;
mod claim;
mod class;
mod classes;
mod content;
mod group;
mod keep;
mod present;
mod ready;
mod stored;
mod traces;
mod waits;

use serde_json::{Map, Value};
use velero_plugin::{Restore, label};

use crate::cluster::resource::CLAIMS;
use crate::cluster::{ApiError, Cluster, PATIENCE};
use crate::keys;

/// Whether the user wants volumes without their data.
fn wants_empty_volumes(restore: &Restore) -> bool {
    restore.restore_pvs() == Some(false)
}

/// The labels by which an object is known to come from `restore`. Velero adds all but the UID to what it creates.
fn labels_of(restore: &Restore) -> Map<String, Value> {
    Map::from_iter([
        (keys::BACKUP_NAME.to_owned(), label::valid_value(restore.backup_name()).into()),
        (keys::RESTORE_NAME.to_owned(), label::valid_value(restore.name()).into()),
        (keys::RESTORE_UID.to_owned(), label::valid_value(restore.uid()).into()),
    ])
}

/// Whether the claim exists where `restore` would put it. Then it keeps its data, and needs no snapshot.
async fn is_claim_there(
    cluster: &Cluster,
    restore: &Restore,
    namespace: &str,
    claim: &str,
) -> Result<bool, ApiError> {
    Ok(cluster.find(CLAIMS, restore.target_namespace(namespace), claim).await?.is_some())
}
