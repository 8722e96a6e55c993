//! Takes a snapshot away altogether, in the cluster and in the storage: after a failed attempt and after Cancel.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::cluster::resource::Resource;
use crate::cluster::{ApiError, Cluster, Reason};
use crate::keys;
use crate::object::{Content, annotation, is_deleting, label, name, namespace, uid};
use crate::pair::Pair;

/// How often a content that is going is looked at, and how soon it is touched, each time after twice as long: a sidecar that is
/// writing the status at the moment of the deletion overlooks it, and would look again after a quarter of an hour.
const LOOK: Duration = Duration::from_millis(500);

/// A snapshot to take away, or a group of them, and its content.
///
/// Whoever makes one has checked that it belongs to the backup, and that a snapshot is of no group: a driver deletes a group
/// as a whole only.
#[derive(Debug, Clone)]
pub struct Doomed {
    pair: Pair,
    namespace: String,
    name: String,
    uid: String,
    content: String,
}

impl Doomed {
    /// By the snapshot; `None` where it has no UID, so that it can't be told from another one of its name.
    ///
    /// A snapshot that is not bound yet may have a content all the same, under the name that the controller gives it.
    pub fn by_snapshot(pair: Pair, snapshot: &Value) -> Option<Self> {
        let uid = uid(snapshot)?.to_owned();
        let content = pair.content_name(snapshot);
        Some(Self {
            pair,
            namespace: namespace(snapshot).to_owned(),
            name: name(snapshot).to_owned(),
            uid,
            content,
        })
    }

    /// By the content; `None` where it is not bound.
    pub fn by_content(pair: Pair, content: &Value) -> Option<Self> {
        let (namespace, snapshot) = pair.reference(content)?;
        Some(Self {
            pair,
            namespace: namespace.to_owned(),
            name: snapshot.to_owned(),
            uid: pair.bound_uid(content)?.to_owned(),
            content: name(content).to_owned(),
        })
    }

    /// The name of its content.
    pub fn content(&self) -> &str {
        &self.content
    }

    /// Takes it away: the content's policy becomes Delete, the snapshot goes, and the controllers do the rest. Looks
    /// for up to `wait` that nothing is left. Whether nothing is, or the sidecar still has to finish.
    ///
    /// Can be repeated.
    ///
    /// # Errors
    ///
    /// When the API server refuses or can't be reached; then the policy may be Delete already.
    pub async fn discard(&self, cluster: &Cluster, wait: Duration) -> Result<bool, ApiError> {
        self.mark(cluster).await?;
        match cluster.delete(self.pair.snapshots, &self.namespace, &self.name, &self.uid).await {
            // Another snapshot has the name, so ours is gone.
            Err(error) if error.reason == Reason::Conflict => {}
            done => done?,
        }
        let end = Instant::now() + wait;
        let (mut touched, mut silence) = (Instant::now(), LOOK);
        loop {
            // The content may be made at this very moment, so it is marked again each time.
            let mut content = self.mark(cluster).await?;
            if content.is_none() && !self.may_get_a_content(cluster).await? {
                // It may have got it since the look before.
                content = self.mark(cluster).await?;
                if content.is_none() {
                    return Ok(true);
                }
            }
            if let Some(content) = &content
                && self.is_orphan(cluster, content).await?
            {
                self.delete_orphan(cluster, content).await?;
            }
            if Instant::now() >= end {
                return Ok(false);
            }
            sleep(LOOK).await;
            // A sidecar that is at its creation would only ask the driver once more.
            let can_go = |content: &Value| {
                is_deleting(content) && annotation(content, self.pair.being_created).is_none()
            };
            if let Some(content) = content.filter(can_go)
                && touched.elapsed() >= silence
            {
                (touched, silence) = (Instant::now(), silence * 2);
                nudge(cluster, self.pair.contents, &content).await;
            }
        }
    }

    /// Whether the snapshot controller may still make a content for the snapshot, from what it saw of it before the deletion:
    /// it is held, and bound to none.
    async fn may_get_a_content(&self, cluster: &Cluster) -> Result<bool, ApiError> {
        let snapshot = self.living(cluster).await?;
        Ok(snapshot.is_some_and(|snapshot| self.pair.bound_content(&snapshot).is_none()))
    }

    /// The snapshot, if it is there.
    async fn living(&self, cluster: &Cluster) -> Result<Option<Value>, ApiError> {
        let snapshot = cluster.find(self.pair.snapshots, &self.namespace, &self.name).await?;
        Ok(snapshot.filter(|snapshot| uid(snapshot) == Some(&self.uid)))
    }

    /// Gives the content the policy Delete and our mark, so that finalizing won't keep it; the content, if there is one.
    async fn mark(&self, cluster: &Cluster) -> Result<Option<Value>, ApiError> {
        let Some(content) = cluster.find(self.pair.contents, "", &self.content).await? else {
            return Ok(None);
        };
        if self.pair.bound_uid(&content) != Some(&self.uid) {
            return Ok(None);
        }
        if Content(&content).deletion_policy() == "Delete" && label(&content, keys::CANCELLED).is_some() {
            return Ok(Some(content));
        }
        let patch = json!({
            "metadata": {"labels": {keys::CANCELLED: "true"}},
            "spec": {"deletionPolicy": "Delete"},
        });
        match cluster.patch(self.pair.contents, "", &self.content, &patch).await {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.reason == Reason::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether nobody else will delete the content: its snapshot is gone, and it was not told, or that was wiped away by a
    /// sidecar that began another attempt to cut the snapshot. Such a one finishes that first, if it is at it.
    async fn is_orphan(&self, cluster: &Cluster, content: &Value) -> Result<bool, ApiError> {
        if is_deleting(content) && annotation(content, self.pair.being_deleted).is_some() {
            return Ok(false);
        }
        Ok(self.living(cluster).await?.is_none())
    }

    async fn delete_orphan(&self, cluster: &Cluster, content: &Value) -> Result<(), ApiError> {
        let patch = json!({"metadata": {"annotations": {self.pair.being_deleted: "yes"}}});
        match cluster.patch(self.pair.contents, "", &self.content, &patch).await {
            Err(error) if error.reason == Reason::NotFound => return Ok(()),
            done => done?,
        };
        cluster.delete(self.pair.contents, "", &self.content, uid(content).unwrap_or_default()).await
    }
}

/// Touches a content that is being deleted, so that the sidecar looks at it again. What goes wrong is of no matter:
/// the deletion itself has been ordered.
pub async fn nudge(cluster: &Cluster, resource: Resource, content: &Value) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let patch = json!({"metadata": {"annotations": {keys::NUDGE: now.as_millis().to_string()}}});
    if let Err(error) = cluster.patch(resource, "", name(content), &patch).await {
        tracing::debug!("{error}");
    }
}

impl std::fmt::Display for Doomed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}/{} with content {}", self.pair.kind(), self.namespace, self.name, self.content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unbound_snapshot_is_looked_up_by_the_name_that_the_controller_gives() {
        let snapshot = json!({"metadata": {"namespace": "a", "name": "s", "uid": "u"}});
        let text = Doomed::by_snapshot(Pair::snapshot(), &snapshot).map(|doomed| doomed.to_string());
        assert_eq!(text.as_deref(), Some("VolumeSnapshot a/s with content snapcontent-u"));
        assert!(Doomed::by_snapshot(Pair::snapshot(), &json!({"metadata": {"name": "s"}})).is_none());
    }

    #[test]
    fn an_unbound_content_names_no_snapshot_to_delete() {
        let content = json!({"metadata": {"name": "c"}, "spec": {"volumeSnapshotRef": {"namespace": "a", "name": "s"}}});
        assert!(Doomed::by_content(Pair::snapshot(), &content).is_none());
    }
}
