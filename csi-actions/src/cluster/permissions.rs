//! What the actions ask of the API server: the one list from which the rights of the server's account are checked and
//! written. A test holds every request of the other tests against it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::resource::{
    CLAIMS, CLASSES, CONFIG_MAPS, CONTENTS, DRIVERS, EVENTS, GROUP_CLASSES, GROUP_CONTENTS, GROUPS, NODES,
    PODS, Resource, SNAPSHOTS, STORAGE_CLASSES, VOLUMES,
};

/// What may be done with a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permission {
    /// The resource.
    pub resource: Resource,
    /// E.g. `status`; "" for the object itself.
    pub subresource: &'static str,
    /// As the API server calls them.
    pub verbs: &'static [&'static str],
    /// What goes wrong without it.
    pub without: &'static str,
    /// Whether a backup fails without it.
    pub fails_backup: bool,
}

const DELETION: &str = "snapshots stay in the storage when their backup is deleted";
const RESTORE: &str = "claims can't be restored from snapshots";
const GROUP: &str = "claims that are to be cut at one moment have no snapshot";
const NO_DRIVER: &str = "a driver that is not installed is found out late";

/// All of it, in every namespace. Secrets are never read.
pub const PERMISSIONS: &[Permission] = &[
    for_backup(VOLUMES, &["get"]),
    for_backup(CONFIG_MAPS, &["get"]),
    for_backup(PODS, &["list"]),
    for_backup(STORAGE_CLASSES, &["get"]),
    for_backup(CLASSES, &["list"]),
    for_backup(SNAPSHOTS, &["create", "delete", "get", "list", "patch", "watch"]),
    for_backup(CONTENTS, &["delete", "get", "list", "patch", "watch"]),
    for_more(CLAIMS, &["get"], RESTORE),
    for_more(CLASSES, &["get"], RESTORE),
    for_more(VOLUMES, &["patch"], "the new volume of a claim is not retained where the old one was"),
    for_more(CONTENTS, &["create"], DELETION),
    Permission { subresource: "status", ..for_more(CONTENTS, &["patch"], DELETION) },
    for_more(CLAIMS, &["list"], GROUP),
    for_more(GROUPS, &["create", "delete", "get", "list", "patch", "watch"], GROUP),
    for_more(GROUP_CONTENTS, &["create", "delete", "get", "list", "patch", "watch"], GROUP),
    Permission { subresource: "status", ..for_more(GROUP_CONTENTS, &["patch"], GROUP) },
    for_more(GROUP_CLASSES, &["list"], GROUP),
    for_more(DRIVERS, &["get"], NO_DRIVER),
    for_more(NODES, &["list"], NO_DRIVER),
    for_more(EVENTS, &["create"], "kubectl describe does not tell what became of a snapshot"),
];

const fn for_backup(resource: Resource, verbs: &'static [&'static str]) -> Permission {
    let without = "no snapshot can be taken";
    Permission { resource, subresource: "", verbs, without, fails_backup: true }
}

const fn for_more(resource: Resource, verbs: &'static [&'static str], without: &'static str) -> Permission {
    Permission { resource, subresource: "", verbs, without, fails_backup: false }
}

impl Permission {
    /// The resource as a rule of access names it.
    pub fn resource_name(&self) -> String {
        match self.subresource {
            "" => self.resource.plural.to_owned(),
            part => format!("{}/{part}", self.resource.plural),
        }
    }
}

/// Whether the list has this request.
pub fn lists(verb: &str, group: &str, resource: &str, subresource: &str) -> bool {
    PERMISSIONS.iter().any(|each| {
        each.resource.group == group
            && each.resource.plural == resource
            && each.subresource == subresource
            && each.verbs.contains(&verb)
    })
}

/// A `ClusterRole` of the list, as YAML: a rule for the resources of a group that need the same verbs.
pub fn cluster_role() -> String {
    let mut verbs_of: BTreeMap<(&str, String), BTreeSet<&str>> = BTreeMap::new();
    for each in PERMISSIONS {
        verbs_of.entry((each.resource.group, each.resource_name())).or_default().extend(each.verbs);
    }
    let mut rules: BTreeMap<(&str, BTreeSet<&str>), Vec<String>> = BTreeMap::new();
    for ((group, resource), verbs) in verbs_of {
        rules.entry((group, verbs)).or_default().push(format!("{resource:?}"));
    }
    let mut text = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: csi-actions\nrules:\n".to_owned();
    for ((group, verbs), resources) in rules {
        let verbs: Vec<String> = verbs.iter().map(|verb| format!("{verb:?}")).collect();
        let _ = writeln!(text, "  - apiGroups: [{group:?}]");
        let _ = writeln!(text, "    resources: [{}]", resources.join(", "));
        let _ = writeln!(text, "    verbs: [{}]", verbs.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_are_not_listed_are_told_from_those_that_are() {
        let snapshots = "snapshot.storage.k8s.io";
        assert!(lists("watch", snapshots, "volumesnapshots", ""));
        assert!(lists("patch", snapshots, "volumesnapshotcontents", "status"));
        assert!(!lists("patch", snapshots, "volumesnapshots", "status"));
        assert!(!lists("get", "", "secrets", ""), "no Secret is ever read");
        assert!(!lists("delete", "", "persistentvolumeclaims", ""));
    }

    #[test]
    fn the_role_has_every_entry_once_and_no_wildcard() {
        let role = cluster_role();
        for each in PERMISSIONS {
            assert_eq!(role.matches(&format!("{:?}", each.resource_name())).count(), 1, "{role}");
        }
        assert!(!role.contains('*'));
        assert!(
            role.contains("  - apiGroups: [\"\"]\n    resources: [\"events\"]\n    verbs: [\"create\"]\n"),
            "{role}"
        );
    }
}
