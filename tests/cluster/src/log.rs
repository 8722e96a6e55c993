//! The log of requests: who asked for what, when, and what came back.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::rest::path::{Query, Route};

/// One request that a client made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it arrived.
    pub at: Instant,
    /// The client's `User-Agent`; empty when it sent none.
    pub client: String,
    /// The HTTP method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query as it was sent.
    pub query: String,
    /// What Kubernetes calls it: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
    /// `deletecollection`; the path for requests that are not about objects.
    pub verb: String,
    /// The resource as `volumesnapshots.snapshot.storage.k8s.io`, with `/status` for a subresource.
    pub resource: String,
    /// Empty for objects without a namespace.
    pub namespace: String,
    /// Empty for collections.
    pub name: String,
    /// The status code of the answer; none while it is awaited and when the connection was cut.
    pub code: Option<u16>,
}

/// All requests since the start.
#[derive(Debug, Default)]
pub(crate) struct Log(Mutex<Vec<Request>>);

impl Log {
    /// Notes a request; gives back its number.
    pub(crate) fn arrived(&self, client: &str, method: &str, path: &str, query: &str) -> usize {
        let mut request = Request {
            at: Instant::now(),
            client: client.to_owned(),
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            verb: path.to_owned(),
            resource: String::new(),
            namespace: String::new(),
            name: String::new(),
            code: None,
        };
        if let Ok(Route::Objects(target)) = Route::parse(path) {
            let one = !target.name.is_empty();
            verb(method, one, Query::parse(query).flag("watch")).clone_into(&mut request.verb);
            request.resource = target.group_resource().to_string();
            if !target.subresource.is_empty() {
                request.resource = format!("{}/{}", request.resource, target.subresource);
            }
            request.namespace = target.namespace;
            request.name = target.name;
        }
        let mut requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        requests.push(request);
        requests.len() - 1
    }

    /// Notes the answer to request `number`.
    pub(crate) fn answered(&self, number: usize, code: u16) {
        let mut requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(request) = requests.get_mut(number) {
            request.code = Some(code);
        }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// How often each client used each verb on each resource, as `get pods`.
    pub(crate) fn counts(&self) -> BTreeMap<String, BTreeMap<String, usize>> {
        let mut counts: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
        for request in self.requests() {
            let what = format!("{} {}", request.verb, request.resource).trim_end().to_owned();
            *counts.entry(request.client).or_default().entry(what).or_default() += 1;
        }
        counts
    }
}

fn verb(method: &str, one: bool, watch: bool) -> &'static str {
    match (method, one) {
        ("GET", _) if watch => "watch",
        ("GET", true) => "get",
        ("GET", false) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_client_verb_and_resource() {
        let log = Log::default();
        log.arrived("a", "GET", "/api/v1/namespaces/n/pods/p", "");
        log.arrived("a", "GET", "/api/v1/namespaces/n/pods/q", "");
        log.arrived("a", "GET", "/api/v1/pods", "watch=true");
        log.arrived("b", "PATCH", "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents/c/status", "");
        log.arrived("b", "GET", "/version", "");
        let counts = log.counts();
        assert_eq!(counts["a"], [("get pods".to_owned(), 2), ("watch pods".to_owned(), 1)].into());
        let status = "patch volumesnapshotcontents.snapshot.storage.k8s.io/status".to_owned();
        assert_eq!(counts["b"], [("/version".to_owned(), 1), (status, 1)].into());
    }
}
