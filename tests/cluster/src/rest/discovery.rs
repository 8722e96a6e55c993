//! `/version`, and which groups, versions and resources there are.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::error::ApiError;
use crate::kind::{Kind, Kinds};

const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];

pub(crate) fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": "v1.36.3", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "", "platform": "linux/amd64",
    })
}

pub(crate) fn core(address: &str) -> Value {
    json!({
        "kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

pub(crate) fn groups(kinds: &Kinds) -> Value {
    let groups: Value = versions(kinds).iter().map(|(name, versions)| described(name, versions)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

pub(crate) fn group(kinds: &Kinds, name: &str) -> Result<Value, ApiError> {
    let versions = versions(kinds);
    let mut group = described(name, versions.get(name).ok_or(ApiError::PageNotFound)?);
    group["kind"] = "APIGroup".into();
    group["apiVersion"] = "v1".into();
    Ok(group)
}

pub(crate) fn resources(kinds: &Kinds, group: &str, version: &str) -> Result<Value, ApiError> {
    let served = |kind: &&_| {
        let kind: &Kind = kind;
        kind.resource.group == group && kind.versions.iter().any(|served| served == version)
    };
    let kinds: Vec<&Kind> = kinds.iter().map(AsRef::as_ref).filter(served).collect();
    let group_version = kinds.first().ok_or(ApiError::PageNotFound)?.api_version_in(version);
    let mut resources = Vec::new();
    for kind in kinds {
        let mut entry = json!({
            "name": kind.resource.resource, "singularName": kind.singular, "namespaced": kind.namespaced,
            "kind": kind.kind, "verbs": VERBS,
        });
        if !kind.short.is_empty() {
            entry["shortNames"] = kind.short.clone().into();
        }
        resources.push(entry);
        if kind.status {
            resources.push(json!({
                "name": format!("{}/status", kind.resource.resource), "singularName": "",
                "namespaced": kind.namespaced, "kind": kind.kind, "verbs": STATUS_VERBS,
            }));
        }
    }
    Ok(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources,
    }))
}

/// The versions of each group but the core, preferred ones first.
fn versions(kinds: &Kinds) -> BTreeMap<&str, Vec<&str>> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for kind in kinds.iter().filter(|kind| !kind.resource.group.is_empty()) {
        let known = groups.entry(&kind.resource.group).or_default();
        for version in &kind.versions {
            if !known.contains(&version.as_str()) {
                known.push(version);
            }
        }
    }
    // v1 before v1beta2 before v2alpha1: by stability first, then by number, the highest first.
    for versions in groups.values_mut() {
        versions.sort_by_key(|version| std::cmp::Reverse(rank(version)));
    }
    groups
}

fn rank(version: &str) -> (u8, u32, u32) {
    let number = |text: &str| text.parse().unwrap_or_default();
    let rest = version.trim_start_matches('v');
    for (stability, word) in [(1, "alpha"), (2, "beta")] {
        if let Some((major, minor)) = rest.split_once(word) {
            return (stability, number(major), number(minor));
        }
    }
    (3, number(rest), 0)
}

fn described(name: &str, versions: &[&str]) -> Value {
    let entries: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "versions": entries, "preferredVersion": entries.first()})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn groups_name_their_preferred_version() {
        let kinds = kinds::initial();
        let velero = group(&kinds, "velero.io").unwrap();
        assert_eq!(velero["preferredVersion"]["groupVersion"], "velero.io/v1");
        assert_eq!(velero["versions"][1]["version"], "v2alpha1");
        let all = group(&kinds, "groupsnapshot.storage.k8s.io").unwrap();
        let names: Vec<&str> = all["versions"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|version| version["version"].as_str())
            .collect();
        assert_eq!(names, ["v1", "v1beta2", "v1beta1"]);
        assert!(group(&kinds, "nosuch").is_err());
    }

    #[test]
    fn resources_of_a_version_with_their_status() {
        let list = resources(&kinds::initial(), "snapshot.storage.k8s.io", "v1").unwrap();
        let names: Vec<&str> =
            list["resources"].as_array().unwrap().iter().filter_map(|entry| entry["name"].as_str()).collect();
        assert_eq!(
            names,
            [
                "volumesnapshotclasses",
                "volumesnapshotcontents",
                "volumesnapshotcontents/status",
                "volumesnapshots",
                "volumesnapshots/status",
            ]
        );
        assert!(resources(&kinds::initial(), "velero.io", "v3").is_err());
    }
}
