//! Deletes a content so that its snapshot goes from the storage, and makes sure that it does.

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::cluster::resource::CONTENTS;
use crate::cluster::{ApiError, Cluster, Reason, watch};
use crate::discard::nudge;
use crate::object::{Content, DriverError, name, uid};

/// How often a content that stays is touched. A sidecar that is busy with its creation hides the deletion from itself
/// with a write of its own, and would look again after a quarter of an hour.
const NUDGE: Duration = Duration::from_millis(700);

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// The content is gone.
    Gone,
    /// Another object has its name, and was not touched: what has become of the content is not known.
    Replaced,
    /// The driver refuses, in its words.
    Refused(String),
    /// The sidecar has not finished.
    Pending,
}

/// Deletes `content`, whose policy is Delete and whose status has the handle, and looks until `end` whether it goes.
///
/// # Errors
///
/// When the API server refuses or can't be reached.
pub(super) async fn delete(cluster: &Cluster, content: &Value, end: Instant) -> Result<End, ApiError> {
    match cluster.delete(CONTENTS, "", name(content), uid(content).unwrap_or_default()).await {
        Err(error) if error.reason == Reason::Conflict => return Ok(End::Replaced),
        done => done?,
    }
    until_gone(cluster, content, end).await
}

/// Looks until `end` whether `content`, which is being deleted, goes.
///
/// # Errors
///
/// When nobody will ever tell.
pub(super) async fn until_gone(cluster: &Cluster, content: &Value, end: Instant) -> Result<End, ApiError> {
    let (name, uid) = (name(content), uid(content).unwrap_or_default());
    // What the driver said before says nothing of the deletion.
    let before = Content(content).error();
    // From here on a request that fails is not worth waiting for: the next one comes soon.
    let quick = cluster.patient(Duration::ZERO);
    let mut states = watch::states(&quick, CONTENTS, "", name);
    let mut refusal = None;
    let mut next_touch = Instant::now() + NUDGE;
    loop {
        match timeout_at(end.min(next_touch), states.next()).await {
            Ok(Some(Ok(None))) => return Ok(End::Gone),
            Ok(Some(Ok(Some(object)))) if crate::object::uid(&object) != Some(uid) => return Ok(End::Gone),
            Ok(Some(Ok(Some(object)))) => refusal = said_since(before.as_ref(), &object),
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

/// The error on a content, unless it is the one from `before`, in words and time.
fn said_since(before: Option<&DriverError>, content: &Value) -> Option<String> {
    Content(content).error().filter(|error| Some(error) != before).map(|error| error.message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_error_from_before_the_deletion_is_no_refusal_of_it() {
        let content =
            |message: &str, time: &str| json!({"status": {"error": {"message": message, "time": time}}});
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z");
        let before = Content(&content("not found", early)).error();
        let table = [
            (content("not found", early), None),
            (content("not found", late), Some("not found")),
            (content("in use", early), Some("in use")),
            (json!({}), None),
        ];
        for (object, said) in table {
            assert_eq!(said_since(before.as_ref(), &object).as_deref(), said, "{object}");
        }
        assert_eq!(said_since(None, &content("in use", early)).as_deref(), Some("in use"));
    }
}
