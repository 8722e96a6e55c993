//! HTTP on loopback in front of the API.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;

use crate::api::Api;
use crate::error::ApiError;
use crate::rest::path::Query;
use crate::rest::watch::Watch;
use crate::rest::{self, Answer, Call};

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Events that wait for a slow client.
const WATCH_BUFFER: usize = 64;

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
                    // An error here is the client's end of the connection going away.
                    let _ = connection.serve_connection(TokioIo::new(stream), service).await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn respond(api: Arc<Api>, request: http::Request<Incoming>) -> Result<Response<Body>, hyper::Error> {
    let (head, body) = request.into_parts();
    let query = head.uri.query().unwrap_or_default();
    let number =
        api.log.arrived(header(&head.headers, &USER_AGENT), head.method.as_str(), head.uri.path(), query);
    let call = Call {
        method: head.method.clone(),
        path: head.uri.path().to_owned(),
        query: Query::parse(query),
        content_type: header(&head.headers, &CONTENT_TYPE).to_owned(),
        body: body.collect().await?.to_bytes(),
    };
    let answer = if admitted(&api, &head.headers) {
        rest::answer(&mut api.state(), &call, &api.address)
    } else {
        Err(ApiError::Unauthorized)
    };
    let response = encode(&api, answer);
    api.log.answered(number, response.status().as_u16());
    Ok(response)
}

fn admitted(api: &Api, headers: &HeaderMap) -> bool {
    let shown = header(headers, &AUTHORIZATION).strip_prefix("Bearer ");
    api.token.as_deref().is_none_or(|token| shown == Some(token))
}

fn encode(api: &Arc<Api>, answer: Result<Answer, ApiError>) -> Response<Body> {
    match answer {
        Ok(Answer::Json(code, value)) => whole(code, "application/json", value.to_string()),
        Ok(Answer::Text(text)) => whole(200, "text/plain; charset=utf-8", text.to_owned()),
        Ok(Answer::Watch(watch)) => streamed(api.clone(), *watch),
        Err(error @ ApiError::PageNotFound) => whole(404, "text/plain; charset=utf-8", format!("{error}\n")),
        Err(error) => whole(error.code(), "application/json", error.status().to_string()),
    }
}

fn whole(code: u16, content_type: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(text)).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn streamed(api: Arc<Api>, watch: Watch) -> Response<Body> {
    let (events, sent) = mpsc::channel(WATCH_BUFFER);
    // Ends by itself: when the client goes, `sent` is dropped with the response.
    tokio::spawn(watch.run(api, events));
    let lines = ReceiverStream::new(sent).map(|event| Ok(Frame::data(Bytes::from(format!("{event}\n")))));
    let mut response = Response::new(StreamBody::new(lines).boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
