//! Resource types: what discovery tells about them and where their rules differ.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::error::{ApiError, FieldError, Subject};
use crate::object::text;

/// A resource in its group, written `volumesnapshots.snapshot.storage.k8s.io`, or `pods` in the core group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupResource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural.
    pub resource: String,
}

impl fmt::Display for GroupResource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.resource)?;
        if self.group.is_empty() { Ok(()) } else { write!(out, ".{}", self.group) }
    }
}

impl From<&str> for GroupResource {
    fn from(name: &str) -> Self {
        let (resource, group) = name.split_once('.').unwrap_or((name, ""));
        Self { group: group.to_owned(), resource: resource.to_owned() }
    }
}

/// A resource type that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // independent facts about a type, each asked for by name
pub struct Kind {
    /// The resource and its group.
    pub resource: GroupResource,
    /// The versions under which it is served, the preferred one first. All have the same shape.
    pub versions: Vec<String>,
    /// E.g. `VolumeSnapshot`.
    pub kind: String,
    /// E.g. `volumesnapshot`.
    pub singular: String,
    /// Names for people, e.g. `vs`.
    pub short: Vec<String>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether `status` is written at `/status` only.
    pub status: bool,
    /// Whether it comes from a custom resource definition: such types are stricter about versions, and looser
    /// about shapes.
    pub custom: bool,
    /// Whether `metadata.generation` counts the changes of what is wanted.
    pub generation: bool,
    /// Whether a deletion is answered with the object itself and not with a `Status`.
    pub returns_deleted: bool,
    /// The fields that a field selector may name beside `metadata.name` and `metadata.namespace`.
    pub fields: &'static [&'static str],
}

impl Kind {
    /// The type that a custom resource definition describes.
    ///
    /// # Errors
    /// Names the fields of the definition that are missing.
    pub fn from_definition(definition: &Value) -> Result<Self, ApiError> {
        let mut missing = Vec::new();
        let mut field = |pointer: &str| {
            let value = text(definition, pointer);
            if value.is_empty() {
                missing.push(FieldError::required(&pointer[1..].replace('/', "."), ""));
            }
            value.to_owned()
        };
        let (group, resource) = (field("/spec/group"), field("/spec/names/plural"));
        let (kind, scope) = (field("/spec/names/kind"), field("/spec/scope"));
        let all = definition["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let served: Vec<&Value> = all.iter().filter(|version| version["served"] == true).collect();
        if served.is_empty() {
            missing.push(FieldError::required("spec.versions", ""));
        }
        if !missing.is_empty() {
            let subject = Subject {
                group: "apiextensions.k8s.io".to_owned(),
                kind: "CustomResourceDefinition".to_owned(),
                name: text(definition, "/metadata/name").to_owned(),
            };
            return Err(ApiError::Invalid(subject, missing));
        }
        let singular = match text(definition, "/spec/names/singular") {
            "" => kind.to_lowercase(),
            singular => singular.to_owned(),
        };
        let short = definition["spec"]["names"]["shortNames"].as_array();
        Ok(Self {
            resource: GroupResource { group, resource },
            versions: served.iter().map(|version| text(version, "/name").to_owned()).collect(),
            kind,
            singular,
            short: short.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
            namespaced: scope == "Namespaced",
            status: served.iter().any(|version| version["subresources"]["status"].is_object()),
            custom: true,
            generation: true,
            returns_deleted: false,
            fields: &[],
        })
    }

    /// `v1` or `snapshot.storage.k8s.io/v1`, in the preferred version.
    pub fn api_version(&self) -> String {
        self.api_version_in(&self.versions[0])
    }

    pub(crate) fn api_version_in(&self, version: &str) -> String {
        if self.resource.group.is_empty() {
            version.to_owned()
        } else {
            format!("{}/{version}", self.resource.group)
        }
    }

    /// The subject of an error about one of its objects, spelt with the plural.
    pub(crate) fn named(&self, name: &str) -> Subject {
        Subject {
            group: self.resource.group.clone(),
            kind: self.resource.resource.clone(),
            name: name.to_owned(),
        }
    }

    /// The subject of a validation error, spelt with the kind.
    pub(crate) fn object(&self, name: &str) -> Subject {
        Subject { group: self.resource.group.clone(), kind: self.kind.clone(), name: name.to_owned() }
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.resource == GroupResource::from(name)
    }
}

/// The types that are served at this moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kinds(BTreeMap<GroupResource, Arc<Kind>>);

impl Kinds {
    pub(crate) fn add(&mut self, kind: Kind) {
        self.0.insert(kind.resource.clone(), Arc::new(kind));
    }

    pub(crate) fn remove(&mut self, resource: &GroupResource) {
        self.0.remove(resource);
    }

    pub(crate) fn get(&self, resource: &GroupResource) -> Option<Arc<Kind>> {
        self.0.get(resource).cloned()
    }

    /// The type of an object, by its `apiVersion` and `kind`.
    pub(crate) fn of(&self, object: &Value) -> Option<Arc<Kind>> {
        let api_version = text(object, "/apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let fits = |kind: &&Arc<Kind>| {
            kind.resource.group == group
                && kind.kind == text(object, "/kind")
                && kind.versions.iter().any(|served| served == version)
        };
        self.0.values().find(fits).cloned()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.0.values()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn definition_gives_its_served_versions_and_its_scope() {
        let kind = Kind::from_definition(&json!({"spec": {
            "group": "x.io", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
            "versions": [
                {"name": "v2", "served": true, "storage": true, "subresources": {"status": {}}},
                {"name": "v1", "served": false},
            ],
        }}))
        .unwrap();
        assert_eq!(kind.resource.to_string(), "foos.x.io");
        assert_eq!((kind.versions, kind.singular), (vec!["v2".to_owned()], "foo".to_owned()));
        assert!(kind.namespaced && kind.status && kind.custom);
    }

    #[test]
    fn definition_without_names_is_refused_field_by_field() {
        let Err(ApiError::Invalid(_, errors)) = Kind::from_definition(&json!({"spec": {"group": "x.io"}}))
        else {
            panic!("must be refused");
        };
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["spec.names.plural", "spec.names.kind", "spec.scope", "spec.versions"]);
    }
}
