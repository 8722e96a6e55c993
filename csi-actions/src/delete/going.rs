//! Deletes a content, of a snapshot or of a group, so that what it stands for goes from the storage, and makes sure that it
//! does.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::hidden;
use crate::cluster::resource::{CONTENTS, Resource};
use crate::cluster::{ApiError, Cluster, Reason, watch};
use crate::discard::nudge;
use crate::driver_error::is_absent;
use crate::object::{Content, DriverError, name, text, uid};

/// For how long nothing may happen to a content before it is touched. A sidecar that is busy with its creation hides the deletion
/// from itself with a write of its own, and would look again after a quarter of an hour.
const NUDGE: Duration = Duration::from_millis(1500);
/// The longest time between two touches, of which each is twice the one before: where one has not helped the driver takes its
/// time, and a touch while the sidecar writes has it ask the driver once more.
const NUDGE_MAX: Duration = Duration::from_secs(6);

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// The content is gone.
    Gone,
    /// The content is gone, but the sidecar has not asked the driver: it knew the snapshot as a member of this group by
    /// then, and members go with their group only.
    InGroup(String),
    /// It went before it was deleted here, before its driver saw it or without its handle, or another object has its name: what has
    /// become of it is not known.
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
pub(super) async fn delete(
    cluster: &Cluster,
    resource: Resource,
    content: &Value,
    end: Instant,
) -> Result<End, ApiError> {
    let mut watched = Watched::of(cluster, resource, content);
    // Read before the deletion, so that no change between the two is missed. If it went already, nobody knows whether the
    // driver was asked.
    if watched.look(end).await?.is_some() {
        return Ok(End::Replaced);
    }
    match cluster.delete(resource, "", name(content), uid(content).unwrap_or_default()).await {
        Err(error) if error.reason == Reason::Conflict => return Ok(End::Replaced),
        done => done?,
    }
    if Content(content).is_hidden() && !hidden::reveal(cluster, resource, content).await? {
        return Ok(End::Replaced);
    }
    watched.until_gone(end).await
}

/// Looks until `end` whether `content`, which is being deleted, goes.
///
/// # Errors
///
/// When nobody will ever tell.
pub(super) async fn until_gone(
    cluster: &Cluster,
    resource: Resource,
    content: &Value,
    end: Instant,
) -> Result<End, ApiError> {
    Watched::of(cluster, resource, content).until_gone(end).await
}

/// A content and what was seen of it.
struct Watched<'a> {
    resource: Resource,
    content: &'a Value,
    /// What the driver said before says nothing of the deletion.
    before: Option<DriverError>,
    refusal: Option<String>,
    group: Option<String>,
    /// Whether the handle is lost, by which the sidecar asks the driver.
    lost: bool,
    /// Its last version, and since when it has that.
    version: Option<String>,
    heard: Instant,
    /// A request that fails is not worth waiting for: the next one comes soon.
    quick: Cluster,
    states: BoxStream<'static, Result<Option<Value>, ApiError>>,
}

impl<'a> Watched<'a> {
    fn of(cluster: &Cluster, resource: Resource, content: &'a Value) -> Self {
        let quick = cluster.patient(Duration::ZERO);
        Self {
            resource,
            content,
            before: Content(content).error(),
            refusal: None,
            group: group_of(resource, content),
            lost: false,
            version: None,
            heard: Instant::now(),
            states: watch::states(&quick, resource, "", name(content)),
            quick,
        }
    }

    async fn until_gone(mut self, end: Instant) -> Result<End, ApiError> {
        let mut silence = NUDGE;
        loop {
            let next_touch = self.heard + silence;
            if let Some(ended) = self.look(end.min(next_touch)).await? {
                return Ok(ended);
            }
            let now = Instant::now();
            if now >= end {
                return Ok(self.refusal.map_or(End::Pending, End::Refused));
            }
            if now >= next_touch {
                (self.heard, silence) = (now, NUDGE_MAX.min(silence * 2));
                nudge(&self.quick, self.resource, self.content).await;
            }
        }
    }

    /// The next state, if there is one by `until`; the end, if it is that.
    async fn look(&mut self, until: Instant) -> Result<Option<End>, ApiError> {
        match timeout_at(until, self.states.next()).await {
            Ok(Some(Ok(Some(object)))) if uid(&object) == uid(self.content) => {
                self.refusal = said_since(self.before.as_ref(), &object);
                self.group = group_of(self.resource, &object).or(self.group.take());
                self.lost = has_lost_its_handle(&object);
                let version = text(&object, &["metadata", "resourceVersion"]).map(str::to_owned);
                if version != self.version {
                    (self.version, self.heard) = (version, Instant::now());
                }
                Ok(None)
            }
            Ok(Some(Ok(_))) if self.lost => Ok(Some(End::Replaced)),
            // Gone, and perhaps another object has its name by now.
            Ok(Some(Ok(_))) => Ok(Some(self.group.take().map_or(End::Gone, End::InGroup))),
            Ok(Some(Err(error))) if error.ends_a_wait() => Err(error),
            Ok(Some(Err(_)) | None) | Err(_) => Ok(None),
        }
    }
}

/// The group that the sidecar knows a snapshot to be in.
fn group_of(resource: Resource, content: &Value) -> Option<String> {
    let group = Content(content).group_handle().filter(|_| resource == CONTENTS);
    group.map(str::to_owned)
}

/// Whether a sidecar that was looking at the content when it was new has put an error in place of its whole status, with the
/// handle. It takes such a content for one of nothing. Once the driver was asked, readiness goes together with the handle; and
/// where the error is that the storage has no such snapshot, there is nothing to ask the driver for.
fn has_lost_its_handle(content: &Value) -> bool {
    let handles = ["snapshotHandle", "volumeGroupSnapshotHandle"];
    let absent = Content(content).error().is_some_and(|error| is_absent(&error.message));
    content.pointer("/status/readyToUse").is_some_and(Value::is_boolean)
        && handles.iter().all(|handle| text(content, &["status", handle]).is_none())
        && !absent
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
    fn a_handle_is_lost_where_an_error_took_the_place_of_the_status() {
        for (status, lost) in [
            (json!({"volumeGroupSnapshotHandle": "g"}), false),
            (json!({"snapshotHandle": "s", "readyToUse": false, "error": {"message": "in use"}}), false),
            (json!({"readyToUse": false, "error": {"message": "the object has been modified"}}), true),
            (
                json!({"readyToUse": false, "error": {"message": "rpc error: code = Unavailable desc = busy"}}),
                true,
            ),
            // Velero's own action has deleted it a moment before.
            (
                json!({"readyToUse": false, "error": {"message": "failed to list snapshot for content c: \"can not find snapshot for snapshotID s\""}}),
                false,
            ),
            (
                json!({"readyToUse": false, "error": {"message": "rpc error: code = NotFound desc = s"}}),
                false,
            ),
            (json!({}), false),
            (Value::Null, false),
        ] {
            assert_eq!(has_lost_its_handle(&json!({"status": status})), lost, "{status}");
        }
    }

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
