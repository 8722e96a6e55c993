//! Runs the script on a server.

use std::collections::BTreeMap;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::normal::StandIns;
use super::{Entry, Step, steps};

/// For one request, and for a step that is repeated.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

/// Why the script did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The server can't be reached, or broke off.
    #[error("step {0:?} got no answer: {1}")]
    Client(&'static str, String),
    /// A step's answer lacks what later steps need.
    #[error("step {what:?} answered {code} without {pointer}: {answer}")]
    Capture {
        /// The step.
        what: &'static str,
        /// The status code.
        code: u16,
        /// What was looked for.
        pointer: &'static str,
        /// The answer.
        answer: Box<Value>,
    },
    /// A repeated step never had the code that it waits for.
    #[error("step {0:?} did not come to answer {1} within {PATIENCE:?}, it last answered {2}")]
    Never(&'static str, u16, u16),
}

/// Runs all steps in a namespace of that name, which must not exist and is deleted at the end.
///
/// # Errors
/// When the script can't go on. Answers that are not as expected are no error: they are in the result.
pub async fn run(client: &Client, namespace: &str) -> Result<Vec<Entry>, Trouble> {
    let mut stand_ins = StandIns::of(namespace);
    let mut captured = BTreeMap::new();
    let mut entries = Vec::new();
    for step in steps(namespace) {
        let (code, answer) = settled(client, &step, &captured).await?;
        for (name, pointer) in step.capture {
            let value = answer.pointer(pointer).and_then(Value::as_str).ok_or_else(|| Trouble::Capture {
                what: step.what,
                code,
                pointer,
                answer: Box::new(answer.clone()),
            })?;
            captured.insert(format!("${name}"), value.to_owned());
        }
        let mut answer = answer;
        step.except.iter().for_each(|pointer| remove(&mut answer, pointer));
        let answer = stand_ins.normal(answer);
        entries.push(Entry { what: step.what.to_owned(), code, answer });
    }
    Ok(entries)
}

/// Takes out what isn't compared.
fn remove(answer: &mut Value, pointer: &str) {
    let Some((parent, field)) = pointer.rsplit_once('/') else { return };
    if let Some(Value::Object(parent)) = answer.pointer_mut(parent) {
        parent.remove(field);
    }
}

/// The answer to a step, once it is what the step waits for.
async fn settled(
    client: &Client,
    step: &Step,
    captured: &BTreeMap<String, String>,
) -> Result<(u16, Value), Trouble> {
    let end = Instant::now() + PATIENCE;
    loop {
        let (code, answer) = request(client, step, captured).await?;
        match step.until {
            Some(wanted) if wanted != code && Instant::now() > end => {
                return Err(Trouble::Never(step.what, wanted, code));
            }
            Some(wanted) if wanted != code => sleep(PAUSE).await,
            _ => return Ok((code, answer)),
        }
    }
}

async fn request(
    client: &Client,
    step: &Step,
    captured: &BTreeMap<String, String>,
) -> Result<(u16, Value), Trouble> {
    let trouble = |error: String| Trouble::Client(step.what, error);
    let body =
        if step.body.is_null() { Vec::new() } else { fill(&step.body.to_string(), captured).into_bytes() };
    let request = http::Request::builder()
        .method(step.method)
        .uri(fill(&step.path, captured))
        .header(CONTENT_TYPE, &*step.content_type())
        .body(Body::from(body))
        .map_err(|error| trouble(error.to_string()))?;
    let exchange = async {
        let response = client.send(request).await.map_err(|error| trouble(error.to_string()))?;
        let code = response.status().as_u16();
        let bytes =
            response.into_body().collect().await.map_err(|error| trouble(error.to_string()))?.to_bytes();
        Ok((code, read(step, &bytes)))
    };
    timeout(PATIENCE, exchange).await.map_err(|_| trouble("timed out".to_owned()))?
}

/// Puts captured values in.
fn fill(text: &str, captured: &BTreeMap<String, String>) -> String {
    captured.iter().rev().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
}

/// Bookmarks come when a server pleases, but for the one at the end of the initial events; its version is the cluster's.
fn unless_plain_bookmark(mut event: Value) -> Option<Value> {
    if event["type"] == "BOOKMARK" {
        event.pointer("/object/metadata/annotations")?;
        event["object"]["metadata"]["resourceVersion"] = "<some>".into();
    }
    Some(event)
}

/// JSON, the events of a watch but for its bookmarks, or the text as it is.
fn read(step: &Step, bytes: &[u8]) -> Value {
    let text = String::from_utf8_lossy(bytes);
    if step.watches() {
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let events: Vec<Value> = events.filter_map(unless_plain_bookmark).collect();
        if !events.is_empty() || text.trim().is_empty() {
            return events.into();
        }
    }
    serde_json::from_slice(bytes).unwrap_or_else(|_| text.into_owned().into())
}
