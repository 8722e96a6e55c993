//! What an action asked for, resolved through discovery.

use serde_json::Value;

use super::globs::IncludesExcludes;
use super::labels::{LabelError, Labels};
use crate::client::Selection;
use crate::discovery::{Discovery, Resource};

/// A selection that items can be held against.
#[derive(Debug, Clone, Default)]
pub struct ResolvedSelection {
    resources: IncludesExcludes,
    namespaces: IncludesExcludes,
    labels: Labels,
}

impl ResolvedSelection {
    /// Resolves the resources of `selection`. One that discovery does not know is kept as text, so that it matches
    /// nothing rather than everything; `*` among the exclusions is not looked at.
    ///
    /// # Errors
    ///
    /// When the label selector is none.
    pub fn new(selection: &Selection, discovery: &Discovery) -> Result<Self, LabelError> {
        let included = resolved(&selection.included_resources, discovery);
        let excluded: Vec<String> =
            selection.excluded_resources.iter().filter(|one| *one != "*").cloned().collect();
        let excluded = resolved(&excluded, discovery);
        Ok(Self {
            resources: IncludesExcludes::new(included, excluded),
            namespaces: IncludesExcludes::new(
                selection.included_namespaces.clone(),
                selection.excluded_namespaces.clone(),
            ),
            labels: Labels::parse(&selection.label_selector)?,
        })
    }

    /// Whether the action is for items of `group_resource` in `namespace`, whatever their labels. An action that
    /// names namespaces sees no object of the cluster.
    pub fn matches_place(&self, group_resource: &str, namespace: &str) -> bool {
        let namespace_fits = if namespace.is_empty() {
            self.namespaces.includes_everything()
        } else {
            self.namespaces.includes(namespace)
        };
        namespace_fits && self.resources.includes(group_resource)
    }

    /// Whether the labels of `object` are those that the action wants.
    pub fn matches_labels(&self, object: &Value) -> bool {
        self.labels.matches(object)
    }
}

/// Each resource in the form `plural.group`, where discovery knows it.
pub(crate) fn resolved(resources: &[String], discovery: &Discovery) -> Vec<String> {
    let one = |text: &String| discovery.resolve(text).map_or_else(|| text.clone(), Resource::group_resource);
    resources.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::tests::discovery;
    use serde_json::json;

    fn selection(resources: &[&str], namespaces: &[&str], labels: &str) -> Selection {
        let owned = |list: &[&str]| list.iter().map(|&one| one.to_owned()).collect();
        Selection {
            included_resources: owned(resources),
            included_namespaces: owned(namespaces),
            label_selector: labels.to_owned(),
            ..Selection::default()
        }
    }

    /// The items of upstream's table for deletions, with the selectors that it tries.
    #[test]
    fn which_items_an_action_sees() {
        let items = [
            ("pods", "ns-1", "pod-1", json!({"metadata": {"labels": {"app": "app1"}}})),
            ("pods", "ns-2", "pod-2", json!({})),
            ("persistentvolumeclaims", "ns-1", "pvc-1", json!({})),
            ("persistentvolumeclaims", "ns-2", "pvc-2", json!({"metadata": {"labels": {"app": "app1"}}})),
            ("persistentvolumes", "", "pv-1", json!({})),
            ("namespaces", "", "ns-1", json!({})),
        ];
        let table: [(Selection, &[&str]); 9] = [
            (selection(&[], &[], ""), &["pod-1", "pod-2", "pvc-1", "pvc-2", "pv-1", "ns-1"]),
            (selection(&["pods"], &[], ""), &["pod-1", "pod-2"]),
            (selection(&["po"], &[], ""), &["pod-1", "pod-2"]),
            (selection(&["PersistentVolume"], &[], ""), &[]),
            (selection(&["pv"], &["*"], ""), &["pv-1"]),
            (selection(&[], &["ns-1"], ""), &["pod-1", "pvc-1"]),
            (selection(&["pods"], &["ns-1"], ""), &["pod-1"]),
            (selection(&[], &[], "app=app1"), &["pod-1", "pvc-2"]),
            (selection(&["nonsense"], &[], ""), &[]),
        ];
        let discovery = discovery();
        for (selection, expected) in table {
            let resolved = ResolvedSelection::new(&selection, &discovery).unwrap();
            let seen: Vec<_> = items
                .iter()
                .filter(|(resource, namespace, _, object)| {
                    resolved.matches_place(resource, namespace) && resolved.matches_labels(object)
                })
                .map(|(_, _, name, _)| *name)
                .collect();
            assert_eq!(seen, expected, "{selection:?}");
        }
        assert!(ResolvedSelection::new(&selection(&[], &[], "=invalid-selector"), &discovery).is_err());
    }
}
