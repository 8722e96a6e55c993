//! One request from its arrival to its answer: rules, forwarding, log.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use jiff::Timestamp;

use super::Core;
use super::body::{Answered, Source, Truncated};
use crate::record::RequestRecord;
use crate::request::RequestInfo;
use crate::rules::{Answer, Cut, StatusAnswer, Subject, Verdict};
use crate::status;

/// The connection is to be closed without an answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Closed {
    /// By a rule.
    #[error("connection closed by rule {0}")]
    ByRule(String),
    /// The request broke off.
    #[error("request could not be read: {0}")]
    Request(#[from] hyper::Error),
}

/// Serves one request.
pub(super) async fn serve(
    core: Arc<Core>,
    client: Arc<str>,
    request: Request<Incoming>,
) -> Result<Response<Answered>, Closed> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let query = parts.uri.query().unwrap_or_default();
    let info = RequestInfo::new(parts.method.as_str(), parts.uri.path(), query).named_by(&body);
    let user_agent = parts.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let subject = Subject { info: &info, client: &client, user_agent };
    let verdict = Verdict::of(&core.rules.hit(|rule| rule.selects(subject)));
    let entry = Entry::begin(
        Arc::clone(&core),
        RequestRecord {
            client: client.to_string(),
            user_agent: user_agent.to_owned(),
            info: info.clone(),
            query: query.to_owned(),
            rules: verdict.rules.clone(),
            started: Timestamp::now(),
            forwarded: false,
            upstream_status: None,
            status: None,
            ended: None,
            trouble: None,
        },
    );
    tokio::time::sleep(verdict.delay).await;
    match answer(&core, &info, &verdict, &entry, parts, body).await {
        Ok(response) => {
            let (head, source) = response.into_parts();
            entry.change(|record| record.status = Some(head.status.as_u16()));
            Ok(Response::from_parts(head, Answered::new(source, entry)))
        }
        Err(closed) => {
            entry.trouble(&closed.to_string());
            Err(closed)
        }
    }
}

async fn answer(
    core: &Core,
    info: &RequestInfo,
    verdict: &Verdict,
    entry: &Entry,
    parts: http::request::Parts,
    body: Bytes,
) -> Result<Response<Source>, Closed> {
    match verdict.failure.at(Cut::BeforeEffect) {
        Some((id, Answer::Status(answer))) => return Ok(failed(answer, id, info)),
        Some((id, Answer::Hang)) => core.rules.released(id).await,
        Some((id, Answer::Close | Answer::Truncate { .. })) => return Err(Closed::ByRule(id.to_owned())),
        None => {}
    }
    entry.change(|record| record.forwarded = true);
    let response = match core.upstream.send(parts, body).await {
        Ok(response) => response,
        Err(error) => {
            let message = error.to_string();
            entry.change(|record| record.trouble = Some(message.clone()));
            let answer = StatusAnswer { code: 502, message: Some(message), ..StatusAnswer::default() };
            return Ok(failed(&answer, "", info));
        }
    };
    entry.change(|record| record.upstream_status = Some(response.status().as_u16()));
    match verdict.failure.at(Cut::AfterEffect) {
        Some((id, Answer::Status(answer))) => Ok(failed(answer, id, info)),
        Some((id, Answer::Close)) => Err(Closed::ByRule(id.to_owned())),
        Some((id, Answer::Truncate { after_bytes })) => {
            Ok(response.map(|body| Source::Truncated(Truncated::new(body, *after_bytes, id))))
        }
        Some((id, Answer::Hang)) => {
            core.rules.released(id).await;
            Ok(response.map(Source::Upstream))
        }
        None => Ok(response.map(Source::Upstream)),
    }
}

/// An error of the proxy's own.
fn failed(answer: &StatusAnswer, rule: &str, info: &RequestInfo) -> Response<Source> {
    let body = status::body(answer, rule, info).to_string();
    let mut response = Response::new(Source::Own(Some(Bytes::from(body))));
    // A rule was checked to have a valid code.
    *response.status_mut() = StatusCode::from_u16(answer.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(seconds) = answer.retry_after_s {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// A request in the log that is not over. It is over when this is dropped.
#[derive(Debug)]
pub(super) struct Entry {
    core: Arc<Core>,
    number: u64,
}

impl Entry {
    fn begin(core: Arc<Core>, record: RequestRecord) -> Self {
        let number = core.log().begin(record);
        Self { core, number }
    }

    fn change(&self, change: impl FnOnce(&mut RequestRecord)) {
        self.core.log().update(self.number, change);
    }

    /// Notes why the exchange ends early.
    pub(super) fn trouble(&self, why: &str) {
        self.change(|record| record.trouble = Some(why.to_owned()));
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.change(|record| {
            record.ended = Some(Timestamp::now());
            if record.status.is_none() && record.trouble.is_none() {
                record.trouble = Some("the client went away".to_owned());
            }
        });
    }
}
