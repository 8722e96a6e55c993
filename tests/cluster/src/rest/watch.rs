//! Watches: the changes after a revision, as one JSON line each, until time runs out or the client goes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::api::Api;
use crate::error::ApiError;
use crate::kind::Kind;
use crate::rest::list::shown;
use crate::rest::path::{Query, Target};
use crate::rules::selector::Selector;
use crate::state::State;
use crate::store::Change;

/// Between two bookmarks of a quiet watch.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// For watches that name no time-out.
const LONGEST: u64 = 1800;
const INITIAL_END: &str = "k8s.io/initial-events-end";

/// A watch that was asked for and is ready to run.
#[derive(Debug)]
pub(crate) struct Watch {
    kind: Arc<Kind>,
    target: Target,
    selector: Selector,
    bookmarks: bool,
    timeout: Duration,
    /// Events to send before those of the history.
    initial: VecDeque<Value>,
    /// The revision up to which everything was sent.
    sent: u64,
    revision: watch::Receiver<u64>,
}

impl Watch {
    /// Reads the request and takes the first look at the objects.
    pub(crate) fn open(
        state: &State,
        kind: Arc<Kind>,
        target: Target,
        query: &Query,
    ) -> Result<Self, ApiError> {
        let selector = Selector::parse(query.text("labelSelector"), query.text("fieldSelector"), &kind)?;
        let seconds = query.number("timeoutSeconds")?.unwrap_or(LONGEST);
        let from = query.number("resourceVersion")?.unwrap_or_default();
        let mut watch = Self {
            kind,
            target,
            selector,
            bookmarks: query.flag("allowWatchBookmarks"),
            timeout: Duration::from_secs(seconds),
            initial: VecDeque::new(),
            sent: from,
            revision: state.store.subscribe(),
        };
        let streaming_list = query.flag("sendInitialEvents");
        if from == 0 || streaming_list {
            watch.sent = state.store.revision();
            for (_, object) in state.store.list(&watch.kind.resource, &watch.target.namespace) {
                if watch.selector.matches(object) {
                    watch.initial.push_back(watch.event("ADDED", object));
                }
            }
            if streaming_list && watch.bookmarks {
                let mut end = watch.bookmark();
                end["object"]["metadata"]["annotations"] = json!({INITIAL_END: "true"});
                watch.initial.push_back(end);
            }
        }
        Ok(watch)
    }

    /// Sends events until the time-out, the end of the connection, or the end of the history.
    pub(crate) async fn run(mut self, api: Arc<Api>, events: mpsc::Sender<Value>) {
        let end = Instant::now() + self.timeout;
        let mut bookmark = tokio::time::interval_at(Instant::now() + BOOKMARK_EVERY, BOOKMARK_EVERY);
        let mut ready = std::mem::take(&mut self.initial);
        loop {
            let (mut new, over) = self.next(&api);
            ready.append(&mut new);
            for event in ready.drain(..) {
                if events.send(event).await.is_err() {
                    return;
                }
            }
            if over {
                return;
            }
            tokio::select! {
                changed = self.revision.changed() => if changed.is_err() { return },
                () = events.closed() => return,
                _ = bookmark.tick(), if self.bookmarks => ready.push_back(self.bookmark()),
                () = tokio::time::sleep_until(end) => {
                    if self.bookmarks {
                        // The client is gone or not; the watch ends either way.
                        let _ = events.send(self.bookmark()).await;
                    }
                    return;
                }
            }
        }
    }

    /// The events since the last look, and whether the watch is over.
    fn next(&mut self, api: &Api) -> (VecDeque<Value>, bool) {
        let state = api.state();
        let mut events = VecDeque::new();
        match state.store.changes_after(self.sent) {
            Ok(changes) => events.extend(changes.filter_map(|change| self.told(change))),
            Err(too_old) => {
                let expired = ApiError::Expired(format!(
                    "too old resource version: {} ({})",
                    self.sent, too_old.oldest
                ));
                events.push_back(json!({"type": "ERROR", "object": expired.status()}));
                return (events, true);
            }
        }
        self.sent = self.sent.max(state.store.revision());
        (events, false)
    }

    /// What a change means to this watch: objects may come into and go out of the selection.
    fn told(&self, change: &Change) -> Option<Value> {
        let key = &change.key;
        if key.resource != self.kind.resource
            || !(self.target.namespace.is_empty() || key.namespace == self.target.namespace)
        {
            return None;
        }
        let selected =
            |object: &Option<Arc<Value>>| object.as_ref().is_some_and(|object| self.selector.matches(object));
        match (selected(&change.before), selected(&change.after)) {
            (false, false) => None,
            (false, true) => Some(self.event("ADDED", &change.last)),
            (true, true) => Some(self.event("MODIFIED", &change.last)),
            (true, false) => {
                // The client gets the state it knew, under the revision of the change.
                let mut known = Value::clone(change.before.as_ref()?);
                known["metadata"]["resourceVersion"] = change.revision.to_string().into();
                Some(self.event("DELETED", &known))
            }
        }
    }

    fn event(&self, event: &str, object: &Value) -> Value {
        json!({"type": event, "object": shown(&self.kind, object, &self.target.version)})
    }

    fn bookmark(&self) -> Value {
        json!({"type": "BOOKMARK", "object": {
            "kind": self.kind.kind, "apiVersion": self.kind.api_version_in(&self.target.version),
            "metadata": {"resourceVersion": self.sent.to_string(), "creationTimestamp": null},
        }})
    }
}
