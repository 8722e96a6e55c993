//! The resources that the actions use, so that no discovery is needed.

/// A resource of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resource {
    /// The API group, "" for the core group.
    pub group: &'static str,
    /// The version in it.
    pub version: &'static str,
    /// The plural.
    pub plural: &'static str,
}

/// The group of snapshots.
pub const SNAPSHOT_GROUP: &str = "snapshot.storage.k8s.io";
/// The group of snapshots of several volumes at once.
pub const GROUP_SNAPSHOT_GROUP: &str = "groupsnapshot.storage.k8s.io";

/// Snapshots of volumes.
pub const SNAPSHOTS: Resource = Resource { group: SNAPSHOT_GROUP, version: "v1", plural: "volumesnapshots" };
/// What the snapshots are in the storage.
pub const CONTENTS: Resource =
    Resource { group: SNAPSHOT_GROUP, version: "v1", plural: "volumesnapshotcontents" };
/// How snapshots are taken.
pub const CLASSES: Resource =
    Resource { group: SNAPSHOT_GROUP, version: "v1", plural: "volumesnapshotclasses" };
/// Where a user writes the volume policies.
pub const CONFIG_MAPS: Resource = Resource { group: "", version: "v1", plural: "configmaps" };
/// Pods.
pub const PODS: Resource = Resource { group: "", version: "v1", plural: "pods" };
/// Snapshots of several volumes at once. Their version is the one that [`GroupApi`](crate::group_api::GroupApi) found.
pub const GROUPS: Resource =
    Resource { group: GROUP_SNAPSHOT_GROUP, version: "v1", plural: "volumegroupsnapshots" };
/// What the groups are in the storage.
pub const GROUP_CONTENTS: Resource =
    Resource { group: GROUP_SNAPSHOT_GROUP, version: "v1", plural: "volumegroupsnapshotcontents" };
/// How groups are taken.
pub const GROUP_CLASSES: Resource =
    Resource { group: GROUP_SNAPSHOT_GROUP, version: "v1", plural: "volumegroupsnapshotclasses" };
/// Claims for volumes.
pub const CLAIMS: Resource = Resource { group: "", version: "v1", plural: "persistentvolumeclaims" };
/// Persistent volumes.
pub const VOLUMES: Resource = Resource { group: "", version: "v1", plural: "persistentvolumes" };
/// Storage classes.
pub const STORAGE_CLASSES: Resource =
    Resource { group: "storage.k8s.io", version: "v1", plural: "storageclasses" };
/// The drivers that are installed, as far as they say so.
pub const DRIVERS: Resource = Resource { group: "storage.k8s.io", version: "v1", plural: "csidrivers" };
/// The drivers on each node.
pub const NODES: Resource = Resource { group: "storage.k8s.io", version: "v1", plural: "csinodes" };
/// What happened to objects, for their users.
pub const EVENTS: Resource = Resource { group: "", version: "v1", plural: "events" };
/// Backups of Velero.
pub const BACKUPS: Resource = Resource { group: "velero.io", version: "v1", plural: "backups" };
/// Among others the server itself.
pub const DEPLOYMENTS: Resource = Resource { group: "apps", version: "v1", plural: "deployments" };
/// Questions about what an account may do; they are answered and not kept.
pub const ACCESS_REVIEWS: Resource =
    Resource { group: "authorization.k8s.io", version: "v1", plural: "subjectaccessreviews" };
/// The same about the account that asks.
pub const OWN_ACCESS_REVIEWS: Resource =
    Resource { group: "authorization.k8s.io", version: "v1", plural: "selfsubjectaccessreviews" };

impl Resource {
    /// The path of the collection in `namespace`, "" for that of the whole cluster.
    pub(super) fn path(self, namespace: &str) -> String {
        let Self { group, version, plural } = self;
        let root =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        if namespace.is_empty() {
            format!("{root}/{plural}")
        } else {
            format!("{root}/namespaces/{namespace}/{plural}")
        }
    }

    /// An object of it, as a user would name it.
    pub fn object(self, namespace: &str, name: &str) -> String {
        let plural = self.plural;
        if namespace.is_empty() { format!("{plural} {name}") } else { format!("{plural} {namespace}/{name}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_core_grouped_and_namespaced_resources() {
        assert_eq!(VOLUMES.path(""), "/api/v1/persistentvolumes");
        assert_eq!(CONTENTS.path(""), "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents");
        assert_eq!(SNAPSHOTS.path("a"), "/apis/snapshot.storage.k8s.io/v1/namespaces/a/volumesnapshots");
    }
}
