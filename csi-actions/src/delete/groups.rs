//! Members of groups at the deletion of a backup. A driver deletes a group only as a whole, so the first member takes the
//! others along; Velero hands over one after the other and never says which is the last.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;
use velero_plugin::Backup;

use super::error::DeleteError;
use super::going::End;
use super::group::Group;
use super::live::{Role, role_by_labels};
use super::passage::Passage as _;
use super::target::Target;
use super::volumesnapshotcontent::{Aim, ContentDelete, Done, Order};
use crate::cluster::resource::CONTENTS;
use crate::cluster::{ApiError, Query, Reason};
use crate::discard::nudge;
use crate::group_api::{GroupApi, NOT_SERVED};
use crate::object::{GroupContent, name, uid};
use crate::ownership;
use crate::readiness::rounded;
use crate::ungroup;

/// What is known of the groups by now, by driver and handle. Held for a whole deletion: its members have to wait for it.
#[derive(Debug, Default)]
pub(super) struct Groups(Mutex<HashMap<(String, String), Known>>);

#[derive(Debug, Default)]
struct Known {
    /// The members that came so far.
    met: BTreeSet<String>,
    /// Those that are deleted with their group.
    deleted: BTreeSet<String>,
}

impl ContentDelete {
    /// Deletes the group of this `handle` that the snapshot was cut with, unless it is gone already.
    ///
    /// Where the archive does not tell all members, it is tried with those that came so far: a driver that needs all of them
    /// refuses until the last one came.
    pub(super) async fn delete_group(&self, order: Order<'_>, handle: &str) -> Result<(), DeleteError> {
        let (started, target) = (Instant::now(), order.target);
        let mut known = self.groups.0.lock().await;
        let known = known.entry((target.driver.clone(), handle.to_owned())).or_default();
        if known.deleted.contains(&target.handle) {
            tracing::info!("{target} is deleted: it went with group {handle:?}");
            return self.release_others(order).await;
        }
        known.met.insert(target.handle.clone());
        let elapsed = || rounded(started.elapsed());
        let in_trouble = |error| DeleteError::Api { target: target.to_string(), error, elapsed: elapsed() };
        let Some(api) = GroupApi::of(&self.cluster).await.map_err(in_trouble)? else {
            return Err(DeleteError::NoDriver { target: in_group(target, handle), missing: NOT_SERVED });
        };
        let group = Group::of(api, target, handle, order.archived, &known.met);
        if let Some(theirs) = self.foreign_member(order, &group).await.map_err(in_trouble)? {
            return Err(DeleteError::Shared { target: in_group(target, handle), theirs });
        }
        if let Some(theirs) = self.free(order, &group, api).await.map_err(in_trouble)? {
            return Err(DeleteError::Shared { target: in_group(target, handle), theirs });
        }
        let limit = if group.is_whole {
            self.drivers.limit(&group.driver, self.patience)
        } else {
            self.patience.later
        };
        match self.carry_out(order, Aim::Group(&group), limit).await? {
            Done::End(End::Gone, _) => {
                let members = group.members.len();
                tracing::info!("{group} is deleted with {members} members, after {}", elapsed());
                known.deleted.extend(group.members.iter().cloned());
                self.clear_group(order, &group, api).await?;
                self.release_others(order).await
            }
            Done::End(End::Pending | End::Refused(_), content) if !group.is_whole => {
                tracing::warn!(
                    "{group} is not deleted with the {} members that came so far; it goes with the last one, else delete it \
                     in the storage by its handle, and then content {}",
                    group.members.len(),
                    name(&content)
                );
                Ok(())
            }
            Done::End(End::Pending, content) => {
                let what = format!(
                    "{group}: the driver has not finished its deletion within {}; it goes on, if the feature \
                     CSIVolumeGroupSnapshot of its csi-snapshotter is on",
                    elapsed()
                );
                tracing::warn!("{what}, with content {}", name(&content));
                self.tell_pending(order.backup, group.resource(), &content, &what).await;
                Ok(())
            }
            failed => Err(failed.into_error(in_group(target, handle), group.resource(), elapsed())),
        }
    }

    /// A content of the group's members that is not of this backup, or of a restore of it.
    async fn foreign_member(&self, order: Order<'_>, group: &Group) -> Result<Option<String>, ApiError> {
        let contents = match self.contents().await {
            // Then there is no driver that could tell either, and the way finds that out.
            Err(error) if error.reason == Reason::NotServed => return Ok(None),
            listed => listed?,
        };
        let theirs = group.needed_by(&contents, order.archived, order.backup);
        Ok(theirs.map(|content| CONTENTS.object("", name(content))))
    }

    /// Takes the objects of the group that the backup left in the cluster out of it, as finalizing would have done. Gives
    /// back the one that belongs to someone else, if there is such.
    async fn free(&self, order: Order<'_>, group: &Group, api: GroupApi) -> Result<Option<String>, ApiError> {
        for content in self.group_contents(group, api).await? {
            if ownership::is_restored(&content) || is_temporary(&content, order.backup) {
                continue;
            }
            let owner = ungroup::group_of(&self.cluster, api, &content).await?;
            // The snapshot controller gives the content no label.
            let is_ours = [Some(&content), owner.as_ref()].into_iter().flatten().any(|object| {
                matches!(role_by_labels(object, order.archived, order.backup), Role::LeftOver | Role::Going)
            });
            if !is_ours {
                return Ok(Some(api.contents().object("", name(&content))));
            }
            ungroup::keep_in_storage(&self.cluster, api, &content).await?;
        }
        Ok(None)
    }

    /// After the group is gone: temporary contents with fewer members go at the next look of the sidecar, and those of
    /// restores stand for nothing.
    async fn clear_group(&self, order: Order<'_>, group: &Group, api: GroupApi) -> Result<(), DeleteError> {
        let cleared = async {
            for content in self.group_contents(group, api).await? {
                if ownership::is_restored(&content) && ownership::has_name(&content, order.backup) {
                    let content_uid = uid(&content).unwrap_or_default();
                    self.cluster.delete(api.contents(), "", name(&content), content_uid).await?;
                } else if is_temporary(&content, order.backup) {
                    nudge(&self.cluster, group.resource(), &content).await;
                }
            }
            Ok(())
        };
        cleared.await.map_err(|error| DeleteError::Left { target: group.to_string(), error })
    }

    /// The contents in the cluster that point at the group.
    async fn group_contents(&self, group: &Group, api: GroupApi) -> Result<Vec<Value>, ApiError> {
        let mut contents = self.cluster.list(api.contents(), &Query::default()).await?;
        contents.retain(|content| group.is_pointed_at_by(content));
        Ok(contents)
    }
}

/// Whether a deletion of this backup made the content: it is bound to no group.
fn is_temporary(content: &Value, backup: &Backup) -> bool {
    GroupContent(content).bound_uid().is_none() && ownership::has_name(content, backup)
}

fn in_group(target: &Target, group: &str) -> String {
    format!("{target} with group {group:?}")
}
