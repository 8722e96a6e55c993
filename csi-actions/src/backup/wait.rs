//! Waits until the storage has cut a snapshot, or a group: from then on the data may change again, so hooks may thaw it.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::select;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::cluster::{ApiError, Cluster, watch};
use crate::driver_error::{Class, classify};
use crate::object::{Content, Snapshot, name, namespace, uid};
use crate::pair::Pair;
use crate::readiness::rounded;

/// How long an error that will stay must stand before it counts.
const GRACE: Duration = Duration::from_secs(10);
/// How often the clock is looked at while nothing changes.
const TICK: Duration = Duration::from_secs(1);

/// Why there is no snapshot in the storage.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum WaitError {
    /// The driver says no, and will go on saying it.
    #[error("driver {driver:?} can't take the snapshot: {message}")]
    Driver {
        /// The driver.
        driver: String,
        /// Its words.
        message: String,
    },
    /// The time is up.
    #[error(
        "the storage has not cut the snapshot within {waited} (csiSnapshotTimeout of the backup): {state}"
    )]
    TimedOut {
        /// How long was waited.
        waited: String,
        /// What could be seen last.
        state: String,
    },
    /// Something deleted the snapshot.
    #[error(
        "something else deleted the snapshot while the storage was cutting it: a tool that prunes, or a user?"
    )]
    Vanished,
    /// The API server will never tell.
    #[error(transparent)]
    Api(#[from] ApiError),
}

/// Whose word is needed that a snapshot and its content belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// The content's, which is the first to be had.
    Content,
    /// The snapshot's too: Velero's own actions take one that does not name its content for failed, and delete it.
    Both,
}

/// A snapshot, or a group of them, that exists in the storage.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    /// The snapshot or group.
    pub snapshot: Value,
    /// The content, with its handle.
    pub content: Value,
}

/// Waits until the content of `snapshot` has a handle, by watching both; for `patience` at the longest.
pub(super) async fn until_cut(
    cluster: &Cluster,
    pair: Pair,
    snapshot: &Value,
    word: Word,
    patience: Duration,
) -> Result<Cut, WaitError> {
    let mut view = View::of(pair, snapshot, word);
    let started = Instant::now();
    let verdict = look(cluster, &mut view, patience, View::verdict).await?;
    verdict.unwrap_or_else(|| {
        let waited = rounded(started.elapsed());
        Err(WaitError::TimedOut { waited, state: view.state() })
    })
}

/// Waits until the snapshot of `cut` can be restored from or has an error; for `patience` at the longest. What was seen last.
pub(super) async fn until_ready(cluster: &Cluster, cut: Cut, patience: Duration) -> Cut {
    let mut view = View::of(Pair::snapshot(), &cut.snapshot, Word::Both);
    let looked = look(cluster, &mut view, patience, |view, _| view.is_settled().then_some(())).await;
    if let Err(error) = looked {
        tracing::debug!("not waiting for the snapshot to become ready: {error}");
    }
    view.cut().unwrap_or(cut)
}

/// Watches the snapshot of `view` and its content until there is an `end`; `None` when the `patience` is over.
async fn look<T>(
    cluster: &Cluster,
    view: &mut View,
    patience: Duration,
    end: impl Fn(&View, Instant) -> Option<T>,
) -> Result<Option<T>, ApiError> {
    let snapshot = view.snapshot.clone();
    let pair = view.pair;
    let content = pair.content_name(&snapshot);
    let (in_namespace, named) = (namespace(&snapshot), name(&snapshot));
    let snapshots = watch::states_after(cluster, pair.snapshots, in_namespace, named, Some(&snapshot));
    let contents = watch::states_after(cluster, pair.contents, "", &content, None);
    let mut changes =
        select(snapshots.map(|state| (Kind::Snapshot, state)), contents.map(|state| (Kind::Content, state)));
    let deadline = Instant::now() + patience;
    loop {
        let change = timeout_at(deadline.min(Instant::now() + TICK), changes.next()).await;
        match change {
            Ok(Some((kind, Ok(object)))) => view.see(kind, object, Instant::now()),
            Ok(Some((_, Err(error)))) if error.ends_a_wait() => return Err(error),
            // Trouble that may pass, or nothing new.
            Ok(Some((_, Err(_))) | None) | Err(_) => {}
        }
        if let Some(result) = end(view, Instant::now()) {
            return Ok(Some(result));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Snapshot,
    Content,
}

/// What was seen so far.
struct View {
    pair: Pair,
    word: Word,
    snapshot: Value,
    vanished: bool,
    content: Option<Value>,
    /// The last error, and since when there has been one that will stay.
    error: Option<String>,
    permanent_since: Option<Instant>,
}

impl View {
    fn of(pair: Pair, snapshot: &Value, word: Word) -> Self {
        Self {
            pair,
            word,
            snapshot: snapshot.clone(),
            vanished: false,
            content: None,
            error: None,
            permanent_since: None,
        }
    }

    fn see(&mut self, kind: Kind, object: Option<Value>, now: Instant) {
        match (kind, object) {
            (Kind::Snapshot, Some(object)) => {
                // Another object of the name is not ours.
                self.vanished = uid(&object) != uid(&self.snapshot);
                if !self.vanished {
                    self.snapshot = object;
                }
            }
            (Kind::Snapshot, None) => self.vanished = true,
            (Kind::Content, object) => self.content = object,
        }
        let error = self.content.as_ref().and_then(|content| Content(content).error());
        self.error = error.or_else(|| Snapshot(&self.snapshot).error()).map(|error| error.message);
        let permanent = self.error.as_deref().is_some_and(|error| classify(error) == Class::Permanent);
        self.permanent_since = permanent.then(|| self.permanent_since.unwrap_or(now));
    }

    /// The end of the wait, if it has come.
    fn verdict(&self, now: Instant) -> Option<Result<Cut, WaitError>> {
        if self.vanished {
            return Some(Err(WaitError::Vanished));
        }
        if let Some(cut) = self.cut() {
            return Some(Ok(cut));
        }
        let since = self.permanent_since?;
        let message = self.error.clone()?;
        (now.duration_since(since) >= GRACE)
            .then(|| Err(WaitError::Driver { driver: self.driver(), message }))
    }

    /// The snapshot, if it exists in the storage.
    fn cut(&self) -> Option<Cut> {
        let is_cut = |content: &&Value| {
            self.pair.is_cut(&self.snapshot, content)
                && (self.word == Word::Content || self.pair.names(&self.snapshot, content))
        };
        let content = self.content.as_ref().filter(is_cut)?;
        Some(Cut { snapshot: self.snapshot.clone(), content: content.clone() })
    }

    /// Whether waiting longer brings nothing.
    fn is_settled(&self) -> bool {
        let is_ready = self.content.as_ref().is_some_and(|content| Content(content).is_ready());
        self.vanished || self.error.is_some() || (is_ready && Snapshot(&self.snapshot).is_ready())
    }

    /// What a user needs to know when the time is up.
    fn state(&self) -> String {
        let (driver, kind, hint) = (self.driver(), self.pair.kind(), self.pair.hint());
        match (&self.error, &self.content) {
            (Some(error), _) => format!("driver {driver:?} says: {error}"),
            (None, Some(content)) if self.pair.is_in_storage(content) => {
                format!(
                    "the snapshot controller has not bound the {kind} to content {}: is it running{hint}?",
                    name(content)
                )
            }
            (None, Some(content)) => format!(
                "driver {driver:?} has reported no handle on content {}: is its csi-snapshotter sidecar running{hint}?",
                name(content)
            ),
            (None, None) if !Snapshot(&self.snapshot).is_touched() => {
                format!("nothing has touched the {kind}: is the snapshot controller running{hint}?")
            }
            (None, None) => "the snapshot controller has made no content for it: see its log".to_owned(),
        }
    }

    fn driver(&self) -> String {
        self.content.as_ref().map(|content| Content(content).driver()).unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "a value written at the call reads best")]

    use super::*;
    use serde_json::json;

    fn snapshot(status: Value) -> Value {
        json!({"metadata": {"name": "s", "namespace": "a", "uid": "u"}, "status": status})
    }

    fn content(status: Value) -> Value {
        let spec = json!({"driver": "d.csi", "volumeSnapshotRef": {"uid": "u"}, "volumeGroupSnapshotRef": {"uid": "u"}});
        json!({"metadata": {"name": "snapcontent-u"}, "spec": spec, "status": status})
    }

    fn view() -> View {
        View::of(Pair::snapshot(), &snapshot(json!(null)), Word::Content)
    }

    #[test]
    fn the_wait_ends_with_a_handle_on_the_content_that_was_made_for_the_snapshot() {
        let (mut view, now) = (view(), Instant::now());
        let mut foreign = content(json!({"snapshotHandle": "h"}));
        foreign["spec"]["volumeSnapshotRef"]["uid"] = "another".into();
        view.see(Kind::Content, Some(foreign.clone()), now);
        assert!(view.verdict(now).is_none());
        foreign["spec"]["volumeSnapshotRef"]["uid"] = json!(null);
        view.see(Kind::Content, Some(foreign), now);
        assert!(view.verdict(now).is_none());
        view.see(Kind::Content, Some(content(json!({}))), now);
        assert!(view.verdict(now).is_none());
        view.see(Kind::Content, Some(content(json!({"snapshotHandle": "h", "readyToUse": false}))), now);
        assert!(matches!(view.verdict(now), Some(Ok(_))));
    }

    #[test]
    fn alongside_the_wait_needs_the_snapshots_word_too() {
        let now = Instant::now();
        let mut view = View::of(Pair::snapshot(), &snapshot(json!(null)), Word::Both);
        view.see(Kind::Content, Some(content(json!({"snapshotHandle": "h", "readyToUse": false}))), now);
        assert!(view.verdict(now).is_none());
        view.see(
            Kind::Snapshot,
            Some(snapshot(json!({"boundVolumeSnapshotContentName": "snapcontent-u"}))),
            now,
        );
        assert!(matches!(view.verdict(now), Some(Ok(_))));
        view.see(Kind::Content, Some(content(json!({}))), now);
        assert!(view.verdict(now).is_none());
    }

    #[test]
    fn alongside_the_snapshot_settles_when_both_are_ready_or_the_driver_has_an_error() {
        let (mut view, now) = (view(), Instant::now());
        view.see(Kind::Content, Some(content(json!({"snapshotHandle": "h", "readyToUse": true}))), now);
        assert!(!view.is_settled(), "Velero reads the size of the snapshot, which follows its content");
        let bound = json!({"boundVolumeSnapshotContentName": "snapcontent-u"});
        view.see(Kind::Snapshot, Some(snapshot(bound.clone())), now);
        assert!(!view.is_settled());
        let mut ready = bound;
        ready["readyToUse"] = true.into();
        view.see(Kind::Snapshot, Some(snapshot(ready)), now);
        assert!(view.is_settled() && view.cut().is_some());
        view.see(Kind::Content, Some(content(json!({"error": {"message": "busy"}}))), now);
        assert!(view.is_settled());
    }

    #[test]
    fn a_group_is_cut_once_its_members_have_been_made_too() {
        let api = crate::group_api::GroupApi::among(&["v1".to_owned()]).unwrap();
        let mut view = View::of(Pair::group(api), &snapshot(json!(null)), Word::Content);
        let now = Instant::now();
        view.see(Kind::Content, Some(content(json!({"volumeGroupSnapshotHandle": "g"}))), now);
        let mut status = json!({"boundVolumeGroupSnapshotContentName": "snapcontent-u"});
        view.see(Kind::Snapshot, Some(snapshot(status.clone())), now);
        assert!(view.verdict(now).is_none());
        assert!(view.state().contains("VolumeGroupSnapshot"), "{}", view.state());
        status["creationTime"] = "2026-01-01T00:00:00Z".into();
        view.see(Kind::Snapshot, Some(snapshot(status)), now);
        assert!(matches!(view.verdict(now), Some(Ok(_))));
    }

    #[test]
    fn i18_a_permanent_driver_error_ends_the_wait_after_ten_seconds() {
        let (mut view, now) = (view(), Instant::now());
        let error = json!({"error": {"message": "rpc error: code = FailedPrecondition desc = maximum (3)"}});
        view.see(Kind::Content, Some(content(error.clone())), now);
        assert!(view.verdict(now).is_none());
        view.see(Kind::Content, Some(content(error)), now + Duration::from_secs(9));
        assert!(view.verdict(now + Duration::from_secs(9)).is_none());
        let end = view.verdict(now + Duration::from_secs(10));
        assert!(matches!(end, Some(Err(WaitError::Driver { driver, .. })) if driver == "d.csi"));
    }

    #[test]
    fn an_error_that_passes_starts_the_grace_of_the_next_one_anew() {
        let (mut view, now) = (view(), Instant::now());
        let permanent = |view: &mut View, at| {
            let error = json!({"error": {"message": "rpc error: code = NotFound desc = no volume"}});
            view.see(Kind::Content, Some(content(error)), at);
        };
        permanent(&mut view, now);
        view.see(
            Kind::Content,
            Some(content(json!({"error": {"message": "rpc error: code = Unavailable"}}))),
            now,
        );
        permanent(&mut view, now + Duration::from_secs(9));
        assert!(view.verdict(now + Duration::from_secs(12)).is_none());
    }

    #[test]
    fn i19_a_snapshot_that_something_deleted_or_replaced_ends_the_wait() {
        let (mut gone, now) = (view(), Instant::now());
        gone.see(Kind::Snapshot, None, now);
        assert!(matches!(gone.verdict(now), Some(Err(WaitError::Vanished))));
        let mut replaced = view();
        replaced.see(Kind::Snapshot, Some(json!({"metadata": {"uid": "other"}})), now);
        assert!(matches!(replaced.verdict(now), Some(Err(WaitError::Vanished))));
    }

    #[test]
    fn i21_a_time_out_says_who_has_not_done_their_part() {
        let now = Instant::now();
        let mut view = view();
        assert!(view.state().contains("is the snapshot controller running?"), "{}", view.state());
        view.see(Kind::Content, Some(content(json!(null))), now);
        assert!(view.state().contains("csi-snapshotter"), "{}", view.state());
        view.see(Kind::Snapshot, Some(snapshot(json!({"error": {"time": "2026-01-01T00:00:00Z"}}))), now);
        assert!(view.state().contains("unspecified driver error"), "{}", view.state());
    }
}
