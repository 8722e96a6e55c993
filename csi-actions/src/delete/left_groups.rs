//! What killed processes left of groups: those of a backup that are in no archive, and deletions that nobody finished.
//!
//! The members of such a group, and their contents, go with it. None goes that a content of someone else needs: a driver
//! deletes a group as a whole only.

use serde_json::{Value, json};
use tokio::time::Instant;
use velero_plugin::{Backup, label};

use super::group::Group;
use super::leftovers::{finish, is_unfinished, left_until, listed};
use crate::cluster::resource::CONTENTS;
use crate::cluster::{ApiError, Cluster, Query, Reason};
use crate::discard::Doomed;
use crate::group_api::GroupApi;
use crate::object::{name, uid};
use crate::pair::Pair;
use crate::{keys, labels, ownership};

/// Takes away the groups that `backup`, which is being deleted, left in the cluster, and what is in the storage with them; and
/// finishes what deletions of this or other backups began. Looks until `end` that they go.
///
/// # Errors
///
/// The first that went wrong; the others were tried all the same.
pub(super) async fn take_away(cluster: &Cluster, backup: &Backup, end: Instant) -> Result<(), ApiError> {
    let Some(left) = Left::look(cluster, backup).await? else { return Ok(()) };
    let mut first = Ok(());
    for doomed in left.doomed(backup) {
        let done = left.discard(&doomed, backup, end).await;
        first = first.and(done);
    }
    for content in &left.contents {
        let done = left.take_up(content, end).await;
        first = first.and(done);
    }
    first
}

/// What is in the cluster of groups that a backup had cut.
struct Left<'a> {
    cluster: &'a Cluster,
    api: GroupApi,
    groups: Vec<Value>,
    contents: Vec<Value>,
}

impl<'a> Left<'a> {
    /// The groups of `backup`, and the contents of groups of any; `None` where the cluster has no groups, or none that the
    /// server's account may see: then none was cut.
    async fn look(cluster: &'a Cluster, backup: &Backup) -> Result<Option<Self>, ApiError> {
        let Some(api) = GroupApi::of(cluster).await? else { return Ok(None) };
        let of_backup = format!("{}={}", keys::BACKUP_UID, label::valid_value(backup.uid()));
        let listed = async {
            let groups = listed(cluster, api.groups(), of_backup).await?;
            Ok::<_, ApiError>((groups, listed(cluster, api.contents(), keys::BACKUP_UID.to_owned()).await?))
        };
        match listed.await {
            Err(error) if error.reason == Reason::Forbidden => {
                tracing::debug!("{error}");
                Ok(None)
            }
            listed => listed.map(|(groups, contents)| Some(Self { cluster, api, groups, contents })),
        }
    }

    /// The groups of `backup`, and their contents where the group itself is gone.
    fn doomed(&self, backup: &Backup) -> Vec<Doomed> {
        let pair = Pair::group(self.api);
        let ours = |object: &&Value| ownership::is_of_backup(object, backup);
        let groups = self.groups.iter().filter(ours);
        let is_alone = |content: &&Value| {
            let bound = pair.bound_uid(content);
            bound.is_some() && self.groups.iter().all(|group| uid(group) != bound)
        };
        let contents = self.contents.iter().filter(ours).filter(is_alone);
        groups
            .filter_map(|group| Doomed::by_snapshot(pair, group))
            .chain(contents.filter_map(|content| Doomed::by_content(pair, content)))
            .collect()
    }

    async fn discard(&self, doomed: &Doomed, backup: &Backup, end: Instant) -> Result<(), ApiError> {
        // The snapshot controller gives the content no label, so it may not be among those that were listed.
        let content = self.cluster.find(self.api.contents(), "", doomed.content()).await?;
        if let Some(content) = content
            && self.is_needed(&content, backup, doomed).await?
        {
            return Ok(());
        }
        let gone = doomed.discard(self.cluster, left_until(end)).await?;
        tracing::info!(gone, "took away {doomed}, which the backup left in the cluster");
        Ok(())
    }

    /// Goes on with the deletion that `content` was made for, if it was not ordered.
    async fn take_up(&self, content: &Value, end: Instant) -> Result<(), ApiError> {
        let Some(group) = Group::of_content(self.api, content) else { return Ok(()) };
        if !is_unfinished(content, &group) {
            return Ok(());
        }
        if self.is_needed(content, &ownership::backup_of(content), &group).await? {
            return Ok(());
        }
        let gone = finish(self.cluster, &group, content, end).await?;
        tracing::info!(gone, content = name(content), "took up an earlier deletion of a group");
        Ok(())
    }

    /// Whether someone else needs a member of the group that `content` stands for, which `backup` left.
    async fn is_needed(
        &self,
        content: &Value,
        backup: &Backup,
        what: &(dyn std::fmt::Display + Sync),
    ) -> Result<bool, ApiError> {
        let Some(group) = Group::of_content(self.api, content) else { return Ok(false) };
        let contents = self.cluster.list(CONTENTS, &Query::default()).await?;
        let ours = json!({"metadata": {"labels": labels::of_backup(backup)}});
        let theirs = group.needed_by(&contents, &ours, backup);
        if let Some(theirs) = theirs {
            tracing::warn!("{what} stays: VolumeSnapshotContent {} is not of this backup", name(theirs));
        }
        Ok(theirs.is_some())
    }
}
