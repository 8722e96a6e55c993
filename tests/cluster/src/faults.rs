//! Faults on requests: the rules of the fault proxy, carried out by this server on its own requests.

use std::io;

use fault_proxy::request::RequestInfo;
use fault_proxy::rules::{Answer, Cut, Rule, Subject, Verdict};
use orders::live::Orders;

/// What is left to do with a request, or with its answer, on one side of the effect.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Go on as if nothing was ordered.
    Pass,
    /// Answer this instead: a code, a body, and the seconds of a Retry-After header.
    Refuse(u16, String, Option<u32>),
    /// Close the connection.
    Close,
    /// Answer so many bytes of the body, then close the connection.
    Truncate(u64),
}

/// The verdict on a request.
pub(crate) fn verdict(rules: &Orders<Rule>, info: &RequestInfo, user_agent: &str) -> Verdict {
    let hits = rules.hit(|rule| rule.selects(Subject { info, client: "", user_agent }));
    Verdict::of(&hits)
}

/// What happens on one side of the effect; a hanging request waits here until its rule is removed.
pub(crate) async fn step(rules: &Orders<Rule>, verdict: &Verdict, cut: Cut, info: &RequestInfo) -> Step {
    match verdict.failure.at(cut) {
        None => Step::Pass,
        Some((rule, Answer::Status(answer))) => {
            let body = fault_proxy::status::body(answer, rule, info).to_string();
            Step::Refuse(answer.code, body, answer.retry_after_s)
        }
        Some((rule, Answer::Hang)) => {
            rules.released(rule).await;
            Step::Pass
        }
        Some((_, Answer::Close)) => Step::Close,
        Some((_, Answer::Truncate { after_bytes })) => Step::Truncate(*after_bytes),
    }
}

/// What makes the server close a connection.
pub(crate) fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "connection closed as a fault rule ordered")
}
