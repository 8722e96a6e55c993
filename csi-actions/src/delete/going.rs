//! Deletes a content so that its snapshot goes from the storage, and makes sure that it does.

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::cluster::resource::CONTENTS;
use crate::cluster::{ApiError, Cluster, Reason, watch};
use crate::discard::nudge;
use crate::object::{Content, name, uid};

/// How long the sidecar gets.
const LIMIT: Duration = Duration::from_secs(30);
/// How often a content that stays is touched. A sidecar that is busy with its creation hides the deletion from itself
/// with a write of its own, and would look again after a quarter of an hour.
const NUDGE: Duration = Duration::from_millis(700);

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// The content is gone, after the sidecar had all it needs to delete the snapshot.
    Gone,
    /// The driver refuses, in its words.
    Refused(String),
    /// The sidecar has not finished.
    Pending,
}

/// Deletes `content`, whose policy is Delete and whose status has the handle.
///
/// # Errors
///
/// When the API server refuses or can't be reached.
pub(super) async fn delete(cluster: &Cluster, content: &Value) -> Result<End, ApiError> {
    let (name, uid) = (name(content), uid(content).unwrap_or_default());
    match cluster.delete(CONTENTS, "", name, uid).await {
        // Another object has the name, so this one is gone.
        Err(error) if error.reason == Reason::Conflict => return Ok(End::Gone),
        done => done?,
    }
    // From here on a request that fails is not worth waiting for: the next one comes soon.
    let quick = cluster.patient(Duration::ZERO);
    let mut states = watch::states(&quick, CONTENTS, "", name);
    let end = Instant::now() + LIMIT;
    let mut refusal = None;
    let mut next_touch = Instant::now() + NUDGE;
    loop {
        match timeout_at(end.min(next_touch), states.next()).await {
            Ok(Some(Ok(None))) => return Ok(End::Gone),
            Ok(Some(Ok(Some(object)))) if crate::object::uid(&object) != Some(uid) => return Ok(End::Gone),
            Ok(Some(Ok(Some(object)))) => refusal = Content(&object).error().map(|error| error.message),
            Ok(Some(Err(error))) if error.ends_a_wait() => return Err(error),
            Ok(Some(Err(_)) | None) | Err(_) => {}
        }
        let now = Instant::now();
        if now >= end {
            return Ok(refusal.map_or(End::Pending, End::Refused));
        }
        if now >= next_touch {
            next_touch = now + NUDGE;
            nudge(&quick, content).await;
        }
    }
}
