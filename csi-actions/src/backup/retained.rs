//! Volumes that stay when their claim goes (policy Retain), of which the backup has a snapshot.
//!
//! Velero knows of no snapshot where ours is the only one, so it would restore such a volume as it was, and the claim would take
//! it, with the data of today. One of policy Delete it leaves out and has provisioned anew. So that is what the archive says,
//! and the claim keeps the real policy for the new volume: Velero runs no restore action on a volume that it leaves out.

use serde_json::Value;
use velero_plugin::Backup;

use super::included::is_certain;
use crate::environment::Environment;
use crate::object::text;
use crate::policy::PolicyError;

/// The policy by which a volume stays.
pub(super) const RETAIN: &str = "Retain";
/// The field that says it.
pub(super) const POLICY: [&str; 2] = ["spec", "persistentVolumeReclaimPolicy"];

/// Whether `volume`, of which a snapshot is taken for `claim`, is archived as one of policy Delete. Not where a filter may leave
/// the claim out: the volume would be in no restore at all then. Nor where Velero's own actions know of the snapshot.
pub(super) async fn is_rewritten(
    environment: &Environment,
    volume: &Value,
    claim: &Value,
    backup: &Backup,
) -> Result<bool, PolicyError> {
    Ok(!environment.is_alongside()
        && text(volume, &POLICY) == Some(RETAIN)
        && is_certain(claim, backup)
        && !environment.decisions.have_filters(backup).await?)
}
