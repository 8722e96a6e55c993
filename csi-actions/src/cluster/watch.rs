//! The states of one object, as they come: by a watch, and by asking again where watching is not possible.

use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{AsyncBufReadExt as _, StreamExt as _, TryStreamExt as _};
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::Value;

use super::error::{ApiError, Reason};
use super::resource::Resource;
use super::{Call, Cluster, REQUEST_LIMIT, escaped, within};

/// How long one watch lasts, in seconds. Then the object is read anew, so that a connection that died in silence costs
/// no more than this.
const WATCH_SECONDS: u32 = 30;
/// The first and the longest wait before the object is read again after trouble.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// The states of an object from now on; `None` while it does not exist. Errors come as items; the stream goes on after
/// them and never ends.
pub fn states(
    cluster: &Cluster,
    resource: Resource,
    namespace: &str,
    name: &str,
) -> BoxStream<'static, Result<Option<Value>, ApiError>> {
    from(cluster, resource, namespace, name, Stage::Read)
}

/// The states of an object after `known`, without a request to read it first. Of an object that is not known the first
/// state comes when it exists.
pub fn states_after(
    cluster: &Cluster,
    resource: Resource,
    namespace: &str,
    name: &str,
    known: Option<&Value>,
) -> BoxStream<'static, Result<Option<Value>, ApiError>> {
    from(cluster, resource, namespace, name, Stage::Open(known.and_then(version)))
}

fn from(
    cluster: &Cluster,
    resource: Resource,
    namespace: &str,
    name: &str,
    first: Stage,
) -> BoxStream<'static, Result<Option<Value>, ApiError>> {
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    let watched =
        Watched { cluster: cluster.clone(), resource, namespace, name, stage: first, wait: WAITS.0 };
    stream::unfold(watched, |mut watched| async {
        let state = watched.next().await;
        Some((state, watched))
    })
    .boxed()
}

type Events = BoxStream<'static, std::io::Result<String>>;

enum Stage {
    /// The object is to be read.
    Read,
    /// The object was read; a watch is to be opened from this version on, or from the present on.
    Open(Option<String>),
    /// A watch is open.
    Follow(Events),
    /// There was trouble, or watching is not allowed: wait, then read.
    Wait,
}

struct Watched {
    cluster: Cluster,
    resource: Resource,
    namespace: String,
    name: String,
    stage: Stage,
    wait: Duration,
}

impl Watched {
    async fn next(&mut self) -> Result<Option<Value>, ApiError> {
        loop {
            match &mut self.stage {
                Stage::Read => {
                    let read = self.cluster.find(self.resource, &self.namespace, &self.name).await;
                    self.stage = match &read {
                        Ok(object) => Stage::Open(object.as_ref().and_then(version)),
                        Err(_) => Stage::Wait,
                    };
                    return read;
                }
                Stage::Open(version) => {
                    let version = version.take();
                    self.stage = match self.open(version).await {
                        Ok(events) => Stage::Follow(events),
                        Err(error) => {
                            tracing::debug!("{error}; asking again in {} s instead", self.wait.as_secs());
                            Stage::Wait
                        }
                    };
                }
                Stage::Follow(events) => {
                    match events.next().await.map(|line| line.map(|line| read_event(&line))) {
                        Some(Ok(Event::State(object))) => {
                            self.wait = WAITS.0;
                            return Ok(object);
                        }
                        Some(Ok(Event::Nothing)) => {}
                        // The watch's time is up.
                        None => self.stage = Stage::Read,
                        // Its version is too old, or the connection was cut.
                        Some(Ok(Event::Broken) | Err(_)) => self.stage = Stage::Wait,
                    }
                }
                Stage::Wait => {
                    tokio::time::sleep(self.wait).await;
                    self.wait = (self.wait * 2).min(WAITS.1);
                    self.stage = Stage::Read;
                }
            }
        }
    }

    async fn open(&mut self, version: Option<String>) -> Result<Events, ApiError> {
        // Without a version the watch begins with the object as it is, if it exists.
        let version =
            version.map_or_else(String::new, |version| format!("&resourceVersion={}", escaped(&version)));
        let selector = escaped(&format!("metadata.name={}", self.name)).to_string();
        let path = self.resource.path(&self.namespace);
        let mut call = Call::on(Method::GET, "watch", self.resource, &self.namespace, &self.name);
        call.path =
            format!("{path}?watch=true&timeoutSeconds={WATCH_SECONDS}&fieldSelector={selector}{version}");
        let answer = within(REQUEST_LIMIT, &call.what, self.cluster.send(&call)).await?;
        let body = answer.into_body().into_data_stream().map_err(std::io::Error::other);
        let lines = body.into_async_read().lines();
        // A server that forgets the time limit must not hold us.
        let end = tokio::time::sleep(Duration::from_secs(u64::from(WATCH_SECONDS) + 5));
        Ok(lines.take_until(end).boxed())
    }
}

#[derive(Debug, PartialEq)]
enum Event {
    State(Option<Value>),
    Nothing,
    Broken,
}

/// One line of a watch.
fn read_event(line: &str) -> Event {
    let Ok(mut event) = serde_json::from_str::<Value>(line) else { return Event::Broken };
    let object = event.get_mut("object").map(Value::take).unwrap_or_default();
    match event["type"].as_str() {
        Some("ADDED" | "MODIFIED") => Event::State(Some(object)),
        Some("DELETED") => Event::State(None),
        Some("BOOKMARK") => Event::Nothing,
        _ => Event::Broken,
    }
}

fn version(object: &Value) -> Option<String> {
    crate::object::text(object, &["metadata", "resourceVersion"]).map(str::to_owned)
}

impl ApiError {
    /// Whether waiting for another state is pointless, since nobody will ever answer.
    pub fn ends_a_wait(&self) -> bool {
        matches!(self.reason, Reason::Forbidden | Reason::NotServed | Reason::NoCluster)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_of_a_watch_are_states_or_reasons_to_read_again() {
        let table = [
            (r#"{"type":"ADDED","object":{"a":1}}"#, Event::State(Some(json!({"a": 1})))),
            (r#"{"type":"MODIFIED","object":{"a":2}}"#, Event::State(Some(json!({"a": 2})))),
            (r#"{"type":"DELETED","object":{"a":2}}"#, Event::State(None)),
            (r#"{"type":"BOOKMARK","object":{}}"#, Event::Nothing),
            (r#"{"type":"ERROR","object":{"code":410}}"#, Event::Broken),
            ("{\"type\":\"ADD", Event::Broken),
        ];
        for (line, event) in table {
            assert_eq!(read_event(line), event, "{line}");
        }
    }
}
