//! What a backup's spec includes and excludes, and the labels that it asks for.

use crate::discovery::{Discovery, Resource};
use crate::model::Backup;
use crate::select::{IncludesExcludes, LabelError, Labels, resolved};

/// Why a backup is not valid. The first words are the server's own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each says what it is in its text")]
pub enum FilterError {
    #[error("Invalid {what} lists: excludes list cannot contain an item in the includes list: {name}")]
    Overlap { what: &'static str, name: String },
    #[error(
        "encountered labelSelector as well as orLabelSelectors in backup spec, only one can be specified"
    )]
    BothSelectors,
    #[error(
        "include-resources, exclude-resources and include-cluster-resources are old filter parameters.\ninclude-cluster-scoped-resources, exclude-cluster-scoped-resources, include-namespace-scoped-resources and exclude-namespace-scoped-resources are new filter parameters.\nThey cannot be used together"
    )]
    BothFamilies,
    #[error("spec.{0} is not played by this host")]
    Unsupported(&'static str),
    #[error(transparent)]
    Labels(#[from] LabelError),
}

/// The filters of one backup.
#[derive(Debug, Clone)]
pub(crate) struct Filters {
    pub(crate) namespaces: IncludesExcludes,
    resources: Resources,
    /// Items match one of these; everything matches where there is none.
    selectors: Vec<Labels>,
}

/// The two families of lists; one backup uses one of them.
#[derive(Debug, Clone)]
enum Resources {
    /// `includedResources`, `excludedResources` and `includeClusterResources`.
    Global { lists: IncludesExcludes, include_cluster: Option<bool> },
    /// A pair of lists for resources in namespaces and one for those of the cluster; also used when a spec says
    /// nothing at all.
    Scoped { namespaced: IncludesExcludes, cluster: IncludesExcludes },
}

/// The lists of the newer family, inclusions before exclusions.
const SCOPED: [&str; 4] = [
    "includedNamespaceScopedResources",
    "excludedNamespaceScopedResources",
    "includedClusterScopedResources",
    "excludedClusterScopedResources",
];
/// Snapshots are archived only where an action names them.
const SNAPSHOTS: &str = "volumesnapshots.snapshot.storage.k8s.io";
const CONTENTS: &str = "volumesnapshotcontents.snapshot.storage.k8s.io";

impl Filters {
    /// Whether a spec uses the older lists.
    fn uses_global(backup: &Backup) -> bool {
        let lists = ["includedResources", "excludedResources"];
        backup.spec("includeClusterResources").is_some()
            || lists.iter().any(|list| !backup.list(list).is_empty())
    }

    /// What is wrong with the lists of a spec, before anything is run.
    pub(crate) fn validate(backup: &Backup) -> Vec<FilterError> {
        let mut errors = Vec::new();
        if Self::uses_global(backup) && SCOPED.iter().any(|list| !backup.list(list).is_empty()) {
            errors.push(FilterError::BothFamilies);
        }
        for (what, includes, excludes) in [
            ("included/excluded resource", "includedResources", "excludedResources"),
            ("included/excluded namespace", "includedNamespaces", "excludedNamespaces"),
            ("namespace-scoped included/excluded resource", SCOPED[0], SCOPED[1]),
            ("cluster-scoped included/excluded resource", SCOPED[2], SCOPED[3]),
        ] {
            let included = backup.list(includes);
            let both =
                backup.list(excludes).into_iter().filter(|name| name != "*" && included.contains(name));
            errors.extend(both.map(|name| FilterError::Overlap { what, name }));
        }
        if backup.spec("labelSelector").is_some() && backup.spec("orLabelSelectors").is_some() {
            errors.push(FilterError::BothSelectors);
        }
        if backup.spec("resourcePolicy").is_some() {
            errors.push(FilterError::Unsupported("resourcePolicy"));
        }
        errors
    }

    /// Excludes what the server itself keeps out since 1.17; it shows in the spec.
    pub(crate) fn exclude_snapshots(backup: &mut Backup) {
        if Self::uses_global(backup) {
            backup.exclude("includedResources", "excludedResources", &[SNAPSHOTS, CONTENTS]);
        } else {
            backup.exclude(SCOPED[0], SCOPED[1], &[SNAPSHOTS]);
            backup.exclude(SCOPED[2], SCOPED[3], &[CONTENTS]);
        }
    }

    pub(crate) fn new(backup: &Backup, discovery: &Discovery) -> Result<Self, FilterError> {
        let mut selectors = Vec::new();
        let or = backup.spec("orLabelSelectors").and_then(serde_json::Value::as_array);
        for selector in backup.spec("labelSelector").into_iter().chain(or.into_iter().flatten()) {
            selectors.push(Labels::of_object(selector)?);
        }
        let lists = |includes: &str, excludes: &str| {
            IncludesExcludes::new(
                resolved(&backup.list(includes), discovery),
                resolved(&backup.list(excludes), discovery),
            )
        };
        let resources = if Self::uses_global(backup) {
            let include_cluster = backup.spec("includeClusterResources").and_then(serde_json::Value::as_bool);
            Resources::Global { lists: lists("includedResources", "excludedResources"), include_cluster }
        } else {
            Resources::Scoped {
                namespaced: lists(SCOPED[0], SCOPED[1]),
                cluster: lists(SCOPED[2], SCOPED[3]),
            }
        };
        Ok(Self {
            namespaces: IncludesExcludes::new(
                backup.list("includedNamespaces"),
                backup.list("excludedNamespaces"),
            ),
            resources,
            selectors,
        })
    }

    /// Whether objects of the resource are collected. Objects of the cluster are, by default, only in a backup of
    /// all there is; others come along when an action names them.
    pub(crate) fn includes(&self, resource: &Resource) -> bool {
        let name = resource.group_resource();
        let is_namespaces = name == "namespaces";
        match &self.resources {
            Resources::Global { lists, include_cluster } => {
                let by_default = self.namespaces.includes_everything() || is_namespaces;
                (resource.namespaced || include_cluster.unwrap_or(by_default)) && lists.includes(&name)
            }
            Resources::Scoped { namespaced, .. } if resource.namespaced => namespaced.includes(&name),
            Resources::Scoped { namespaced, cluster } => {
                let all = self.namespaces.includes_everything()
                    && namespaced.includes_everything()
                    && cluster.is_unset();
                let named = !cluster.included().is_empty() && cluster.includes(&name);
                !cluster.excludes(&name) && (all || named || is_namespaces)
            }
        }
    }

    /// Whether an object of the cluster is kept out even where an action names it.
    pub(crate) fn excludes(&self, resource: &Resource) -> bool {
        let name = resource.group_resource();
        match &self.resources {
            Resources::Global { lists, include_cluster } => {
                let kept_out = match include_cluster {
                    Some(include) => !include,
                    None => !lists.includes(&name),
                };
                lists.excludes(&name) || (!resource.namespaced && kept_out)
            }
            Resources::Scoped { namespaced, .. } if resource.namespaced => namespaced.excludes(&name),
            Resources::Scoped { cluster, .. } => cluster.excludes(&name),
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

    fn backup(spec: &Value) -> Backup {
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
            (
                json!({"includedClusterScopedResources": ["pv"]}),
                [(true, false), (true, false), (true, false)],
            ),
            (
                json!({"excludedClusterScopedResources": ["pv"]}),
                [(true, false), (true, false), (false, true)],
            ),
            (
                json!({"excludedNamespaceScopedResources": ["po"]}),
                [(false, true), (true, false), (false, false)],
            ),
        ];
        let discovery = discovery();
        for (spec, expected) in table {
            let filters = Filters::new(&backup(&spec), &discovery).unwrap();
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
            let errors = Filters::validate(&backup(&spec));
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), [text]);
        }
    }

    #[test]
    fn the_server_keeps_snapshots_out_itself() {
        let table = [
            (
                json!({"includedClusterScopedResources": [CONTENTS]}),
                json!({"includedClusterScopedResources": [], "excludedClusterScopedResources": [CONTENTS],
                    "excludedNamespaceScopedResources": [SNAPSHOTS]}),
            ),
            (
                json!({"excludedResources": ["secrets", SNAPSHOTS]}),
                json!({"excludedResources": ["secrets", SNAPSHOTS, CONTENTS]}),
            ),
        ];
        for (spec, expected) in table {
            let mut backup = backup(&spec);
            Filters::exclude_snapshots(&mut backup);
            assert_eq!(backup.object()["spec"], expected);
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
            let filters = Filters::new(&backup(&spec), &discovery()).unwrap();
            assert_eq!(filters.namespaces_to_list(), expected, "{spec}");
        }
    }
}
