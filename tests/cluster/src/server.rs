//! HTTP on loopback in front of the API.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use fault_proxy::request::RequestInfo;
use fault_proxy::rules::Cut;
use futures_util::{Stream, StreamExt, stream};
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;

use crate::api::Api;
use crate::error::ApiError;
use crate::faults::{self, Step};
use crate::log::Request;
use crate::rest::path::Query;
use crate::rest::{self, Answer, Call};
use crate::reviews;

/// The chunks of a body; an error closes the connection.
type Chunks = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;
type Body = StreamBody<Pin<Box<dyn Stream<Item = io::Result<Frame<Bytes>>> + Send>>>;

/// Events that wait for a slow client.
const WATCH_BUFFER: usize = 64;
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// An answer on its way out.
struct Reply {
    code: u16,
    content_type: &'static str,
    retry_after: Option<u32>,
    chunks: Chunks,
}

/// Serves until the task is aborted; all connections end with it.
pub(crate) async fn serve(listener: TcpListener, api: Arc<Api>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // A client that is gone before it was accepted is no reason to stop.
                let Ok((stream, _)) = accepted else { continue };
                let api = api.clone();
                connections.spawn(async move {
                    let service = service_fn(|request| respond(api.clone(), request));
                    let connection = hyper::server::conn::http1::Builder::new();
                    // An error here is an end of the connection that was ordered, or the client going away.
                    let _ = connection.serve_connection(TokioIo::new(stream), service).await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Answers one request; an error closes the connection.
async fn respond(api: Arc<Api>, request: http::Request<Incoming>) -> io::Result<Response<Body>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let query = head.uri.query().unwrap_or_default();
    let client = header(&head.headers, &USER_AGENT);
    let info = RequestInfo::new(head.method.as_str(), head.uri.path(), query).named_by(&body);
    let verdict = faults::verdict(&api.faults, &info, client);
    let number = api.log.arrived(Request {
        at: Instant::now(),
        client: client.to_owned(),
        info: info.clone(),
        query: query.to_owned(),
        body: String::from_utf8_lossy(&body).into_owned(),
        rules: verdict.rules.clone(),
        code: None,
    });
    let call = Call {
        method: head.method.clone(),
        path: head.uri.path().to_owned(),
        query: Query::parse(query),
        content_type: header(&head.headers, &CONTENT_TYPE).to_owned(),
        body,
    };
    tokio::time::sleep(verdict.delay).await;
    let reply = match faults::step(&api.faults, &verdict, Cut::BeforeEffect, &info).await {
        Step::Pass => {
            let reply = answer(&api, &call, &head.headers);
            match faults::step(&api.faults, &verdict, Cut::AfterEffect, &info).await {
                Step::Pass => reply,
                Step::Truncate(bytes) => Reply { chunks: truncated(reply.chunks, bytes), ..reply },
                Step::Refuse(code, body, retry_after) => refused(code, body, retry_after),
                Step::Close => return Err(faults::closed()),
            }
        }
        Step::Refuse(code, body, retry_after) => refused(code, body, retry_after),
        // A rule that truncates before the effect is refused when it is added.
        Step::Close | Step::Truncate(_) => return Err(faults::closed()),
    };
    api.log.answered(number, reply.code);
    Ok(reply.into_response())
}

fn answer(api: &Arc<Api>, call: &Call, headers: &HeaderMap) -> Reply {
    let answer = if admitted(api, headers) {
        reviews::answer(&api.faults, call, header(headers, &USER_AGENT))
            .unwrap_or_else(|| rest::answer(&mut api.state(), call, &api.address))
    } else {
        Err(ApiError::Unauthorized)
    };
    match answer {
        Ok(Answer::Json(code, value)) => Reply::whole(code, JSON, value.to_string()),
        Ok(Answer::Text(text)) => Reply::whole(200, TEXT, text.to_owned()),
        Ok(Answer::Watch(watch)) => {
            let (events, sent) = mpsc::channel(WATCH_BUFFER);
            // Ends by itself: when the client goes, `sent` is dropped with the response.
            tokio::spawn(watch.run(api.clone(), events));
            let lines = ReceiverStream::new(sent).map(|event| Ok(Bytes::from(format!("{event}\n"))));
            Reply { code: 200, content_type: JSON, retry_after: None, chunks: Box::pin(lines) }
        }
        Err(error @ ApiError::PageNotFound) => Reply::whole(404, TEXT, format!("{error}\n")),
        Err(error) => Reply::whole(error.code(), JSON, error.status().to_string()),
    }
}

fn admitted(api: &Api, headers: &HeaderMap) -> bool {
    let shown = header(headers, &AUTHORIZATION).strip_prefix("Bearer ");
    api.token.as_deref().is_none_or(|token| shown == Some(token))
}

fn refused(code: u16, body: String, retry_after: Option<u32>) -> Reply {
    Reply { retry_after, ..Reply::whole(code, JSON, body) }
}

/// The first bytes of a body, then the end of the connection.
fn truncated(chunks: Chunks, bytes: u64) -> Chunks {
    let left = usize::try_from(bytes).unwrap_or(usize::MAX);
    Box::pin(stream::unfold(Some((chunks, left)), |state| async move {
        let (mut chunks, left) = state?;
        if left == 0 {
            return Some((Err(faults::closed()), None));
        }
        // A body that is shorter than the rule says ends as it would have.
        let chunk = chunks.next().await?;
        let chunk = chunk.map(|chunk| chunk.slice(..left.min(chunk.len())));
        let left = left - chunk.as_ref().map_or(left, Bytes::len);
        Some((chunk, Some((chunks, left))))
    }))
}

impl Reply {
    fn whole(code: u16, content_type: &'static str, text: String) -> Self {
        let chunks = Box::pin(stream::iter([Ok(Bytes::from(text))]));
        Self { code, content_type, retry_after: None, chunks }
    }

    fn into_response(self) -> Response<Body> {
        let mut response =
            Response::new(StreamBody::new(Box::pin(self.chunks.map(|chunk| chunk.map(Frame::data))) as _));
        *response.status_mut() = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
