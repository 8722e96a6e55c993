//! Actions on the items of a backup, one file per resource.

pub mod persistentvolume;
pub mod persistentvolumeclaim;
pub mod volumesnapshot;
pub mod volumesnapshotclass;
pub mod volumesnapshotcontent;

mod claim;
mod create;
mod finalize;
pub(crate) mod group;
mod groups;
mod included;
mod restorable;
mod retained;
mod round;
mod tracking;
mod wait;

use std::time::Duration;

use serde_json::Value;
use velero_plugin::backup::Outcome;
use velero_plugin::{Error, Item, Result};

use crate::cluster::Cluster;
use crate::discard::Doomed;
use crate::keys;
use crate::pair::Pair;
use crate::secrets::SecretRef;

/// How long a clean-up after a failure looks whether anything is left.
const DISCARD_LIMIT: Duration = Duration::from_secs(10);

/// The item with `secrets` archived beside it, whatever the filters of the backup say; as it is where there are none.
fn with_secrets<'a>(item: &Item, secrets: impl IntoIterator<Item = SecretRef<'a>>) -> Result<Outcome> {
    let secrets = secrets.into_iter().map(SecretRef::identifier).collect::<Result<Vec<_>, _>>()?;
    if secrets.is_empty() {
        return Ok(Outcome::unchanged());
    }
    let changed =
        item.edited(|document| document.set(&["metadata", "annotations", keys::MUST_INCLUDE], "true"))?;
    Ok(Outcome::changed(changed).with_additional_items(secrets))
}

/// Takes away the snapshot of an attempt that failed with `error`. Where that fails too, the error names what is left,
/// since nothing else will.
async fn discard_after(error: Error, cluster: &Cluster, pair: Pair, snapshot: &Value) -> Error {
    let Some(doomed) = Doomed::by_snapshot(pair, snapshot) else { return error };
    match doomed.discard(cluster, DISCARD_LIMIT).await {
        Ok(true) => error,
        Ok(false) => Error::new(format!("{error}; {doomed} is still being removed")),
        Err(left) => {
            Error::new(format!("{error}; remove {doomed} by hand, since that failed as well: {left}"))
        }
    }
}
