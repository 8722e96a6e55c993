//! The log of requests: who asked for what, when, and what came back.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use fault_proxy::request::RequestInfo;

/// One request that a client made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it arrived.
    pub at: Instant,
    /// The client's `User-Agent`; empty when it sent none.
    pub client: String,
    /// What it means: verb, resource, namespace, name.
    pub info: RequestInfo,
    /// The query as it was sent.
    pub query: String,
    /// The body, where it is text.
    pub body: String,
    /// The fault rules that hit it.
    pub rules: Vec<String>,
    /// The status code of the answer; none while it is awaited and when the connection was cut.
    pub code: Option<u16>,
}

/// All requests since the start.
#[derive(Debug, Default)]
pub(crate) struct Log(Mutex<Vec<Request>>);

impl Log {
    /// Notes a request; gives back its number.
    pub(crate) fn arrived(&self, request: Request) -> usize {
        let mut requests = self.lock();
        requests.push(request);
        requests.len() - 1
    }

    /// Notes the answer to request `number`.
    pub(crate) fn answered(&self, number: usize, code: u16) {
        // Missing when the log was emptied meanwhile.
        if let Some(request) = self.lock().get_mut(number) {
            request.code = Some(code);
        }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.lock().clone()
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Request>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How often each client used each verb on each resource, written `patch volumesnapshotcontents/status`.
pub(crate) fn counts(requests: &[Request]) -> BTreeMap<String, BTreeMap<String, usize>> {
    let mut counts: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for Request { client, info, .. } in requests {
        let what = match (info.is_resource(), info.subresource.as_str()) {
            (false, _) => format!("{} {}", info.verb, info.path),
            (true, "") => format!("{} {}", info.verb, info.resource),
            (true, sub) => format!("{} {}/{sub}", info.verb, info.resource),
        };
        *counts.entry(client.clone()).or_default().entry(what).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_client_verb_and_resource() {
        let request = |client: &str, method: &str, path: &str, query: &str| Request {
            at: Instant::now(),
            client: client.to_owned(),
            info: RequestInfo::new(method, path, query),
            query: query.to_owned(),
            body: String::new(),
            rules: Vec::new(),
            code: None,
        };
        let counts = counts(&[
            request("a", "GET", "/api/v1/namespaces/n/pods/p", ""),
            request("a", "GET", "/api/v1/namespaces/n/pods/q", ""),
            request("a", "GET", "/api/v1/pods", "watch=true"),
            request("b", "PATCH", "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents/c/status", ""),
            request("b", "GET", "/version", ""),
        ]);
        assert_eq!(counts["a"], [("get pods".to_owned(), 2), ("watch pods".to_owned(), 1)].into());
        let status = "patch volumesnapshotcontents/status".to_owned();
        assert_eq!(counts["b"], [("get /version".to_owned(), 1), (status, 1)].into());
    }
}
