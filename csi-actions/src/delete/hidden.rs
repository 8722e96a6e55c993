//! Temporary contents that their sidecar does not see before their deletion is ordered.
//!
//! A sidecar that finds a new content asks the driver for its snapshot, and writes the answer down: two of the five requests that
//! it makes for a deletion, where it allows itself five a second, and a write that crosses ours. So the content is made for a driver
//! that nobody has, and gets its own one when the rest is done: the first that the sidecar sees is the deletion.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::resource::Resource;
use crate::cluster::{ApiError, Cluster};
use crate::keys;
use crate::object::{Content, has_finalizer, is_deleting, name, uid};

/// Whether this cluster lets the driver of a content be changed. It is so with all CRDs of snapshots up to
/// external-snapshotter 8.6; those of groups forbid it since then, and an admission rule may.
#[derive(Debug, Default)]
pub(super) struct Hiding(Mutex<Option<bool>>);

impl Hiding {
    /// Whether contents can be hidden, as far as it is known.
    pub(super) fn is_allowed(&self) -> bool {
        self.known() == Some(true)
    }

    /// Notes that contents can't be hidden here.
    pub(super) fn note_refusal(&self) {
        self.set(false);
    }

    fn known(&self) -> Option<bool> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, allowed: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(allowed);
    }

    /// Asks the API server, unless it has told, of `content`, which stays as it is. A content that was hidden to find
    /// out would stay behind where it can't be revealed.
    pub(super) async fn ask(&self, cluster: &Cluster, resource: Resource, content: &Value) {
        if self.known().is_some() {
            return;
        }
        let quick = cluster.patient(Duration::ZERO);
        let patch = with_driver(content, keys::NO_DRIVER);
        let allowed = match quick.judge_patch(resource, "", name(content), &patch).await {
            Ok(()) => true,
            // It says nothing of other contents.
            Err(error) if error.may_pass() || error.has_moved() => return,
            Err(error) => {
                tracing::debug!("{error}");
                false
            }
        };
        self.set(allowed);
    }
}

/// `content` as one of a driver that nobody has.
pub(super) fn hidden(mut content: Value) -> Value {
    let driver = content["spec"]["driver"].take();
    content["metadata"]["annotations"][keys::HIDDEN_FROM] = driver;
    content["spec"]["driver"] = keys::NO_DRIVER.into();
    content
}

/// Whether `content` goes without more being done here. A hidden one that the sidecar's `finalizer` still holds does not: nobody sees
/// that it is being deleted before it is revealed.
pub(super) fn goes_by_itself(content: &Value, finalizer: &str) -> bool {
    let waits = Content(content).is_hidden() && has_finalizer(content, finalizer);
    is_deleting(content) && !waits
}

/// Gives the hidden `content`, which is being deleted, its driver; whether it was still there.
///
/// # Errors
///
/// When the API server refuses or can't be reached.
pub(super) async fn reveal(cluster: &Cluster, resource: Resource, content: &Value) -> Result<bool, ApiError> {
    let patch = with_driver(content, Content(content).driver());
    match cluster.patch(resource, "", name(content), &patch).await {
        Err(error) if error.has_moved() => Ok(false),
        done => done.map(|_| true),
    }
}

fn with_driver(content: &Value, driver: &str) -> Value {
    json!({"metadata": {"uid": uid(content)}, "spec": {"driver": driver}})
}
