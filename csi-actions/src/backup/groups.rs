//! Claims that are cut together: the first one has its group cut, the others find their snapshots in it.
//!
//! The group stays in the cluster until the backup is finalized. Were it taken away at once, the snapshot controller would
//! take a member that is not ready yet for a snapshot of its own, and have the volume cut a second time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};
use tokio::time::{Instant, sleep};
use velero_plugin::{Backup, Context as _, Error, Result};

use super::group::Group;
use super::wait::{Cut, Word, until_cut};
use super::{create, discard_after};
use crate::class_choice::{Choice, GROUP_KEYS};
use crate::cluster::resource::{CLAIMS, CONTENTS, SNAPSHOTS, VOLUMES};
use crate::cluster::{Cluster, Query};
use crate::group_api::{GroupApi, NOT_SERVED};
use crate::object::{Content, GroupContent, Snapshot, is_deleting, name, namespace, uid};
use crate::pair::Pair;
use crate::readiness::DEFAULT_TIMEOUT;
use crate::{keys, labels, ownership};

/// Between two looks for the snapshot of a member: it comes with the group, or a moment later.
const LOOK: Duration = Duration::from_millis(250);

/// The groups of one backup.
#[derive(Debug)]
pub(super) struct Groups {
    /// For single requests, which are tried again.
    cluster: Cluster,
    watching: Cluster,
    /// By [`Group::id`]. One that failed has failed for all its members: else each would wait for it again.
    cut: Mutex<HashMap<String, Arc<Attempt>>>,
}

/// A group, or why it could not be cut.
type Attempt = OnceCell<Result<CutGroup, String>>;

/// A group that the storage has cut.
#[derive(Debug, Clone)]
struct CutGroup {
    snapshot: Value,
    /// The handles of all members, as a JSON list.
    members: String,
}

/// What a member's snapshot is taken of.
#[derive(Clone, Copy)]
pub(super) struct Member<'a> {
    /// The claim.
    pub claim: &'a Value,
    /// The driver of its volume.
    pub driver: &'a str,
    /// The capacity of the volume in bytes.
    pub capacity: Option<u64>,
    /// The backup.
    pub backup: &'a Backup,
}

impl Groups {
    /// Of the cluster; `watching` is for waits, which have a patience of their own.
    pub(super) fn new(cluster: Cluster, watching: Cluster) -> Self {
        Self { cluster, watching, cut: Mutex::default() }
    }

    /// The snapshot of a claim of `group`, which is cut if it is not yet.
    pub(super) async fn take(&self, group: &Group, member: Member<'_>) -> Result<Cut> {
        let Some(api) = GroupApi::of(&self.cluster).await? else {
            return Err(Error::new(format!("its group {group} can't be cut: {NOT_SERVED} in this cluster")));
        };
        let cell = Arc::clone(self.cut.lock().await.entry(group.id.clone()).or_default());
        let cut = cell
            .get_or_init(|| async { self.cut(api, group, member).await.map_err(|error| error.to_string()) })
            .await;
        let cut = cut.as_ref().map_err(|error| Error::new(error.clone()))?;
        self.adopt(group, cut, member)
            .await
            .context(format_args!("VolumeGroupSnapshot {}", name(&cut.snapshot)))
    }

    /// Has the group cut, or finds the one that an earlier attempt of this backup had cut. What was created for a group that
    /// fails is removed again.
    async fn cut(&self, api: GroupApi, group: &Group, member: Member<'_>) -> Result<CutGroup> {
        let snapshot = match self.existing(api, group, member.backup).await? {
            Some(existing) => existing,
            None => self.create(api, group, member).await?,
        };
        let what = format!("VolumeGroupSnapshot {}", name(&snapshot));
        let pair = Pair::group(api);
        let waited = async {
            let patience = member.backup.csi_snapshot_timeout().unwrap_or(DEFAULT_TIMEOUT);
            let cut = until_cut(&self.watching, pair, &snapshot, Word::Content, patience).await?;
            // By these labels finalizing and deletion know it: the snapshot controller gives it none.
            let patch = json!({"metadata": {"labels": labels::of_backup(member.backup)}});
            self.cluster.patch(api.contents(), "", name(&cut.content), &patch).await?;
            Ok(cut)
        };
        match waited.await {
            Ok(cut) => {
                let members = json!(GroupContent(&cut.content).members()).to_string();
                tracing::info!(members, "{what} is cut by {}", member.driver);
                Ok(CutGroup { snapshot: cut.snapshot, members })
            }
            Err(error) => {
                let error: Error = error;
                Err(discard_after(error.context(what), &self.cluster, pair, &snapshot).await)
            }
        }
    }

    /// The group that this backup has created before.
    async fn existing(&self, api: GroupApi, group: &Group, backup: &Backup) -> Result<Option<Value>> {
        let query = Query { labels: group.of_groups(), cached: false };
        let found = self.cluster.list_in(api.groups(), group.namespace(), &query).await?;
        Ok(found.into_iter().find(|found| is_same(found, group, backup)))
    }

    async fn create(&self, api: GroupApi, group: &Group, member: Member<'_>) -> Result<Value> {
        let Member { claim, driver, backup, .. } = member;
        let query = Query { labels: group.of_claims(), cached: false };
        for other in self.cluster.list_in(CLAIMS, group.namespace(), &query).await? {
            let volume = self.cluster.get(VOLUMES, "", group.volume_of(&other)?).await?;
            group.fits(&other, &volume, driver)?;
        }
        let classes = self.cluster.list(api.classes(), &Query::default()).await?;
        let choice =
            Choice { keys: &GROUP_KEYS, classes: &classes, driver, provisioner: None, claim, backup };
        let class = choice.make()?;
        let object = |attempt| group.snapshot(api, backup, class, attempt);
        Ok(create::create_or_adopt(&self.cluster, api.groups(), object, |found| {
            is_same(found, group, backup)
        })
        .await?)
    }

    /// Finds the snapshot of the claim in its group, and gives it the labels of the backup.
    async fn adopt(&self, group: &Group, cut: &CutGroup, member: Member<'_>) -> Result<Cut> {
        let Member { claim, capacity, backup, .. } = member;
        let deadline = Instant::now() + backup.csi_snapshot_timeout().unwrap_or(DEFAULT_TIMEOUT);
        loop {
            let snapshots = self.cluster.list_in(SNAPSHOTS, namespace(claim), &Query::default()).await?;
            let is_member = |snapshot: &&Value| Snapshot(snapshot).group_uid() == uid(&cut.snapshot);
            let members: Vec<&Value> = snapshots.iter().filter(is_member).collect();
            let found = members.iter().find(|snapshot| Snapshot(snapshot).claim() == Some(name(claim)));
            // All members of a group are made before it counts as cut.
            if found.is_none() && !members.is_empty() {
                return Err(group.without_it().into());
            }
            if let Some(found) = found
                && let Some(content) = Snapshot(found).bound_content()
                && let Some(content) = self.cluster.find(CONTENTS, "", content).await?
                && Content(&content).reported_handle().is_some()
            {
                let mut metadata = json!({
                    "labels": labels::of_snapshot(backup, claim),
                    "annotations": {keys::GROUP_MEMBERS: cut.members},
                });
                if let Some(capacity) = capacity {
                    metadata["annotations"][keys::CAPACITY] = capacity.to_string().into();
                }
                let patch = json!({"metadata": metadata});
                let snapshot = self.cluster.patch(SNAPSHOTS, namespace(claim), name(found), &patch).await?;
                return Ok(Cut { snapshot, content });
            }
            if Instant::now() >= deadline {
                return Err(Error::new(
                    "the snapshot controller has not bound it within the csiSnapshotTimeout",
                ));
            }
            sleep(LOOK).await;
        }
    }
}

/// Whether `existing` is the group in this backup, and is to stay.
fn is_same(existing: &Value, group: &Group, backup: &Backup) -> bool {
    ownership::is_of_backup(existing, backup)
        && crate::object::label(existing, keys::GROUP) == Some(&group.id)
        && !is_deleting(existing)
}
