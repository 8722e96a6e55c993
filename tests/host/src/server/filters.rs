//! What a backup's spec includes and excludes, and the labels that it asks for.

use crate::discovery::{Discovery, Resource};
use crate::model::Backup;
use crate::select::{IncludesExcludes, LabelError, Labels, resolved};

/// Why a backup is not valid. The first words are the server's own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each says what it is in its text")]
pub enum FilterError {
    #[error(
        "Invalid included/excluded {what} lists: excludes list cannot contain an item in the includes list: {name}"
    )]
    Overlap { what: &'static str, name: String },
    #[error(
        "encountered labelSelector as well as orLabelSelectors in backup spec, only one can be specified"
    )]
    BothSelectors,
    #[error("spec.{0} is not played by this host: use the older filters")]
    Unsupported(&'static str),
    #[error(transparent)]
    Labels(#[from] LabelError),
}

/// The filters of one backup.
#[derive(Debug, Clone)]
pub(crate) struct Filters {
    pub(crate) namespaces: IncludesExcludes,
    resources: IncludesExcludes,
    include_cluster_resources: Option<bool>,
    /// Items match one of these; everything matches where there is none.
    selectors: Vec<Labels>,
}

impl Filters {
    /// What is wrong with the lists of a spec, before anything is run.
    pub(crate) fn validate(backup: &Backup) -> Vec<FilterError> {
        let mut errors = Vec::new();
        for (what, includes, excludes) in [
            ("resource", "includedResources", "excludedResources"),
            ("namespace", "includedNamespaces", "excludedNamespaces"),
        ] {
            let included = backup.list(includes);
            let both =
                backup.list(excludes).into_iter().filter(|name| name != "*" && included.contains(name));
            errors.extend(both.map(|name| FilterError::Overlap { what, name }));
        }
        if backup.spec("labelSelector").is_some() && backup.spec("orLabelSelectors").is_some() {
            errors.push(FilterError::BothSelectors);
        }
        for field in [
            "includedClusterScopedResources",
            "excludedClusterScopedResources",
            "includedNamespaceScopedResources",
            "excludedNamespaceScopedResources",
            "resourcePolicy",
        ] {
            if backup.spec(field).is_some() {
                errors.push(FilterError::Unsupported(field));
            }
        }
        errors
    }

    pub(crate) fn new(backup: &Backup, discovery: &Discovery) -> Result<Self, FilterError> {
        let mut selectors = Vec::new();
        let or = backup.spec("orLabelSelectors").and_then(serde_json::Value::as_array);
        for selector in backup.spec("labelSelector").into_iter().chain(or.into_iter().flatten()) {
            selectors.push(Labels::of_object(selector)?);
        }
        Ok(Self {
            namespaces: IncludesExcludes::new(
                backup.list("includedNamespaces"),
                backup.list("excludedNamespaces"),
            ),
            resources: IncludesExcludes::new(
                resolved(&backup.list("includedResources"), discovery),
                resolved(&backup.list("excludedResources"), discovery),
            ),
            include_cluster_resources: backup
                .spec("includeClusterResources")
                .and_then(serde_json::Value::as_bool),
            selectors,
        })
    }

    /// Whether objects of the resource are collected. Objects of the cluster are, by default, only in a backup of
    /// all namespaces; others come along when an action names them.
    pub(crate) fn includes(&self, resource: &Resource) -> bool {
        if !resource.namespaced {
            let by_default =
                self.namespaces.includes_everything() || resource.group_resource() == "namespaces";
            if !self.include_cluster_resources.unwrap_or(by_default) {
                return false;
            }
        }
        self.resources.includes(&resource.group_resource())
    }

    /// Whether an object of the cluster is kept out even where an action names it.
    pub(crate) fn excludes(&self, resource: &Resource) -> bool {
        let name = resource.group_resource();
        if self.resources.excludes(&name) {
            return true;
        }
        !resource.namespaced
            && match self.include_cluster_resources {
                Some(false) => true,
                Some(true) => false,
                None => !self.resources.includes(&name),
            }
    }

    /// The selectors to list with, one after the other.
    pub(crate) fn selectors(&self) -> Vec<Labels> {
        if self.selectors.is_empty() { vec![Labels::default()] } else { self.selectors.clone() }
    }

    /// Whether labels are asked for at all.
    pub(crate) fn asks_for_labels(&self) -> bool {
        !self.selectors.is_empty()
    }

    /// The namespaces to list in; one empty name for all.
    pub(crate) fn namespaces_to_list(&self) -> Vec<String> {
        let included = self.namespaces.included();
        let has_glob = |name: &String| name.contains(['*', '?', '[', '{']);
        if included.is_empty() || included.iter().any(has_glob) {
            return vec![String::new()];
        }
        included.iter().filter(|name| self.namespaces.includes(name)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::tests::discovery;
    use serde_json::{Value, json};

    fn backup(spec: Value) -> Backup {
        Backup::new(json!({"metadata": {"name": "b"}, "spec": spec}), "u").unwrap()
    }

    #[test]
    fn which_resources_are_collected_and_which_are_kept_out() {
        // The spec, then for pods, namespaces and volumes: whether collected, and whether kept out when named.
        let table = [
            (json!({}), [(true, false), (true, false), (true, false)]),
            (json!({"includedNamespaces": ["a"]}), [(true, false), (true, false), (false, false)]),
            (json!({"includedResources": ["po"]}), [(true, false), (false, true), (false, true)]),
            (json!({"includeClusterResources": false}), [(true, false), (false, true), (false, true)]),
            (
                json!({"includedNamespaces": ["a"], "includeClusterResources": true}),
                [(true, false), (true, false), (true, false)],
            ),
            (json!({"excludedResources": ["pv"]}), [(true, false), (true, false), (false, true)]),
        ];
        let discovery = discovery();
        for (spec, expected) in table {
            let filters = Filters::new(&backup(spec.clone()), &discovery).unwrap();
            let found = ["pods", "namespaces", "persistentvolumes"].map(|name| {
                let resource = discovery.exact("", name).unwrap();
                (filters.includes(resource), filters.excludes(resource))
            });
            assert_eq!(found, expected, "{spec}");
        }
    }

    #[test]
    fn specs_that_are_refused() {
        let table = [
            (
                json!({"includedResources": ["foo"], "excludedResources": ["foo"]}),
                "Invalid included/excluded resource lists: excludes list cannot contain an item in the includes list: foo",
            ),
            (
                json!({"includedNamespaces": ["foo"], "excludedNamespaces": ["foo"]}),
                "Invalid included/excluded namespace lists: excludes list cannot contain an item in the includes list: foo",
            ),
            (
                json!({"labelSelector": {}, "orLabelSelectors": []}),
                "encountered labelSelector as well as orLabelSelectors in backup spec, only one can be specified",
            ),
        ];
        for (spec, text) in table {
            let errors = Filters::validate(&backup(spec));
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), [text]);
        }
    }

    #[test]
    fn namespaces_are_listed_one_by_one_unless_there_is_a_glob() {
        for (spec, expected) in [
            (json!({}), vec![""]),
            (json!({"includedNamespaces": ["*"]}), vec![""]),
            (json!({"includedNamespaces": ["a", "b"], "excludedNamespaces": ["b*"]}), vec!["a"]),
            (json!({"includedNamespaces": ["a", "t-*"]}), vec![""]),
        ] {
            let filters = Filters::new(&backup(spec.clone()), &discovery()).unwrap();
            assert_eq!(filters.namespaces_to_list(), expected, "{spec}");
        }
    }
}
