//! Errors in the form of the API server: a `Status` object. No I/O.

use serde_json::{Value, json};

use crate::request::RequestInfo;
use crate::rules::StatusAnswer;

/// The `Status` object for a request that the rule with this id fails.
pub fn body(answer: &StatusAnswer, rule: &str, info: &RequestInfo) -> Value {
    let reason = answer.reason.clone().unwrap_or_else(|| reason(answer.code, &info.verb).to_owned());
    let message = answer.message.clone().unwrap_or_else(|| format!("ordered by rule {rule}"));
    let mut details = json!({});
    for (field, value) in [("name", &info.name), ("group", &info.group), ("kind", &info.resource)] {
        if !value.is_empty() {
            details[field] = json!(value);
        }
    }
    if let Some(seconds) = answer.retry_after_s {
        details["retryAfterSeconds"] = json!(seconds);
    }
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details,
        "code": answer.code,
    })
}

/// The reason that the API server gives with this code.
fn reason(code: u16, verb: &str) -> &'static str {
    match (code, verb) {
        (400, _) => "BadRequest",
        (401, _) => "Unauthorized",
        (403, _) => "Forbidden",
        (404, _) => "NotFound",
        (405, _) => "MethodNotAllowed",
        (406, _) => "NotAcceptable",
        (409, "create") => "AlreadyExists",
        (409, _) => "Conflict",
        (410, _) => "Expired",
        (413, _) => "RequestEntityTooLarge",
        (415, _) => "UnsupportedMediaType",
        (422, _) => "Invalid",
        (429, _) => "TooManyRequests",
        (500, _) => "InternalError",
        (503, _) => "ServiceUnavailable",
        (504, _) => "Timeout",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_tells_about_its_object() {
        let info = RequestInfo::new("DELETE", "/apis/apps/v1/namespaces/a/deployments/d", "");
        let answer = StatusAnswer { code: 429, retry_after_s: Some(2), ..StatusAnswer::default() };
        assert_eq!(
            body(&answer, "x", &info),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "ordered by rule x", "reason": "TooManyRequests", "code": 429,
                "details": {"name": "d", "group": "apps", "kind": "deployments", "retryAfterSeconds": 2}
            })
        );
    }

    #[test]
    fn a_conflict_means_something_else_on_creation() {
        for (method, expected) in [("POST", "AlreadyExists"), ("PUT", "Conflict")] {
            let info = RequestInfo::new(method, "/api/v1/pods", "");
            let answer = StatusAnswer { code: 409, ..StatusAnswer::default() };
            assert_eq!(body(&answer, "x", &info)["reason"], expected);
        }
    }

    #[test]
    fn words_can_be_chosen() {
        let answer = StatusAnswer {
            code: 500,
            reason: Some("Weird".to_owned()),
            message: Some("etcdserver: leader changed".to_owned()),
            retry_after_s: None,
        };
        let body = body(&answer, "x", &RequestInfo::default());
        assert_eq!(
            (&body["reason"], &body["message"]),
            (&json!("Weird"), &json!("etcdserver: leader changed"))
        );
        assert_eq!(body["details"], json!({}));
    }
}
