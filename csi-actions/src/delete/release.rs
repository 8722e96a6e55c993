//! What becomes of the other contents that point at a snapshot, once it is gone from the storage.

use std::time::Duration;

use serde_json::{Value, json};
use velero_plugin::Backup;

use super::live::{self, Role};
use super::target::Target;
use super::way::{self, snapshot_of};
use crate::cluster::resource::CONTENTS;
use crate::cluster::{ApiError, Cluster, Reason};
use crate::discard::nudge;
use crate::keys;
use crate::object::{label, name, text, uid};

/// How often a content is judged anew, since someone wrote to it meanwhile.
const ATTEMPTS: u32 = 10;
/// Between two of these.
const PAUSE: Duration = Duration::from_millis(50);

/// Releases the content that was `listed`, if it still points at `target` and a restore or the backup made it: it goes,
/// or, where its snapshot lives by now, is told to go with it. One that is being deleted already may be stuck: it is let go until
/// it is gone, or nudged.
///
/// # Errors
///
/// When the API server refuses or can't be reached, or someone else writes to the content all the time.
pub(super) async fn release(
    cluster: &Cluster,
    listed: &Value,
    target: &Target,
    archived: &Value,
    backup: &Backup,
) -> Result<(), ApiError> {
    let mut attempts = ATTEMPTS;
    loop {
        // The list is from a while ago, and a restore may have bound the content since.
        let found = cluster.find(CONTENTS, "", name(listed)).await?;
        let Some(content) = found.filter(|found| uid(found) == uid(listed)) else { return Ok(()) };
        match live::role(&content, target, archived, backup) {
            Some(Role::Going) if attempts > 0 && way::is_stuck(cluster, &content).await? => {
                attempts -= 1;
                way::let_go(cluster, &content).await?;
                // The sidecar may have been about to wipe it away again.
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            Some(Role::Going) => {
                nudge(cluster, CONTENTS, &content).await;
                return Ok(());
            }
            Some(Role::Restored | Role::LeftOver) => {}
            Some(Role::Temporary | Role::Foreign) | None => return Ok(()),
        }
        attempts -= 1;
        match delete(cluster, &content).await {
            Err(error) if error.reason == Reason::NotFound => return Ok(()),
            Err(error) if error.reason == Reason::Conflict && attempts > 0 => tokio::time::sleep(PAUSE).await,
            Err(error) => return Err(error),
            Ok(()) => {
                let restore = label(&content, keys::RESTORE_NAME);
                tracing::info!(
                    restore,
                    content = name(&content),
                    "released what pointed at the deleted snapshot"
                );
                return Ok(());
            }
        }
    }
}

/// Each write is to the very state that was judged: a snapshot that is bound at this moment keeps its content.
async fn delete(cluster: &Cluster, content: &Value) -> Result<(), ApiError> {
    let version = text(content, &["metadata", "resourceVersion"]);
    if snapshot_of(cluster, content).await?.is_some() {
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"deletionPolicy": "Delete"}});
        return cluster.patch(CONTENTS, "", name(content), &patch).await.map(|_| ());
    }
    let mark = json!({keys::BEING_DELETED: "yes"});
    let patch = json!({"metadata": {"resourceVersion": version, "annotations": mark}});
    let marked = cluster.patch(CONTENTS, "", name(content), &patch).await?;
    cluster.delete_unchanged(CONTENTS, &marked).await
}
