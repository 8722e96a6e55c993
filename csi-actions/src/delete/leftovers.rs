//! What killed processes left behind of single snapshots: those of a backup that are in no archive, and deletions that nobody finished.

use serde_json::Value;
use tokio::time::{Duration, Instant};
use velero_plugin::{Backup, label};

use super::going::{self, End};
use super::hidden;
use super::passage::Passage;
use super::target::Target;
use super::way::{self, Way};
use crate::cluster::resource::{CONTENTS, Resource, SNAPSHOTS};
use crate::cluster::{ApiError, Cluster, Query, Reason};
use crate::discard::Doomed;
use crate::object::{Content, Snapshot, name, text, uid};
use crate::pair::Pair;
use crate::{keys, ownership};

/// Takes away the snapshots that `backup`, which is being deleted, left in the cluster, and what is in the storage with
/// them. Such a one is in no archive: the process that took it died, and with it the item. Looks until `end` that they go.
///
/// # Errors
///
/// The first that went wrong; the others were tried all the same.
pub(super) async fn of_backup(cluster: &Cluster, backup: &Backup, end: Instant) -> Result<(), ApiError> {
    let uid = label::valid_value(backup.uid());
    let found = listed(cluster, SNAPSHOTS, format!("{}={uid}", keys::BACKUP_UID)).await?;
    let mut first = Ok(());
    // A member goes with its group alone.
    let is_alone = |snapshot: &&Value| {
        Snapshot(snapshot).group_uid().is_none()
            && text(snapshot, &["status", "volumeGroupSnapshotName"]).is_none()
    };
    for snapshot in found.iter().filter(|each| ownership::is_of_backup(each, backup)).filter(is_alone) {
        let Some(doomed) = Doomed::by_snapshot(Pair::snapshot(), snapshot) else { continue };
        match doomed.discard(cluster, left_until(end)).await {
            Ok(gone) => tracing::info!(gone, "took away {doomed}, which the backup left in the cluster"),
            Err(error) => first = first.and(Err(error)),
        }
    }
    first
}

/// Finishes what deletions of this or other backups began: a temporary content that is not being deleted, or that is still hidden
/// from its driver, is of a process that died. One of a process that is at it at this moment loses nothing by it.
///
/// # Errors
///
/// As [`of_backup`].
pub(super) async fn of_deletions(cluster: &Cluster, end: Instant) -> Result<(), ApiError> {
    let found = listed(cluster, CONTENTS, keys::BACKUP_UID.to_owned()).await?;
    let mut first = Ok(());
    for content in &found {
        let Some(target) = Target::of(content).filter(|target| is_unfinished(content, target)) else {
            continue;
        };
        match finish(cluster, &target, content, end).await {
            Ok(gone) => {
                tracing::info!(gone, content = name(content), "took up an earlier deletion of a snapshot");
            }
            Err(error) => first = first.and(Err(error)),
        }
    }
    first
}

/// Goes on with the deletion that `content` was made for; whether it is over.
pub(super) async fn finish(
    cluster: &Cluster,
    passage: &impl Passage,
    content: &Value,
    end: Instant,
) -> Result<bool, ApiError> {
    match way::armed(cluster, passage, content.clone(), false).await? {
        Way::Open(content) => {
            Ok(going::delete(cluster, passage.resource(), &content, end).await? == End::Gone)
        }
        // Another process is at it.
        Way::Going(_) | Way::Moved | Way::Taken(_) => Ok(true),
    }
}

/// Whether `content` was made to delete by what it stands for, `passage`, and its deletion was not ordered, or its driver does not
/// see it yet.
pub(super) fn is_unfinished(content: &Value, passage: &impl Passage) -> bool {
    name(content) == passage.temporary_name()
        && passage.can_go_through(content).is_ok()
        && !hidden::goes_by_itself(content, passage.finalizer())
        && !ownership::is_restored(content)
        && Content(content).deletion_policy() == "Delete"
        && uid(content).is_some()
}

/// An API server that does not know the resource has none of it.
pub(super) async fn listed(
    cluster: &Cluster,
    resource: Resource,
    labels: String,
) -> Result<Vec<Value>, ApiError> {
    match cluster.list(resource, &Query { labels, cached: false }).await {
        Err(error) if error.reason == Reason::NotServed => Ok(Vec::new()),
        listed => listed,
    }
}

pub(super) fn left_until(end: Instant) -> Duration {
    end.saturating_duration_since(Instant::now())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_content_that_was_made_for_a_deletion_and_waits_for_it_is_taken_up() {
        let archived = json!({"spec": {"driver": "d.csi"}, "status": {"snapshotHandle": "snap-1"}});
        let backup = Backup::from(json!({"metadata": {"name": "b1", "uid": "u1", "namespace": "velero"}}));
        let target = Target::of(&archived).unwrap();
        let mut made = target.temporary_content(&backup);
        made["metadata"]["uid"] = "c1".into();
        assert!(is_unfinished(&made, &target));
        for (pointer, value) in [
            ("/metadata/name", json!("another")),
            ("/metadata/labels/velero.io~1restore-name", json!("r1")),
            ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
            ("/spec/deletionPolicy", json!("Retain")),
            ("/spec/source/snapshotHandle", json!("snap-2")),
            ("/spec/volumeSnapshotRef/uid", json!("u")),
        ] {
            let mut other = made.clone();
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            other.pointer_mut(parent).unwrap()[field.replace("~1", "/")] = value;
            assert!(!is_unfinished(&other, &target), "{other}");
        }
    }
}
