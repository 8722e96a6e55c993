//! What a path and its query ask for.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::error::ApiError;
use crate::kind::GroupResource;

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz`.
    Health,
    /// `/api`.
    Core,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1` or `/apis/GROUP/VERSION`.
    Resources { group: String, version: String },
    /// Objects.
    Objects(Target),
}

/// The objects that a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    /// Empty for objects without a namespace, and for a list over all of them.
    pub(crate) namespace: String,
    /// Empty for a collection.
    pub(crate) name: String,
    /// Empty, or e.g. `status`.
    pub(crate) subresource: String,
}

impl Target {
    pub(crate) fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.group.clone(), resource: self.resource.clone() }
    }
}

impl Route {
    /// Takes a path apart.
    ///
    /// # Errors
    /// The plain 404 for paths that no API server has.
    pub(crate) fn parse(path: &str) -> Result<Self, ApiError> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, version, rest) = match parts[..] {
            ["version"] => return Ok(Self::Version),
            ["healthz" | "livez" | "readyz"] => return Ok(Self::Health),
            ["api"] => return Ok(Self::Core),
            ["apis"] => return Ok(Self::Groups),
            ["apis", group] => return Ok(Self::Group(group.to_owned())),
            ["api", version, ref rest @ ..] => ("", version, rest.to_vec()),
            ["apis", group, version, ref rest @ ..] => (group, version, rest.to_vec()),
            _ => return Err(ApiError::PageNotFound),
        };
        let (namespace, resource, name, subresource) = match rest[..] {
            [] => return Ok(Self::Resources { group: group.to_owned(), version: version.to_owned() }),
            // A namespace's own subresources look like its content.
            ["namespaces", name, sub @ ("status" | "finalize")] => ("", "namespaces", name, sub),
            ["namespaces", namespace, resource] => (namespace, resource, "", ""),
            ["namespaces", namespace, resource, name] => (namespace, resource, name, ""),
            ["namespaces", namespace, resource, name, sub] => (namespace, resource, name, sub),
            [resource] => ("", resource, "", ""),
            [resource, name] => ("", resource, name, ""),
            [resource, name, sub] => ("", resource, name, sub),
            _ => return Err(ApiError::PageNotFound),
        };
        let owned = str::to_owned;
        Ok(Self::Objects(Target {
            group: owned(group),
            version: owned(version),
            resource: owned(resource),
            namespace: owned(namespace),
            name: owned(name),
            subresource: owned(subresource),
        }))
    }
}

/// The parameters of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).map(|(key, value)| (own(key), own(value))).collect())
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.0.get(key).map(String::as_str).unwrap_or_default()
    }

    /// Narrows the request to one name, as a watch of a single object is meant.
    pub(crate) fn select_name(&mut self, name: &str) {
        self.0.insert("fieldSelector".to_owned(), format!("metadata.name={name}"));
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        matches!(self.text(key), "true" | "1")
    }

    /// A number, or none when the parameter is absent.
    ///
    /// # Errors
    /// A text that is no number, in the server's words.
    pub(crate) fn number(&self, key: &str) -> Result<Option<u64>, ApiError> {
        match self.text(key) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                let why = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
                if key == "resourceVersion" {
                    ApiError::Internal(format!("{key}: Invalid value: {text:?}: {why}"))
                } else {
                    ApiError::BadRequest(why)
                }
            }),
        }
    }
}

fn own(text: Cow<'_, str>) -> String {
    text.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_objects() {
        for (path, expected) in [
            ("/api/v1/pods", ["", "v1", "", "pods", "", ""]),
            ("/api/v1/namespaces", ["", "v1", "", "namespaces", "", ""]),
            ("/api/v1/namespaces/a", ["", "v1", "", "namespaces", "a", ""]),
            ("/api/v1/namespaces/a/status", ["", "v1", "", "namespaces", "a", "status"]),
            ("/api/v1/namespaces/a/pods/p/status", ["", "v1", "a", "pods", "p", "status"]),
            ("/apis/x.io/v2/foos/f", ["x.io", "v2", "", "foos", "f", ""]),
            ("/apis/x.io/v2/namespaces/a/foos", ["x.io", "v2", "a", "foos", "", ""]),
        ] {
            let Ok(Route::Objects(target)) = Route::parse(path) else { panic!("{path} is objects") };
            let Target { group, version, resource, namespace, name, subresource } = target;
            assert_eq!([group, version, namespace, resource, name, subresource], expected, "{path}");
        }
    }

    #[test]
    fn other_paths() {
        assert_eq!(Route::parse("/apis/"), Ok(Route::Groups));
        assert_eq!(Route::parse("/apis/x.io"), Ok(Route::Group("x.io".to_owned())));
        assert_eq!(Route::parse("/nosuch"), Err(ApiError::PageNotFound));
        assert_eq!(Route::parse("/api/v1/a/b/c/d"), Err(ApiError::PageNotFound));
    }

    #[test]
    fn queries() {
        let query = Query::parse("labelSelector=a%3Db%2Cc&watch=1&limit=5&resourceVersion=x");
        assert_eq!(query.text("labelSelector"), "a=b,c");
        assert!(query.flag("watch") && !query.flag("allowWatchBookmarks"));
        assert_eq!(query.number("limit"), Ok(Some(5)));
        assert_eq!(query.number("resourceVersion").unwrap_err().code(), 500);
    }
}
