//! What a request means to Kubernetes: verb, resource and name, told from method, path and query as the API
//! server does. No I/O.

use percent_encoding::percent_decode_str;
use prost::Message as _;
use serde::{Deserialize, Serialize};

/// The meaning of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestInfo {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; the method in lower
    /// case when the request is about no resource (discovery, health).
    pub verb: String,
    /// The API group, empty for the core group.
    pub group: String,
    /// The API version, e.g. `v1`.
    pub version: String,
    /// The namespace, empty for none or all.
    pub namespace: String,
    /// The plural, e.g. `volumesnapshots`; empty when the request is about no resource.
    pub resource: String,
    /// E.g. `status`; empty for the object itself.
    pub subresource: String,
    /// The object's name, also from a field selector; empty for collections.
    pub name: String,
    /// The path without its query.
    pub path: String,
}

impl RequestInfo {
    /// The meaning of a request with this method, path and query (without `?`).
    pub fn new(method: &str, path: &str, query: &str) -> Self {
        let mut info = Self { verb: method.to_ascii_lowercase(), path: path.to_owned(), ..Self::default() };
        let segments: Vec<String> = path
            .split('/')
            .filter(|segment| !segment.is_empty())
            .map(|segment| percent_decode_str(segment).decode_utf8_lossy().into_owned())
            .collect();
        let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
        let rest = match parts.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => {
                (*version).clone_into(&mut info.version);
                rest
            }
            ["apis", group, version, rest @ ..] if !rest.is_empty() => {
                (*group).clone_into(&mut info.group);
                (*version).clone_into(&mut info.version);
                rest
            }
            _ => return info,
        };
        // The old form of a watch: the verb is the first segment.
        let (old_watch, rest) = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
            rest => (false, rest),
        };
        info.locate(rest);
        verb(method, info.name.is_empty()).clone_into(&mut info.verb);
        if info.verb == "list" {
            info.refine_list(query);
        }
        if old_watch {
            "watch".clone_into(&mut info.verb);
        }
        info
    }

    /// Whether the request is about a resource.
    pub fn is_resource(&self) -> bool {
        !self.resource.is_empty()
    }

    /// Takes the name of a created object from the request's body, JSON or protobuf; a `generateName` counts as the
    /// name. Nothing changes where the path has a name.
    #[must_use]
    pub fn named_by(mut self, body: &[u8]) -> Self {
        if self.verb == "create" && self.name.is_empty() {
            self.name = body_name(body).unwrap_or_default();
        }
        self
    }

    fn locate(&mut self, rest: &[&str]) {
        let parts = match rest {
            // Subresources of the namespace object itself.
            ["namespaces", _, "status" | "finalize", ..] => {
                rest[1].clone_into(&mut self.namespace);
                rest
            }
            ["namespaces", namespace, inside @ ..] => {
                (*namespace).clone_into(&mut self.namespace);
                if inside.is_empty() { rest } else { inside }
            }
            rest => rest,
        };
        for (part, field) in parts.iter().zip([&mut self.resource, &mut self.name, &mut self.subresource]) {
            (*part).clone_into(field);
        }
    }

    fn refine_list(&mut self, query: &str) {
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*key {
                "watch" if matches!(&*value, "true" | "1" | "t" | "T" | "TRUE" | "True") => {
                    "watch".clone_into(&mut self.verb);
                }
                "fieldSelector" => {
                    let named = |part: &str| part.strip_prefix("metadata.name=").map(str::to_owned);
                    if let Some(name) = value.split(',').find_map(named) {
                        name.trim_start_matches('=').clone_into(&mut self.name);
                    }
                }
                _ => {}
            }
        }
    }
}

/// What a body in protobuf begins with.
const PROTOBUF: &[u8] = b"k8s\0";

/// The envelope of an object in protobuf.
#[derive(Clone, PartialEq, prost::Message)]
struct Envelope {
    #[prost(bytes = "vec", tag = "2")]
    raw: Vec<u8>,
}

/// What all objects have in common.
#[derive(Clone, PartialEq, prost::Message)]
struct Object {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Metadata>,
}

/// The names of an object.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    generate_name: String,
}

#[derive(Deserialize)]
struct JsonObject {
    metadata: Metadata,
}

fn body_name(body: &[u8]) -> Option<String> {
    let metadata = match body.strip_prefix(PROTOBUF) {
        Some(envelope) => {
            let envelope = Envelope::decode(envelope).ok()?;
            Object::decode(&*envelope.raw).ok()?.metadata?
        }
        None => serde_json::from_slice::<JsonObject>(body).ok()?.metadata,
    };
    Some(if metadata.name.is_empty() { metadata.generate_name } else { metadata.name })
}

fn verb(method: &str, collection: bool) -> &'static str {
    match (method, collection) {
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "deletecollection",
        ("DELETE", false) => "delete",
        ("GET" | "HEAD", true) => "list",
        ("GET" | "HEAD", false) => "get",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_mean_what_the_api_server_takes_them_for() {
        const SNAPSHOTS: &str = "/apis/snapshot.storage.k8s.io/v1";
        for (method, path, query, expected) in [
            // verb group version namespace resource subresource name
            ("GET", "/api/v1/pods", "", "list||v1||pods||"),
            ("GET", "/api/v1/namespaces/a/pods", "limit=5", "list||v1|a|pods||"),
            ("GET", "/api/v1/namespaces/a/pods", "watch=true", "watch||v1|a|pods||"),
            ("GET", "/api/v1/namespaces/a/pods", "watch=1&resourceVersion=5", "watch||v1|a|pods||"),
            ("GET", "/api/v1/namespaces/a/pods", "watch=false", "list||v1|a|pods||"),
            ("GET", "/api/v1/namespaces/a/pods/p", "watch=true", "get||v1|a|pods||p"),
            ("GET", "/api/v1/watch/namespaces/a/pods", "", "watch||v1|a|pods||"),
            ("GET", "/api/v1/namespaces/a/pods/p/log", "", "get||v1|a|pods|log|p"),
            ("GET", "/api/v1/namespaces", "", "list||v1||namespaces||"),
            ("GET", "/api/v1/namespaces/a", "", "get||v1|a|namespaces||a"),
            ("PUT", "/api/v1/namespaces/a/finalize", "", "update||v1|a|namespaces|finalize|a"),
            ("POST", "/api/v1/namespaces/a/pods/p/eviction", "", "create||v1|a|pods|eviction|p"),
            ("DELETE", "/api/v1/namespaces/a/pods", "", "deletecollection||v1|a|pods||"),
            ("DELETE", "/api/v1/namespaces/a/pods/p", "", "delete||v1|a|pods||p"),
            ("HEAD", "/api/v1/pods", "", "list||v1||pods||"),
            (
                "PATCH",
                "{}/volumesnapshotcontents/c/status",
                "",
                "patch|S|v1||volumesnapshotcontents|status|c",
            ),
            ("POST", "{}/namespaces/a/volumesnapshots", "", "create|S|v1|a|volumesnapshots||"),
            (
                "GET",
                "{}/volumesnapshotcontents",
                "fieldSelector=metadata.name%3Dc&watch=true",
                "watch|S|v1||volumesnapshotcontents||c",
            ),
            ("GET", "/apis/rbac/v1/roles/system%3Aadmin", "", "get|rbac|v1||roles||system:admin"),
            ("GET", "/api", "", "get||||||"),
            ("GET", "/api/v1", "", "get||||||"),
            ("GET", "/apis/apps/v1", "", "get||||||"),
            ("GET", "/version", "", "get||||||"),
            ("POST", "/healthz", "", "post||||||"),
        ] {
            let info = RequestInfo::new(method, &path.replace("{}", SNAPSHOTS), query);
            let RequestInfo { verb, group, version, namespace, resource, subresource, name, .. } = &info;
            let group = if group == "snapshot.storage.k8s.io" { "S" } else { group };
            let found = [verb, group, version, namespace, resource, subresource, name].join("|");
            assert_eq!(found, expected, "{method} {path}?{query}");
            assert_eq!(info.is_resource(), !resource.is_empty());
        }
    }

    #[test]
    fn a_created_object_is_named_by_its_body() {
        let create = RequestInfo::new("POST", "/api/v1/namespaces/a/pods", "");
        for (body, name) in [
            (r#"{"metadata": {"name": "p", "generateName": "g-"}}"#, "p"),
            (r#"{"metadata": {"generateName": "g-"}}"#, "g-"),
            (r#"{"metadata": {}}"#, ""),
            ("k8s\0no protobuf", ""),
            (r#"{"metadata": {"name": 5}}"#, ""),
            ("", ""),
        ] {
            assert_eq!(create.clone().named_by(body.as_bytes()).name, name, "{body}");
        }
        // As kubectl sends a ConfigMap: type and object in an envelope, the metadata first in the object.
        let typed =
            b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x0a\x0a\x03\x0a\x01p\x12\x03\x0a\x01x\x1a\x00";
        assert_eq!(create.clone().named_by(typed).name, "p");
        let body = br#"{"metadata": {"name": "other"}}"#;
        let update = RequestInfo::new("PUT", "/api/v1/namespaces/a/pods/p", "");
        assert_eq!(update.named_by(body).name, "p");
        let list = RequestInfo::new("GET", "/api/v1/pods", "");
        assert_eq!(list.named_by(body).name, "");
    }
}
