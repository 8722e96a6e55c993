//! Which items an action applies to.

use std::fmt;

use crate::generated::generated as wire;

/// Why a selector was refused. Velero aborts the whole backup, restore or deletion on a selector that it can't parse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// A key or value that Kubernetes would refuse.
    #[error(
        "{0:?} can't be part of a label selector: letters, digits, '-', '_', '.' (and one prefix with '/' in a key)"
    )]
    Label(String),
}

/// A condition on labels, valid by construction. Conditions are joined by "and".
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelSelector(Vec<String>);

impl LabelSelector {
    /// The label `key` exists.
    ///
    /// # Errors
    ///
    /// When `key` is no label key.
    pub fn exists(key: &str) -> Result<Self, SelectorError> {
        Ok(Self(vec![checked_key(key)?.to_owned()]))
    }

    /// The label `key` has this `value`.
    ///
    /// # Errors
    ///
    /// When `key` or `value` can't be those of a label.
    pub fn equals(key: &str, value: &str) -> Result<Self, SelectorError> {
        Ok(Self(vec![format!("{}={}", checked_key(key)?, checked_value(value)?)]))
    }

    /// The label `key` is absent.
    ///
    /// # Errors
    ///
    /// When `key` is no label key.
    pub fn absent(key: &str) -> Result<Self, SelectorError> {
        Ok(Self(vec![format!("!{}", checked_key(key)?)]))
    }

    /// Both conditions.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The selector in Kubernetes' string syntax.
    pub fn as_query(&self) -> String {
        self.0.join(",")
    }
}

fn checked_key(key: &str) -> Result<&str, SelectorError> {
    let refused = || SelectorError::Label(key.to_owned());
    let name = match key.split_once('/') {
        Some((prefix, name)) if crate::name::is_dns_subdomain(prefix) => name,
        Some(_) => return Err(refused()),
        None => key,
    };
    if name.is_empty() || !is_label_word(name) { Err(refused()) } else { Ok(key) }
}

fn checked_value(value: &str) -> Result<&str, SelectorError> {
    if is_label_word(value) { Ok(value) } else { Err(SelectorError::Label(value.to_owned())) }
}

/// At most 63 letters, digits, '-', '_' and '.', with a letter or digit at either end; empty is fine for a value.
fn is_label_word(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let ends = [text.bytes().next(), text.bytes().last()];
    text.len() <= 63 && text.bytes().all(inner) && ends.iter().flatten().all(u8::is_ascii_alphanumeric)
}

/// Which items Velero hands to an action.
///
/// | form of a resource | matches |
/// |---|---|
/// | `persistentvolumeclaims`, `volumesnapshots.snapshot.storage.k8s.io` | plural, with the group where it isn't the core group |
/// | `pvc`, `persistentvolumeclaim` | short and singular names, resolved by the server's discovery |
/// | `*`, `pods*` | globs over `plural.group` |
/// | `PersistentVolumeClaim` | nothing: Velero keeps what it can't resolve as text, and says nothing |
///
/// An empty list means everything. A restriction on namespaces keeps cluster-scoped items away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceSelector {
    included_namespaces: Vec<String>,
    excluded_namespaces: Vec<String>,
    included_resources: Vec<String>,
    excluded_resources: Vec<String>,
    labels: LabelSelector,
}

impl ResourceSelector {
    /// Every item of every resource.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Items of these resources.
    pub fn resources<S: Into<String>>(resources: impl IntoIterator<Item = S>) -> Self {
        Self { included_resources: resources.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// But not of these resources; `*` is ignored here.
    #[must_use]
    pub fn except_resources<S: Into<String>>(mut self, resources: impl IntoIterator<Item = S>) -> Self {
        self.excluded_resources.extend(resources.into_iter().map(Into::into));
        self
    }

    /// Only in these namespaces. At restore they are those restored into.
    #[must_use]
    pub fn in_namespaces<S: Into<String>>(mut self, namespaces: impl IntoIterator<Item = S>) -> Self {
        self.included_namespaces.extend(namespaces.into_iter().map(Into::into));
        self
    }

    /// But not in these namespaces.
    #[must_use]
    pub fn except_namespaces<S: Into<String>>(mut self, namespaces: impl IntoIterator<Item = S>) -> Self {
        self.excluded_namespaces.extend(namespaces.into_iter().map(Into::into));
        self
    }

    /// Only items whose labels match. At backup they are those that the item had before any action ran.
    #[must_use]
    pub fn with_labels(mut self, labels: LabelSelector) -> Self {
        self.labels = self.labels.and(labels);
        self
    }

    /// Whether an item of `resource` (`plural.group` as discovery says it) in `namespace` passes the lists, without
    /// globs and short names: for a plugin's own tests ("does my action see this?").
    pub fn would_match(&self, resource: &str, namespace: &str) -> bool {
        let passes = |included: &[String], excluded: &[String], value: &str| {
            !excluded.iter().any(|entry| entry == value)
                && (included.is_empty() || included.iter().any(|entry| entry == "*" || entry == value))
        };
        let all_namespaces = self.excluded_namespaces.is_empty()
            && self.included_namespaces.iter().all(|namespace| namespace == "*");
        let namespace_passes = if namespace.is_empty() {
            all_namespaces
        } else {
            passes(&self.included_namespaces, &self.excluded_namespaces, namespace)
        };
        namespace_passes && passes(&self.included_resources, &self.excluded_resources, resource)
    }

    fn parts(&self) -> impl Iterator<Item = String> {
        let list = |word: &str, entries: &[String]| {
            (!entries.is_empty()).then(|| format!("{word}{}", entries.join(", ")))
        };
        let labels = (self.labels != LabelSelector::default())
            .then(|| format!("with labels {}", self.labels.as_query()));
        [
            list("", &self.included_resources),
            list("except ", &self.excluded_resources),
            list("in ", &self.included_namespaces),
            list("not in ", &self.excluded_namespaces),
            labels,
        ]
        .into_iter()
        .flatten()
    }

    pub(crate) fn into_wire(self) -> wire::ResourceSelector {
        wire::ResourceSelector {
            included_namespaces: self.included_namespaces,
            excluded_namespaces: self.excluded_namespaces,
            included_resources: self.included_resources,
            excluded_resources: self.excluded_resources,
            selector: self.labels.as_query(),
        }
    }
}

impl fmt::Display for ResourceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.parts().collect();
        f.write_str(if parts.is_empty() { "everything" } else { "" })?;
        f.write_str(&parts.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_that_velero_could_not_parse_cannot_be_made() {
        for key in ["", "a b", "a/b/c", "/a", "a/", "Upper.io/x", "-a", "a,b", "a=b"] {
            assert!(LabelSelector::exists(key).is_err(), "{key:?}");
        }
        assert!(LabelSelector::equals("a", "b c").is_err());
        assert!(LabelSelector::equals("a", &"v".repeat(64)).is_err());
    }

    #[test]
    fn conditions_are_joined_in_kubernetes_syntax() {
        let labels = LabelSelector::exists("velero.io/plugin-config")
            .unwrap()
            .and(LabelSelector::equals("tier", "").unwrap())
            .and(LabelSelector::absent("app").unwrap());
        assert_eq!(labels.as_query(), "velero.io/plugin-config,tier=,!app");
    }

    #[test]
    fn cluster_scoped_items_need_a_selector_without_namespaces() {
        let claims = ResourceSelector::resources(["persistentvolumes"]);
        assert!(claims.would_match("persistentvolumes", ""));
        assert!(!claims.would_match("PersistentVolume", ""));
        assert!(!claims.clone().in_namespaces(["a"]).would_match("persistentvolumes", ""));
        assert!(claims.clone().in_namespaces(["*"]).would_match("persistentvolumes", ""));
        assert!(!claims.except_namespaces(["b"]).would_match("persistentvolumes", ""));
    }

    #[test]
    fn exclusions_win() {
        let selector = ResourceSelector::everything().except_resources(["secrets"]).except_namespaces(["b"]);
        assert!(selector.would_match("pods", "a"));
        assert!(!selector.would_match("secrets", "a"));
        assert!(!selector.would_match("pods", "b"));
    }
}
