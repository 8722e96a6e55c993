//! What went wrong with a request to the API server, and whether trying again can help.

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

/// The kind of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The object does not exist.
    NotFound,
    /// The API server does not know the resource at all: its CRD is missing.
    NotServed,
    /// An object of the name exists.
    AlreadyExists,
    /// Another writer was quicker, or a precondition does not hold.
    Conflict,
    /// The credentials are not (or no longer) good.
    Unauthorized,
    /// The account may not do this, or a quota or admission rule forbids it.
    Forbidden,
    /// The API server refuses the object as it is.
    Invalid,
    /// Too many requests.
    Busy,
    /// The API server, or something before it, has trouble of its own.
    Unavailable,
    /// No answer in time.
    TimedOut,
    /// No connection, or a cut one.
    Unreachable,
    /// An answer that is not understood.
    Unreadable,
    /// There is no way to reach a cluster from here: no kubeconfig, no service account.
    NoCluster,
}

/// A request that failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{request}: {message}")]
pub struct ApiError {
    /// The verb and the object.
    pub request: String,
    /// The kind of trouble.
    pub reason: Reason,
    /// The API server's words.
    pub message: String,
    /// The least time to wait that the API server asked for.
    pub retry_after: Option<Duration>,
}

impl ApiError {
    pub(super) fn new(request: &str, reason: Reason, message: impl Into<String>) -> Self {
        Self { request: request.to_owned(), reason, message: message.into(), retry_after: None }
    }

    /// Of an answer with a status of 400 or above.
    pub(super) fn of_answer(
        request: &str,
        code: StatusCode,
        retry_after: Option<Duration>,
        body: &[u8],
    ) -> Self {
        let status: Value = serde_json::from_slice(body).unwrap_or_default();
        let reason = reason_of(code, &status);
        let said = status["message"].as_str().map(str::to_owned);
        let said = said.unwrap_or_else(|| {
            let text = String::from_utf8_lossy(body);
            crate::driver_error::shortened(&text)
        });
        let message = match reason {
            Reason::NotServed => {
                "the API server does not know this resource: its CustomResourceDefinition is missing"
                    .to_owned()
            }
            _ if said.is_empty() => code.to_string(),
            _ => said,
        };
        let in_body = status["details"]["retryAfterSeconds"].as_u64().filter(|seconds| *seconds > 0);
        let retry_after = retry_after.or_else(|| in_body.map(Duration::from_secs));
        Self { request: request.to_owned(), reason, message, retry_after }
    }

    /// Whether the same request may work later.
    pub fn may_pass(&self) -> bool {
        match self.reason {
            Reason::Unauthorized
            | Reason::Busy
            | Reason::Unavailable
            | Reason::TimedOut
            | Reason::Unreachable => true,
            Reason::NotFound
            | Reason::NotServed
            | Reason::AlreadyExists
            | Reason::Conflict
            | Reason::Forbidden
            | Reason::Invalid
            | Reason::Unreadable
            | Reason::NoCluster => false,
        }
    }

    /// Whether the object is not the one, or not in the state, that the request was for.
    pub fn has_moved(&self) -> bool {
        matches!(self.reason, Reason::NotFound | Reason::Conflict)
    }

    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self.reason, Reason::NotFound | Reason::NotServed)
    }
}

fn reason_of(code: StatusCode, status: &Value) -> Reason {
    match (code.as_u16(), status["reason"].as_str().unwrap_or_default()) {
        // An object that is missing is named in the details; of a resource that is missing there is only the path.
        (404, _) if status["details"]["name"].is_string() => Reason::NotFound,
        (404, _) => Reason::NotServed,
        // A patch named the UID of an object that is gone; another has its name.
        (422, _) if is_of_another_uid(status) => Reason::NotFound,
        (409, "AlreadyExists") => Reason::AlreadyExists,
        (409, _) => Reason::Conflict,
        (401, _) => Reason::Unauthorized,
        (403, _) => Reason::Forbidden,
        (429, _) => Reason::Busy,
        (408, _) => Reason::TimedOut,
        (500.., _) => Reason::Unavailable,
        _ => Reason::Invalid,
    }
}

fn is_of_another_uid(status: &Value) -> bool {
    let causes = status.pointer("/details/causes").and_then(Value::as_array);
    causes.is_some_and(|causes| causes.iter().any(|cause| cause["field"] == "metadata.uid"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(code: u16, body: &Value) -> ApiError {
        let code = StatusCode::from_u16(code).unwrap();
        ApiError::of_answer("get pods a/b", code, None, body.to_string().as_bytes())
    }

    #[test]
    fn answers_are_told_apart_and_only_trouble_of_the_moment_may_pass() {
        let missing =
            json!({"reason": "NotFound", "details": {"name": "b"}, "message": "pods \"b\" not found"});
        let table = [
            (404, missing, Reason::NotFound, false),
            (404, json!({"reason": "NotFound", "details": {}}), Reason::NotServed, false),
            (409, json!({"reason": "AlreadyExists"}), Reason::AlreadyExists, false),
            (409, json!({"reason": "Conflict"}), Reason::Conflict, false),
            (401, json!({}), Reason::Unauthorized, true),
            (403, json!({"message": "exceeded quota: q"}), Reason::Forbidden, false),
            (422, json!({"reason": "Invalid"}), Reason::Invalid, false),
            (422, json!({"details": {"causes": [{"field": "spec.driver"}]}}), Reason::Invalid, false),
            (422, json!({"details": {"causes": [{"field": "metadata.uid"}]}}), Reason::NotFound, false),
            (400, json!({}), Reason::Invalid, false),
            (429, json!({}), Reason::Busy, true),
            (500, json!({"message": "etcdserver: leader changed"}), Reason::Unavailable, true),
            (503, json!({}), Reason::Unavailable, true),
            (504, json!({}), Reason::Unavailable, true),
        ];
        for (code, body, reason, passes) in table {
            let error = answer(code, &body);
            assert_eq!((error.reason, error.may_pass()), (reason, passes), "{code} {body}");
            assert!(error.to_string().starts_with("get pods a/b: "), "{error}");
        }
    }

    #[test]
    fn c05_a_missing_crd_is_named_as_such() {
        let error = ApiError::of_answer(
            "list volumesnapshotclasses",
            StatusCode::NOT_FOUND,
            None,
            b"404 page not found\n",
        );
        assert_eq!(error.reason, Reason::NotServed);
        assert!(error.to_string().contains("CustomResourceDefinition is missing"), "{error}");
    }

    #[test]
    fn the_wait_that_the_server_asks_for_is_kept() {
        let error = answer(429, &json!({"details": {"retryAfterSeconds": 3}}));
        assert_eq!(error.retry_after, Some(Duration::from_secs(3)));
        let plain = ApiError::of_answer(
            "r",
            StatusCode::TOO_MANY_REQUESTS,
            Some(Duration::from_secs(1)),
            b"Too many",
        );
        assert_eq!((plain.retry_after, plain.message.as_str()), (Some(Duration::from_secs(1)), "Too many"));
    }
}
