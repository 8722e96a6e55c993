//! Archived contents at the deletion of a backup: deletes the snapshot in the storage, and makes sure that it is gone.
//!
//! A content in the cluster is the only way to ask a driver for a deletion. The one that the backup left behind is used
//! if there is one; else a temporary one is made, with a name that follows from driver and handle, so that an attempt
//! that is repeated, or runs at the same time, meets the first.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;
use velero_plugin::backup::DeleteItemAction;
use velero_plugin::{Backup, Error, Item, ResourceSelector, Result};

use super::going::{self, End};
use super::live::{self, Role};
use super::target::Target;
use crate::cluster::resource::{CLASSES, CONTENTS, DRIVERS, NODES, SNAPSHOTS};
use crate::cluster::{ApiError, Cluster, Query, Reason};
use crate::discard::nudge;
use crate::environment::Environment;
use crate::object::{Content, is_deleting, label, name, text, uid};
use crate::readiness::rounded;
use crate::settings::AbsentDriver;
use crate::{keys, ownership};

/// For how long one request is tried again: Velero never asks again.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why a snapshot may still be in the storage. Velero logs the text and deletes the backup all the same, so it says
/// all that a person needs to delete it by hand.
#[derive(Debug, thiserror::Error)]
enum DeleteError {
    #[error(
        "{target} is still in the storage: {error} (tried for {elapsed}); delete it there by its handle, or delete the \
         backup again"
    )]
    Api { target: String, error: ApiError, elapsed: String },
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
}

/// The action on archived contents.
#[derive(Debug)]
pub struct ContentDelete {
    environment: Arc<Environment>,
    cluster: Cluster,
    /// The contents in the cluster when the deletion began; a process lives as long as one deletion.
    contents: OnceCell<Vec<Value>>,
    /// Whether a driver is absent.
    absent: Mutex<HashMap<String, bool>>,
}

impl ContentDelete {
    /// The action in `environment`.
    pub fn new(environment: Arc<Environment>) -> Self {
        let cluster = environment.cluster.patient(PATIENCE);
        Self { environment, cluster, contents: OnceCell::new(), absent: Mutex::default() }
    }

    async fn delete(&self, target: &Target, archived: &Value, backup: &Backup) -> Result<(), DeleteError> {
        let started = Instant::now();
        if let Some(group) = &target.group {
            return Err(DeleteError::Group { target: target.to_string(), group: group.clone() });
        }
        let failed = |error: ApiError| DeleteError::Api {
            target: target.to_string(),
            error,
            elapsed: rounded(started.elapsed()),
        };
        let list = || async { self.cluster.list(CONTENTS, &Query::default()).await };
        let contents = match self.contents.get_or_try_init(list).await {
            Ok(contents) => contents,
            Err(error) if error.reason == Reason::NotServed => {
                return self.unreachable(target, "there are no VolumeSnapshotContents");
            }
            Err(error) => return Err(failed(error)),
        };
        let roles = live::roles(contents, target, archived, backup);
        let content = match self.left_over(&roles, backup).await.map_err(failed)? {
            Some(content) => content,
            None if self.is_driver_absent(&target.driver).await.map_err(failed)? => {
                return self.unreachable(target, "the driver is not installed");
            }
            None => self.temporary(target, backup).await.map_err(failed)?,
        };
        // The sidecar asks the driver only where the status has the handle. Never "ready" beside it: then the sidecar
        // could take the object for finished, and miss that it is to be deleted.
        if Content(&content).reported_handle().is_none() {
            let handle = json!({"status": {"snapshotHandle": target.handle}});
            match self.cluster.patch_status(CONTENTS, "", name(&content), &handle).await {
                Err(error) if error.reason == Reason::NotFound => {}
                done => done.map(|_| ()).map_err(failed)?,
            }
        }
        match going::delete(&self.cluster, &content).await.map_err(failed)? {
            End::Gone => {
                tracing::info!(
                    bytes = target.size,
                    "{target} is deleted, after {}",
                    rounded(started.elapsed())
                );
            }
            End::Refused(message) => {
                let (content, elapsed) = (name(&content).to_owned(), rounded(started.elapsed()));
                return Err(DeleteError::Refused { target: target.to_string(), content, message, elapsed });
            }
            End::Pending => {
                tracing::warn!(
                    "{target}: the driver has not finished its deletion within {}; it goes on with content {}",
                    rounded(started.elapsed()),
                    name(&content)
                );
                return Ok(());
            }
        }
        for (_, content) in roles.iter().filter(|(role, _)| *role == Role::Going) {
            nudge(&self.environment.cluster, content).await;
        }
        self.release_restored(&roles).await.map_err(failed)
    }

    /// The content that the backup left in the cluster, ready to be deleted: with policy Delete, held by the sidecar's
    /// finalizer, and bound to nothing that lives. `None` where there is none.
    async fn left_over(&self, roles: &[(Role, &Value)], backup: &Backup) -> Result<Option<Value>, ApiError> {
        for (_, listed) in roles.iter().filter(|(role, _)| *role == Role::LeftOver) {
            // The list may be from a while ago, and the finalizers are written as a whole.
            let found = self.cluster.find(CONTENTS, "", name(listed)).await?;
            let Some(content) = found.filter(|found| uid(found) == uid(listed) && !is_deleting(found)) else {
                continue;
            };
            let snapshot = self.snapshot_of(&content).await?;
            if snapshot.as_ref().is_some_and(|snapshot| {
                !ownership::has_name(snapshot, backup) || ownership::is_restored(snapshot)
            }) {
                // Someone works with that snapshot; the temporary content does not touch it.
                continue;
            }
            let patch = live::ready_to_go(&content, snapshot.is_some());
            let patched = match self.cluster.patch(CONTENTS, "", name(&content), &patch).await {
                Err(error) if error.reason == Reason::NotFound => continue,
                patched => patched?,
            };
            if let Some((namespace, snapshot, bound_uid)) = live::binding(&content) {
                match self.cluster.delete(SNAPSHOTS, namespace, snapshot, bound_uid).await {
                    Err(error) if error.reason == Reason::Conflict => {}
                    done => done?,
                }
            }
            return Ok(Some(patched));
        }
        Ok(None)
    }

    /// The snapshot that `content` is bound to, if it lives.
    async fn snapshot_of(&self, content: &Value) -> Result<Option<Value>, ApiError> {
        let Some((namespace, snapshot, bound_uid)) = live::binding(content) else { return Ok(None) };
        let found = self.cluster.find(SNAPSHOTS, namespace, snapshot).await?;
        Ok(found.filter(|found| uid(found) == Some(bound_uid)))
    }

    /// The temporary content: made, or that of an earlier attempt.
    async fn temporary(&self, target: &Target, backup: &Backup) -> Result<Value, ApiError> {
        let mut attempts = 3;
        loop {
            attempts -= 1;
            match self.cluster.create(CONTENTS, "", &target.temporary_content(backup)).await {
                Err(error) if error.reason == Reason::AlreadyExists => {
                    // Where it has gone in between, this deletion still has to make sure by itself.
                    match self.cluster.find(CONTENTS, "", &target.temporary_name()).await? {
                        Some(existing) => return Ok(existing),
                        None if attempts == 0 => return Err(error),
                        None => {}
                    }
                }
                created => return created,
            }
        }
    }

    /// After the snapshot is gone: a content that a restore made of it points at nothing. It goes, or, where its snapshot
    /// lives, is told to go with it.
    async fn release_restored(&self, roles: &[(Role, &Value)]) -> Result<(), ApiError> {
        for (_, content) in roles.iter().filter(|(role, _)| *role == Role::Restored) {
            let released = match self.snapshot_of(content).await? {
                Some(_) => {
                    let patch = json!({"spec": {"deletionPolicy": "Delete"}});
                    self.cluster.patch(CONTENTS, "", name(content), &patch).await.map(|_| ())
                }
                None => {
                    let patch = json!({"metadata": {"annotations": {keys::BEING_DELETED: "yes"}}});
                    match self.cluster.patch(CONTENTS, "", name(content), &patch).await {
                        Ok(_) => {
                            let uid = uid(content).unwrap_or_default();
                            self.cluster.delete(CONTENTS, "", name(content), uid).await
                        }
                        Err(error) => Err(error),
                    }
                }
            };
            match released {
                Err(error) if matches!(error.reason, Reason::NotFound | Reason::Conflict) => {}
                done => done?,
            }
            let restore = label(content, keys::RESTORE_NAME);
            tracing::info!(
                restore,
                content = name(content),
                "released the content that a restore made of the snapshot"
            );
        }
        Ok(())
    }

    /// Whether nothing in the cluster speaks for the driver: then a content would stay Terminating for ever. Asked once
    /// per driver.
    async fn is_driver_absent(&self, driver: &str) -> Result<bool, ApiError> {
        let mut absent = self.absent.lock().await;
        if let Some(known) = absent.get(driver) {
            return Ok(*known);
        }
        let found = self.look_for_driver(driver).await?;
        absent.insert(driver.to_owned(), !found);
        Ok(!found)
    }

    async fn look_for_driver(&self, driver: &str) -> Result<bool, ApiError> {
        // Who may not look must assume that it is there.
        let allowed = |result: Result<bool, ApiError>| match result {
            Err(error) if error.reason == Reason::Forbidden => Ok(true),
            other => other,
        };
        if allowed(self.cluster.find(DRIVERS, "", driver).await.map(|found| found.is_some()))? {
            return Ok(true);
        }
        let all = Query { cached: true, ..Query::default() };
        let of_driver = |class: &Value| text(class, &["driver"]) == Some(driver);
        if allowed(self.cluster.list(CLASSES, &all).await.map(|list| list.iter().any(of_driver)))? {
            return Ok(true);
        }
        let on_node = |node: &Value| {
            let drivers = node.pointer("/spec/drivers").and_then(Value::as_array);
            drivers.is_some_and(|drivers| drivers.iter().any(|each| text(each, &["name"]) == Some(driver)))
        };
        allowed(self.cluster.list(NODES, &all).await.map(|list| list.iter().any(on_node)))
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
        self.delete(&target, item.object(), &backup).await.map_err(|error| {
            Error::from(error).context(format_args!("VolumeSnapshotContent {}", item.name()))
        })
    }
}
