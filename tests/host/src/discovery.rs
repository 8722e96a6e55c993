//! The resources that a cluster serves, and how their names are understood.

use crate::client::group_resource;

/// A resource in its group's preferred version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resource {
    /// Empty for the core group.
    pub group: String,
    /// The version in which it is listed.
    pub version: String,
    /// As in `PersistentVolumeClaim`.
    pub kind: String,
    /// As in `persistentvolumeclaims`.
    pub plural: String,
    /// As in `persistentvolumeclaim`.
    pub singular: String,
    /// As in `pvc`.
    pub short_names: Vec<String>,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// What can be done with it.
    pub verbs: Vec<String>,
}

impl Resource {
    /// `plural` or `plural.group`.
    pub fn group_resource(&self) -> String {
        group_resource(&self.group, &self.plural)
    }

    /// `version` or `group/version`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The path of its objects at the API server.
    pub(crate) fn path(&self, namespace: &str) -> String {
        let root = if self.group.is_empty() { "api" } else { "apis" };
        let namespace = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
        format!("/{root}/{}{namespace}/{}", self.api_version(), self.plural)
    }
}

/// All resources, in the order in which a backup goes through them.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    resources: Vec<Resource>,
}

impl Discovery {
    /// Of the resources as the server lists them. Those that can't be backed up and restored are left out; the group
    /// `extensions` goes last; in the core group pods, claims and volumes go first.
    pub fn new(mut resources: Vec<Resource>) -> Self {
        const NEEDED: [&str; 4] = ["list", "create", "get", "delete"];
        resources.retain(|resource| {
            let can = |verb: &&str| resource.verbs.iter().any(|one| one == verb);
            !resource.plural.contains('/') && NEEDED.iter().all(can)
        });
        resources.sort_by_key(|resource| resource.group == "extensions");
        let first: Vec<Resource> =
            resources.iter().filter(|resource| resource.group.is_empty()).cloned().collect();
        let mut core = first;
        core.sort_by_key(|resource| match resource.plural.as_str() {
            "pods" => 0,
            "persistentvolumeclaims" => 1,
            "persistentvolumes" => 2,
            _ => 3,
        });
        // The core group keeps its place among the groups.
        let mut core = core.into_iter();
        for resource in resources.iter_mut().filter(|resource| resource.group.is_empty()) {
            if let Some(next) = core.next() {
                *resource = next;
            }
        }
        Self { resources }
    }

    /// All of them, in order.
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// The resource of exactly this group and plural.
    pub fn exact(&self, group: &str, plural: &str) -> Option<&Resource> {
        self.resources.iter().find(|resource| resource.group == group && resource.plural == plural)
    }

    /// The resource that a user means by `pods`, `po`, `pod` or `deploy.apps`; the group may be shortened.
    pub fn resolve(&self, text: &str) -> Option<&Resource> {
        let (name, group) = match text.split_once('.') {
            Some((name, group)) => (name, Some(group)),
            None => (text, None),
        };
        let is_named = |resource: &&Resource| {
            resource.plural == name
                || resource.singular == name
                || resource.short_names.iter().any(|short| short == name)
        };
        let in_group = |exact: bool| {
            move |resource: &&Resource| match group {
                None => true,
                Some(group) if exact => resource.group == group,
                Some(group) => resource.group.starts_with(group),
            }
        };
        let named = || self.resources.iter().filter(is_named);
        named().find(in_group(true)).or_else(|| named().find(in_group(false)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Core resources of storage, and a few others.
    pub(crate) fn discovery() -> Discovery {
        let resource = |group: &str, kind: &str, plural: &str, short: &str, namespaced| Resource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            short_names: if short.is_empty() { Vec::new() } else { vec![short.to_owned()] },
            namespaced,
            verbs: ["create", "delete", "get", "list", "watch"].map(str::to_owned).to_vec(),
        };
        Discovery::new(vec![
            resource("extensions", "Deployment", "deployments", "deploy", true),
            resource("", "ConfigMap", "configmaps", "cm", true),
            resource("", "Namespace", "namespaces", "ns", false),
            resource("", "PersistentVolume", "persistentvolumes", "pv", false),
            resource("", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", true),
            resource("", "Pod", "pods", "po", true),
            resource("", "Secret", "secrets", "", true),
            resource("apps", "Deployment", "deployments", "deploy", true),
            resource("snapshot.storage.k8s.io", "VolumeSnapshot", "volumesnapshots", "vs", true),
            Resource { verbs: vec!["create".to_owned()], ..resource("", "Binding", "bindings", "", true) },
        ])
    }

    #[test]
    fn the_order_of_a_backup() {
        let discovery = discovery();
        let order: Vec<_> = discovery.resources().iter().map(Resource::group_resource).collect();
        assert_eq!(
            order,
            [
                "pods",
                "persistentvolumeclaims",
                "persistentvolumes",
                "configmaps",
                "namespaces",
                "secrets",
                "deployments.apps",
                "volumesnapshots.snapshot.storage.k8s.io",
                "deployments.extensions",
            ]
        );
    }

    #[test]
    fn names_of_resources() {
        let discovery = discovery();
        let table = [
            ("po", Some("pods")),
            ("pod", Some("pods")),
            ("Pod", None),
            ("deploy.apps", Some("deployments.apps")),
            ("deployments.ext", Some("deployments.extensions")),
            ("vs.snapshot", Some("volumesnapshots.snapshot.storage.k8s.io")),
            ("pods.apps", None),
            ("bindings", None),
        ];
        for (text, expected) in table {
            let found = discovery.resolve(text).map(Resource::group_resource);
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn paths_at_the_server() {
        let discovery = discovery();
        let path = |text: &str, namespace: &str| discovery.resolve(text).unwrap().path(namespace);
        assert_eq!(path("pods", "a"), "/api/v1/namespaces/a/pods");
        assert_eq!(path("vs", ""), "/apis/snapshot.storage.k8s.io/v1/volumesnapshots");
    }
}
