//! The name of one object of the cluster, as Velero spells it.

use std::fmt;

use crate::generated::generated as wire;

/// Why an identifier was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentifierError {
    /// Velero looks identifiers up by exact equality with discovery's plural.
    #[error(
        "resource {0:?} is not a resource name: use the lower-case plural of the API, such as \"persistentvolumeclaims\""
    )]
    Resource(String),
    /// An object without a name can't be fetched.
    #[error("the name of a {0:?} is empty")]
    EmptyName(String),
}

/// One object of the cluster: group, plural resource, namespace and name.
///
/// Velero uses the strings as they are: as directory in the archive, as key against double work and to fetch the
/// object. "pvc" or "PersistentVolumeClaim" finds nothing, so neither can be constructed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceIdentifier {
    group: String,
    resource: String,
    namespace: String,
    name: String,
}

impl ResourceIdentifier {
    /// An object of `group` ("" for the core group), `resource` (lower-case plural), in `namespace` ("" for a
    /// cluster-scoped one), called `name`.
    ///
    /// # Errors
    ///
    /// When `resource` can't be a plural of the API or `name` is empty.
    pub fn new(
        group: impl Into<String>,
        resource: impl Into<String>,
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> Result<Self, IdentifierError> {
        let (resource, name) = (resource.into(), name.into());
        let plural = resource.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        // Every plural that Kubernetes or a CRD generator makes ends in s; the short names and kinds that people
        // write by mistake ("pvc", "pv", "po") mostly don't, and `endpoints` and the like do.
        if !plural || !resource.ends_with('s') {
            return Err(IdentifierError::Resource(resource));
        }
        if name.is_empty() {
            return Err(IdentifierError::EmptyName(resource));
        }
        Ok(Self { group: group.into(), resource, namespace: namespace.into(), name })
    }

    /// The API group, "" for the core group.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The lower-case plural of the resource.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The namespace, "" for a cluster-scoped object. At restore this is the namespace in the archive.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn into_wire(self) -> wire::ResourceIdentifier {
        wire::ResourceIdentifier {
            group: self.group,
            resource: self.resource,
            namespace: self.namespace,
            name: self.name,
        }
    }

    /// What came over the wire is the server's own word and taken as it is.
    pub(crate) fn from_wire(wire: wire::ResourceIdentifier) -> Self {
        Self { group: wire.group, resource: wire.resource, namespace: wire.namespace, name: wire.name }
    }
}

impl fmt::Display for ResourceIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        f.write_str(" ")?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_and_kinds_are_refused() {
        for resource in
            ["pvc", "PersistentVolumeClaim", "persistentvolumeclaim", "", "pods/status", "pods.v1"]
        {
            let error = ResourceIdentifier::new("", resource, "ns", "name").unwrap_err();
            assert_eq!(error, IdentifierError::Resource(resource.to_owned()));
        }
    }

    #[test]
    fn an_object_is_named_as_a_user_would() {
        let group = "snapshot.storage.k8s.io";
        let content = ResourceIdentifier::new(group, "volumesnapshotcontents", "", "c").unwrap();
        assert_eq!(content.to_string(), "volumesnapshotcontents.snapshot.storage.k8s.io c");
        let pod = ResourceIdentifier::new("", "pods", "shop", "web-0").unwrap();
        assert_eq!(pod.to_string(), "pods shop/web-0");
        assert!(ResourceIdentifier::new("", "pods", "shop", "").is_err());
    }
}
