//! Archived contents at the deletion of a backup: deletes the snapshot in the storage, and makes sure that it is gone.
//!
//! A content in the cluster is the only way to ask a driver for a deletion. The one that the backup left behind is used
//! if there is one; else a temporary one is made, with a name that follows from driver and handle, so that an attempt
//! that is repeated, or runs at the same time, meets the first.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};
use velero_plugin::backup::DeleteItemAction;
use velero_plugin::{Backup, Error, Item, ResourceSelector, Result};

use super::drivers::{Drivers, Patience};
use super::error::DeleteError;
use super::going::{self, End};
use super::group::Group;
use super::groups::Groups;
use super::hidden::Hiding;
use super::live::{self, Role};
use super::passage::Passage as _;
use super::release::release;
use super::target::Target;
use super::way::{self, Way};
use crate::cluster::events::Events;
use crate::cluster::resource::{CONTENTS, Resource};
use crate::cluster::{ApiError, Cluster, PATIENCE, Query, Reason};
use crate::environment::Environment;
use crate::events::{self, About};
use crate::object::{annotation, name};
use crate::readiness::rounded;
use crate::settings::AbsentDriver;
use crate::{keys, ownership};

/// For how long a list of the contents is good. Velero's own action makes contents between two of ours, and restores
/// go on; what a list says is only where to look.
const FRESH: Duration = Duration::from_secs(10);
/// Between two looks at contents that others are changing.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a content that goes by another hand is looked at before it is judged anew: it may have got stuck since.
const LOOK: Duration = Duration::from_secs(5);

/// The action on archived contents. A process, and so the action, lives as long as one deletion.
#[derive(Debug)]
pub struct ContentDelete {
    environment: Arc<Environment>,
    pub(super) cluster: Cluster,
    events: Events,
    pub(super) patience: Patience,
    /// The contents in the cluster, and when they were listed.
    contents: Mutex<Option<(Instant, Arc<Vec<Value>>)>>,
    pub(super) drivers: Drivers,
    pub(super) groups: Groups,
    hiding: Hiding,
}

/// What is to be deleted, and by what it is recognized.
#[derive(Clone, Copy)]
pub(super) struct Order<'a> {
    pub target: &'a Target,
    pub archived: &'a Value,
    pub backup: &'a Backup,
}

impl<'a> Order<'a> {
    /// Those of `contents` that point at the snapshot.
    fn roles(self, contents: &'a [Value]) -> Vec<(Role, &'a Value)> {
        live::roles(contents, self.target, self.archived, self.backup)
    }
}

/// What a deletion is to reach.
#[derive(Clone, Copy)]
pub(super) enum Aim<'a> {
    /// The snapshot alone.
    Snapshot(&'a Target),
    /// The group that it was cut with.
    Group(&'a Group),
}

impl Aim<'_> {
    fn resource(self) -> Resource {
        match self {
            Self::Snapshot(target) => target.resource(),
            Self::Group(group) => group.resource(),
        }
    }

    /// Whether the driver has no reason to refuse.
    fn is_whole(self) -> bool {
        match self {
            Self::Snapshot(_) => true,
            Self::Group(group) => group.is_whole,
        }
    }

    fn temporary_name(self) -> String {
        match self {
            Self::Snapshot(target) => target.temporary_name(),
            Self::Group(group) => group.temporary_name(),
        }
    }
}

/// Why one step failed.
enum Trouble {
    Api(ApiError),
    Taken(&'static str),
}

impl From<ApiError> for Trouble {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

/// How an order ended.
pub(super) enum Done {
    /// By the way of this content; where the driver has not finished, it says so.
    End(End, Value),
    NoDriver(&'static str),
    /// There was no way that stayed as it was.
    Contended,
}

impl Done {
    /// Why nothing was deleted, by contents of this `resource`.
    pub(super) fn into_error(self, target: String, resource: Resource, elapsed: String) -> DeleteError {
        match self {
            Self::End(End::Refused(message), content) => {
                let about = Box::new(About::content(resource, &content));
                DeleteError::Refused { target, content: name(&content).to_owned(), message, elapsed, about }
            }
            Self::NoDriver(missing) => DeleteError::NoDriver { target, missing },
            Self::End(..) | Self::Contended => DeleteError::Contended { target, elapsed },
        }
    }
}

impl ContentDelete {
    /// The action in `environment`.
    pub fn new(environment: Arc<Environment>) -> Self {
        let cluster = environment.cluster.patient(PATIENCE);
        Self {
            events: Events::of(&environment),
            environment,
            cluster,
            patience: Patience::default(),
            contents: Mutex::default(),
            drivers: Drivers::default(),
            groups: Groups::default(),
            hiding: Hiding::default(),
        }
    }

    /// The action with another patience for its drivers.
    #[must_use]
    pub fn with_patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    async fn delete(&self, order: Order<'_>) -> Result<(), DeleteError> {
        let (started, target) = (Instant::now(), order.target);
        if let Some(group) = &target.group {
            return self.delete_group(order, group).await;
        }
        let limit = self.drivers.limit(&target.driver, self.patience);
        let (text, elapsed) = (target.to_string(), || rounded(started.elapsed()));
        match self.carry_out(order, Aim::Snapshot(target), limit).await? {
            Done::End(End::Gone, _) => {
                tracing::info!(bytes = target.size, "{target} is deleted, after {}", elapsed());
                self.release_others(order).await
            }
            Done::End(End::InGroup(group), _) => self.delete_group(order, &group).await,
            Done::End(End::Pending, content) => {
                let waited = elapsed();
                let what =
                    format!("{target}: the driver has not finished its deletion within {waited}; it goes on");
                tracing::warn!("{what} with content {}", name(&content));
                self.tell_pending(order.backup, CONTENTS, &content, &what).await;
                Ok(())
            }
            failed => Err(failed.into_error(text, CONTENTS, elapsed())),
        }
    }

    /// Tells on the `content` that stays that its deletion is not finished.
    pub(super) async fn tell_pending(
        &self,
        backup: &Backup,
        resource: Resource,
        content: &Value,
        what: &str,
    ) {
        let message = format!("backup {}: {what}", backup.name());
        self.events.write(About::content(resource, content), events::Reason::DeletionPending, message).await;
    }

    /// Deletes what is aimed at by one content after the other, until one has surely led to the driver.
    pub(super) async fn carry_out(
        &self,
        order: Order<'_>,
        aim: Aim<'_>,
        limit: Duration,
    ) -> Result<Done, DeleteError> {
        let started = Instant::now();
        let (target, elapsed) = (order.target, || rounded(started.elapsed()));
        let done = match self.go(order, aim, limit).await {
            Ok(done) => done,
            Err(Trouble::Api(error)) => {
                return Err(DeleteError::Api { target: target.to_string(), error, elapsed: elapsed() });
            }
            Err(Trouble::Taken(what)) => {
                let content = aim.temporary_name();
                return Err(DeleteError::Taken { target: target.to_string(), content, what });
            }
        };
        Ok(done)
    }

    async fn go(&self, order: Order<'_>, aim: Aim<'_>, limit: Duration) -> Result<Done, Trouble> {
        let resource = aim.resource();
        // The driver's time begins when it can be asked, whatever trouble the API server had before.
        let mut end = None;
        loop {
            let contents = match self.contents().await {
                Err(error) if error.reason == Reason::NotServed => {
                    return Ok(Done::NoDriver("there are no VolumeSnapshotContents"));
                }
                listed => listed?,
            };
            let way = self.way(order, aim, &contents).await?;
            let end = *end.get_or_insert_with(|| Instant::now() + limit);
            let ended = match way {
                None => return Ok(Done::NoDriver("the driver is not installed")),
                Some(Way::Open(content)) => {
                    Some((going::delete(&self.cluster, resource, &content, end).await?, content))
                }
                Some(Way::Going(content)) => {
                    let looked = end.min(Instant::now() + LOOK);
                    let ended = going::until_gone(&self.cluster, resource, &content, looked).await?;
                    match ended {
                        End::Pending | End::Refused(_) if looked < end => None,
                        // By another hand, so it proves nothing.
                        End::Gone => None,
                        ended => Some((ended, content)),
                    }
                }
                Some(Way::Moved) => None,
                Some(Way::Taken(what)) => return Err(Trouble::Taken(what)),
            };
            if let Some((ended, content)) = ended.filter(|(ended, _)| *ended != End::Replaced) {
                if aim.is_whole() {
                    self.drivers.note(&order.target.driver, ended == End::Gone);
                }
                return Ok(Done::End(ended, content));
            }
            if Instant::now() >= end {
                return Ok(Done::Contended);
            }
            sleep(PAUSE).await;
        }
    }

    /// The content to go by: the one that the backup left, else a temporary one; `None` where no driver would see it.
    async fn way(&self, order: Order<'_>, aim: Aim<'_>, contents: &[Value]) -> Result<Option<Way>, ApiError> {
        let Order { target, archived, backup } = order;
        if let Aim::Snapshot(target) = aim {
            let left =
                way::left_over(&self.cluster, &order.roles(contents), target, archived, backup).await?;
            if left.is_some() {
                return Ok(left);
            }
        }
        if self.drivers.is_absent(&self.cluster, &target.driver).await? {
            return Ok(None);
        }
        let way = match aim {
            // What the archive of others does not tell, the sidecar may: that the snapshot is a member of a group. And of
            // groups no content's driver can be changed since external-snapshotter 8.6.
            Aim::Snapshot(target) => {
                let hiding = annotation(archived, keys::CLAIM).map(|_| &self.hiding);
                way::temporary(&self.cluster, target, backup, hiding).await
            }
            Aim::Group(group) => way::temporary(&self.cluster, group, backup, None).await,
        };
        way.map(Some)
    }

    /// After the snapshot is gone: what else points at it points at nothing.
    pub(super) async fn release_others(&self, order: Order<'_>) -> Result<(), DeleteError> {
        let Order { target, archived, backup } = order;
        let released = async {
            let contents = self.contents().await?;
            for (role, listed) in order.roles(&contents) {
                if matches!(role, Role::Restored | Role::LeftOver | Role::Going) {
                    release(&self.cluster, listed, target, archived, backup).await?;
                }
            }
            Ok(())
        };
        released.await.map_err(|error| DeleteError::Left { target: target.to_string(), error })
    }

    /// The contents in the cluster, as they were a moment ago.
    pub(super) async fn contents(&self) -> Result<Arc<Vec<Value>>, ApiError> {
        let mut listed = self.contents.lock().await;
        if let Some((at, contents)) = &*listed
            && at.elapsed() < FRESH
        {
            return Ok(contents.clone());
        }
        let contents = Arc::new(self.cluster.list(CONTENTS, &Query::default()).await?);
        *listed = Some((Instant::now(), contents.clone()));
        Ok(contents)
    }

    /// Where nobody here can delete the snapshot it is an error, or only told: a server that keeps a backup whose deletion
    /// failed would keep it for ever.
    fn allowed(&self, error: DeleteError) -> Result<(), DeleteError> {
        match (&error, self.environment.settings.absent_driver) {
            (DeleteError::NoDriver { .. }, AbsentDriver::Warn) => {
                tracing::warn!("{error}");
                Ok(())
            }
            _ => Err(error),
        }
    }
}

#[async_trait]
impl DeleteItemAction for ContentDelete {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::resources(["volumesnapshotcontents.snapshot.storage.k8s.io"])
    }

    async fn execute(&self, item: Item, backup: Backup) -> Result<()> {
        if !ownership::is_archived_by(item.object(), &backup) {
            tracing::info!(content = item.name(), "left alone: the backup did not take this snapshot");
            return Ok(());
        }
        let Some(target) = Target::of(item.object()) else {
            tracing::warn!(
                "VolumeSnapshotContent {} has no snapshot handle in the archive, so there is nothing to delete by",
                item.name()
            );
            return Ok(());
        };
        let order = Order { target: &target, archived: item.object(), backup: &backup };
        let Err(error) = self.delete(order).await else { return Ok(()) };
        let about = error.about(&backup);
        let what = format!("backup {}: {error}", backup.name());
        self.events.write(about, events::Reason::DeletionFailed, what).await;
        self.allowed(error).map_err(|error| {
            Error::from(error).context(format_args!("VolumeSnapshotContent {}", item.name()))
        })
    }
}
