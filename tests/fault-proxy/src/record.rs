//! The request log: who asked for what, and what came of it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::request::RequestInfo;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// The name of the listener that it came to.
    pub client: String,
    /// The User-Agent; empty when absent.
    pub user_agent: String,
    /// What it means.
    #[serde(flatten)]
    pub info: RequestInfo,
    /// The query, without `?`.
    pub query: String,
    /// The rules that hit it.
    pub rules: Vec<String>,
    /// When it arrived.
    pub started: Timestamp,
    /// Whether it was passed on to the API server.
    pub forwarded: bool,
    /// What the API server answered.
    pub upstream_status: Option<u16>,
    /// What the client was answered; absent while it waits, and when its connection was closed instead.
    pub status: Option<u16>,
    /// When the answer's last byte was passed on or the exchange broke; absent while it runs, as a watch does.
    pub ended: Option<Timestamp>,
    /// Why the exchange ended early.
    pub trouble: Option<String>,
}

/// How many requests of a kind a client made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields of the record")]
pub struct Count {
    pub client: String,
    pub user_agent: String,
    pub verb: String,
    pub group: String,
    pub resource: String,
    pub subresource: String,
    /// The number of requests.
    pub count: u64,
}

/// Counts requests by client, verb and resource, in this order.
pub fn count<'a>(records: impl IntoIterator<Item = &'a RequestRecord>) -> Vec<Count> {
    let mut counts = BTreeMap::new();
    for record in records {
        let info = &record.info;
        let key =
            [&record.client, &record.user_agent, &info.verb, &info.group, &info.resource, &info.subresource];
        *counts.entry(key).or_insert(0) += 1;
    }
    let count = |(key, count): ([&String; 6], u64)| {
        let [client, user_agent, verb, group, resource, subresource] = key.map(Clone::clone);
        Count { client, user_agent, verb, group, resource, subresource, count }
    };
    counts.into_iter().map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_client_verb_and_resource() {
        let record = |client: &str, method: &str, path: &str| RequestRecord {
            client: client.to_owned(),
            user_agent: "agent".to_owned(),
            info: RequestInfo::new(method, path, ""),
            query: String::new(),
            rules: vec![],
            started: Timestamp::UNIX_EPOCH,
            forwarded: true,
            upstream_status: None,
            status: None,
            ended: None,
            trouble: None,
        };
        let records = [
            record("b", "GET", "/api/v1/pods"),
            record("a", "GET", "/api/v1/pods"),
            record("a", "GET", "/api/v1/namespaces/x/pods"),
            record("a", "GET", "/api/v1/namespaces/x/pods/p"),
        ];
        let found: Vec<_> =
            count(&records).into_iter().map(|c| (c.client, c.verb, c.resource, c.count)).collect();
        let expected = [("a", "get", 1), ("a", "list", 2), ("b", "list", 1)];
        let expected = expected.map(|(client, verb, n)| (client.into(), verb.into(), "pods".into(), n));
        assert_eq!(found, expected);
    }
}
