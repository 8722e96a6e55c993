//! A stand-in for the API server that echoes requests, and clients of a proxy before it.

#![allow(dead_code, reason = "no test file uses all of it")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::channel::mpsc;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Nothing here takes long; a test that hangs fails instead.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Answers each request with what arrived; a watch sends what the test pushes.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
    serving: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<String>>,
    watch: Mutex<Option<mpsc::UnboundedSender<Result<Bytes, std::io::Error>>>>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let seen = Arc::new(Seen::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let address = listener.local_addr().expect("address");
        let routes = Router::new().fallback(echo).with_state(Arc::clone(&seen));
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await.expect("serve") });
        Self { address, seen, serving }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests that arrived, as `METHOD path?query`.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().expect("lock").clone()
    }

    /// Sends a part of the open watch.
    pub(crate) fn push(&self, part: &'static str) {
        let watch = self.seen.watch.lock().expect("lock");
        let watch = watch.as_ref().expect("open watch");
        watch.unbounded_send(Ok(Bytes::from_static(part.as_bytes()))).expect("watched");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn echo(State(seen): State<Arc<Seen>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    seen.requests.lock().expect("lock").push(format!("{} {}", parts.method, parts.uri));
    if parts.uri.query().is_some_and(|query| query.contains("watch=true")) {
        let (sender, receiver) = mpsc::unbounded();
        *seen.watch.lock().expect("lock") = Some(sender);
        return Body::from_stream(receiver).into_response();
    }
    let body = axum::body::to_bytes(body, usize::MAX).await.expect("body");
    let text = |headers: &HeaderMap, name: &str| {
        headers.get(name).map(|value| value.to_str().expect("text").to_owned())
    };
    let echo = json!({
        "method": parts.method.as_str(),
        "uri": parts.uri.to_string(),
        "body": String::from_utf8_lossy(&body),
        "authorization": text(&parts.headers, "authorization"),
        "custom": text(&parts.headers, "x-custom"),
        "host": text(&parts.headers, "host"),
    });
    (StatusCode::ACCEPTED, [("x-answer", "yes")], Json(echo)).into_response()
}

/// A client without a pool, so that a closed connection is not mistaken for a stale one and tried again.
pub(crate) fn client() -> reqwest::Client {
    let builder = reqwest::Client::builder().no_proxy().timeout(PATIENCE).pool_max_idle_per_host(0);
    builder.build().expect("client")
}

pub(crate) async fn get(url: &str) -> Result<(u16, Value), reqwest::Error> {
    let answer = client().get(url).send().await?;
    Ok((answer.status().as_u16(), answer.json().await?))
}
