//! Names of objects and selections of them, as replies hold them.

use std::fmt;

use serde::{Deserialize, Serialize};
use velero_plugin::client::proto::generated as wire;

/// One object of the cluster. Velero's files spell the keys with capitals, and read them in any case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ResourceIdentifier {
    /// The API group; empty for the core group.
    #[serde(alias = "group")]
    pub group: String,
    /// The lower-case plural.
    #[serde(alias = "resource")]
    pub resource: String,
    /// Empty for an object of the cluster.
    #[serde(alias = "namespace")]
    pub namespace: String,
    /// The object's name.
    #[serde(alias = "name")]
    pub name: String,
}

impl ResourceIdentifier {
    /// As in `deployments.apps`, the core group left out.
    pub fn group_resource(&self) -> String {
        group_resource(&self.group, &self.resource)
    }

    pub(crate) fn from_wire(wire: wire::ResourceIdentifier) -> Self {
        Self { group: wire.group, resource: wire.resource, namespace: wire.namespace, name: wire.name }
    }

    pub(crate) fn list(wire: Vec<wire::ResourceIdentifier>) -> Vec<Self> {
        wire.into_iter().map(Self::from_wire).collect()
    }

    pub(crate) fn to_wire(&self) -> wire::ResourceIdentifier {
        let Self { group, resource, namespace, name } = self.clone();
        wire::ResourceIdentifier { group, resource, namespace, name }
    }
}

impl fmt::Display for ResourceIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.group_resource())?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// `resource` or `resource.group`.
pub(crate) fn group_resource(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

/// What `AppliesTo` answered; an absent message is everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Selection {
    /// Globs; empty for all.
    pub included_namespaces: Vec<String>,
    /// Globs that win.
    pub excluded_namespaces: Vec<String>,
    /// Resources in any form that discovery resolves; empty for all.
    pub included_resources: Vec<String>,
    /// Resources that are left out.
    pub excluded_resources: Vec<String>,
    /// A label selector in Kubernetes' syntax.
    pub label_selector: String,
}

impl Selection {
    pub(crate) fn from_wire(wire: Option<wire::ResourceSelector>) -> Self {
        let wire = wire.unwrap_or_default();
        Self {
            included_namespaces: wire.included_namespaces,
            excluded_namespaces: wire.excluded_namespaces,
            included_resources: wire.included_resources,
            excluded_resources: wire.excluded_resources,
            label_selector: wire.selector,
        }
    }
}
