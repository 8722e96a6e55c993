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
use super::going::{self, End};
use super::live::{self, Role};
use super::release::release;
use super::target::Target;
use super::way::{self, Way};
use crate::cluster::resource::CONTENTS;
use crate::cluster::{ApiError, Cluster, Query, Reason};
use crate::environment::Environment;
use crate::object::name;
use crate::ownership;
use crate::readiness::rounded;
use crate::settings::AbsentDriver;

/// For how long one request is tried again: Velero never asks again.
const PATIENCE: Duration = Duration::from_secs(60);
/// For how long a list of the contents is good. Velero's own action makes contents between two of ours, and restores
/// go on; what a list says is only where to look.
const FRESH: Duration = Duration::from_secs(10);
/// Between two looks at contents that others are changing.
const PAUSE: Duration = Duration::from_millis(100);

/// Why a snapshot may still be in the storage. Velero logs the text and deletes the backup all the same, so it says
/// all that a person needs to delete it by hand.
#[derive(Debug, thiserror::Error)]
enum DeleteError {
    #[error(
        "{target} is still in the storage: {error} (tried for {elapsed}); delete it there by its handle, or delete the \
         backup again"
    )]
    Api { target: String, error: ApiError, elapsed: String },
    #[error(
        "{target} is deleted, but a VolumeSnapshotContent that points at it is left: {error}; delete it by hand"
    )]
    Left { target: String, error: ApiError },
    #[error("{target} is still in the storage: driver after {elapsed} on content {content}: {message}")]
    Refused { target: String, content: String, message: String, elapsed: String },
    #[error(
        "{target} stays in the storage: {missing} in this cluster; delete it there by its handle, or delete the backup \
         where the driver runs"
    )]
    NoDriver { target: String, missing: &'static str },
    #[error(
        "{target} stays in the storage: it was cut with group {group:?}, and a driver deletes a group as a whole only; \
         delete the group there by its handle"
    )]
    Group { target: String, group: String },
    #[error(
        "{target} is still in the storage: VolumeSnapshotContent {content} has the name of the temporary content for its \
         deletion, but {what}; delete that content by hand, then delete the backup again"
    )]
    Taken { target: String, content: String, what: &'static str },
    #[error(
        "{target} may still be in the storage: others have been changing its contents for {elapsed}; delete the backup \
         again"
    )]
    Contended { target: String, elapsed: String },
}

/// The action on archived contents. A process, and so the action, lives as long as one deletion.
#[derive(Debug)]
pub struct ContentDelete {
    environment: Arc<Environment>,
    cluster: Cluster,
    patience: Patience,
    /// The contents in the cluster, and when they were listed.
    contents: Mutex<Option<(Instant, Arc<Vec<Value>>)>>,
    drivers: Drivers,
}

/// What is to be deleted, and by what it is recognized.
#[derive(Clone, Copy)]
struct Order<'a> {
    target: &'a Target,
    archived: &'a Value,
    backup: &'a Backup,
}

impl<'a> Order<'a> {
    /// Those of `contents` that point at the snapshot.
    fn roles(self, contents: &'a [Value]) -> Vec<(Role, &'a Value)> {
        live::roles(contents, self.target, self.archived, self.backup)
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
enum Done {
    /// By the way of this content; where the driver has not finished, it says so.
    End(End, String),
    NoDriver(&'static str),
    /// There was no way that stayed as it was.
    Contended,
}

impl ContentDelete {
    /// The action in `environment`.
    pub fn new(environment: Arc<Environment>) -> Self {
        let cluster = environment.cluster.patient(PATIENCE);
        Self {
            environment,
            cluster,
            patience: Patience::default(),
            contents: Mutex::default(),
            drivers: Drivers::default(),
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
            return Err(DeleteError::Group { target: target.to_string(), group: group.clone() });
        }
        let (text, elapsed) = (target.to_string(), || rounded(started.elapsed()));
        let done = match self.carry_out(order, started).await {
            Ok(done) => done,
            Err(Trouble::Api(error)) => {
                return Err(DeleteError::Api { target: text, error, elapsed: elapsed() });
            }
            Err(Trouble::Taken(what)) => {
                return Err(DeleteError::Taken { target: text, content: target.temporary_name(), what });
            }
        };
        if let Done::End(end, _) = &done {
            self.drivers.note(&target.driver, *end == End::Gone);
        }
        match done {
            Done::End(End::Gone, _) => {
                tracing::info!(bytes = target.size, "{target} is deleted, after {}", elapsed());
                let released = self.release_others(order).await;
                released.map_err(|error| DeleteError::Left { target: text, error })
            }
            Done::End(End::Refused(message), content) => {
                Err(DeleteError::Refused { target: text, content, message, elapsed: elapsed() })
            }
            Done::End(End::Pending, content) => {
                tracing::warn!(
                    "{target}: the driver has not finished its deletion within {}; it goes on with content {content}",
                    elapsed()
                );
                Ok(())
            }
            Done::NoDriver(missing) => self.unreachable(target, missing),
            Done::End(End::Replaced, _) | Done::Contended => {
                Err(DeleteError::Contended { target: text, elapsed: elapsed() })
            }
        }
    }

    /// Deletes the snapshot by one content after the other, until one has surely led to the driver.
    async fn carry_out(&self, order: Order<'_>, started: Instant) -> Result<Done, Trouble> {
        let target = order.target;
        let end = started + self.drivers.limit(&target.driver, self.patience);
        loop {
            let contents = match self.contents().await {
                Err(error) if error.reason == Reason::NotServed => {
                    return Ok(Done::NoDriver("there are no VolumeSnapshotContents"));
                }
                listed => listed?,
            };
            match self.way(order, &contents).await? {
                None => return Ok(Done::NoDriver("the driver is not installed")),
                Some(Way::Open(content)) => match going::delete(&self.cluster, &content, end).await? {
                    End::Replaced => {}
                    ended => return Ok(Done::End(ended, name(&content).to_owned())),
                },
                Some(Way::Going(content)) => match going::until_gone(&self.cluster, &content, end).await? {
                    End::Gone | End::Replaced => {}
                    ended => return Ok(Done::End(ended, name(&content).to_owned())),
                },
                Some(Way::Moved) => {}
                Some(Way::Taken(what)) => return Err(Trouble::Taken(what)),
            }
            if Instant::now() >= end {
                return Ok(Done::Contended);
            }
            sleep(PAUSE).await;
        }
    }

    /// The content to go by: the one that the backup left, else a temporary one; `None` where no driver would see it.
    async fn way(&self, order: Order<'_>, contents: &[Value]) -> Result<Option<Way>, ApiError> {
        let Order { target, archived, backup } = order;
        let left = way::left_over(&self.cluster, &order.roles(contents), target, archived, backup).await?;
        if left.is_some() {
            return Ok(left);
        }
        if self.drivers.is_absent(&self.cluster, &target.driver).await? {
            return Ok(None);
        }
        way::temporary(&self.cluster, target, backup).await.map(Some)
    }

    /// After the snapshot is gone: what else points at it points at nothing.
    async fn release_others(&self, order: Order<'_>) -> Result<(), ApiError> {
        let Order { target, archived, backup } = order;
        let contents = self.contents().await?;
        for (role, listed) in order.roles(&contents) {
            if matches!(role, Role::Restored | Role::LeftOver | Role::Going) {
                release(&self.cluster, listed, target, archived, backup).await?;
            }
        }
        Ok(())
    }

    /// The contents in the cluster, as they were a moment ago.
    async fn contents(&self) -> Result<Arc<Vec<Value>>, ApiError> {
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

    /// Nobody here can delete the snapshot. As an error, or only told: a server that keeps a backup whose deletion failed
    /// would keep it for ever.
    fn unreachable(&self, target: &Target, missing: &'static str) -> Result<(), DeleteError> {
        let error = DeleteError::NoDriver { target: target.to_string(), missing };
        match self.environment.settings.absent_driver {
            AbsentDriver::Error => Err(error),
            AbsentDriver::Warn => {
                tracing::warn!("{error}");
                Ok(())
            }
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
        self.delete(order).await.map_err(|error| {
            Error::from(error).context(format_args!("VolumeSnapshotContent {}", item.name()))
        })
    }
}
