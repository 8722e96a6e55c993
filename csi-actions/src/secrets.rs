//! The Secrets that a driver needs for its snapshots, as contents and classes name them. They are named only: nothing here
//! reads one.

use serde_json::Value;
use velero_plugin::{IdentifierError, ResourceIdentifier};

use crate::keys;
use crate::object::{annotation, text};

/// Parameters of a class that are for the sidecar: what it takes and deletes snapshots with.
const SNAPSHOTTER: [&str; 2] =
    ["csi.storage.k8s.io/snapshotter-secret-namespace", "csi.storage.k8s.io/snapshotter-secret-name"];
/// What it asks for snapshots with.
const LISTER: [&str; 2] = [
    "csi.storage.k8s.io/snapshotter-list-secret-namespace",
    "csi.storage.k8s.io/snapshotter-list-secret-name",
];

/// A Secret that is named in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretRef<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
}

impl SecretRef<'_> {
    /// As an item of a backup or a restore.
    ///
    /// # Errors
    ///
    /// When no object can have such a name.
    pub fn identifier(self) -> Result<ResourceIdentifier, IdentifierError> {
        ResourceIdentifier::new("", "secrets", self.namespace, self.name)
    }
}

/// The Secret that deletes the snapshot of `content`, by the annotations that the snapshot controllers write: without it in
/// the archive the snapshot could not be deleted from another cluster.
pub fn of_content(content: &Value) -> Option<SecretRef<'_>> {
    let namespace = annotation(content, keys::DELETION_SECRET_NAMESPACE)?;
    Some(SecretRef { namespace, name: annotation(content, keys::DELETION_SECRET_NAME)? })
}

/// The Secret by which a snapshot of `class` is deleted, unless it depends on the snapshot.
pub fn deleting(class: &Value) -> Option<SecretRef<'_>> {
    of_parameters(class, SNAPSHOTTER)
}

/// The Secrets of `class`, each once.
pub fn of_class(class: &Value) -> Vec<SecretRef<'_>> {
    let (deleting, listing) = (deleting(class), of_parameters(class, LISTER));
    deleting.into_iter().chain(listing.filter(|listing| Some(*listing) != deleting)).collect()
}

/// A value with a template is a name only together with a snapshot.
fn of_parameters<'a>(class: &'a Value, [namespace, name]: [&str; 2]) -> Option<SecretRef<'a>> {
    let parameter = |key| text(class, &["parameters", key]).filter(|value| !value.contains("${"));
    Some(SecretRef { namespace: parameter(namespace)?, name: parameter(name)? })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "a value written at the call reads best")]

    use super::*;
    use serde_json::json;

    fn shown(secret: SecretRef<'_>) -> String {
        secret.identifier().unwrap().to_string()
    }

    #[test]
    fn i09_c36_the_secret_is_found_by_the_keys_that_real_contents_carry_and_only_whole() {
        let key = |part: &str| format!("snapshot.storage.kubernetes.io/deletion-secret-{part}");
        let content = |annotations: Value| json!({"metadata": {"annotations": annotations}});
        let whole = content(json!({key("name"): "s", key("namespace"): "hpe"}));
        assert_eq!(of_content(&whole).map(shown).as_deref(), Some("secrets hpe/s"));
        for partial in [
            json!({key("name"): "s"}),
            json!({key("namespace"): "hpe"}),
            json!(null),
            json!({key("name"): "", key("namespace"): "n"}),
        ] {
            assert_eq!(of_content(&content(partial)), None);
        }
        let class_keys = json!({"csi.storage.k8s.io/snapshotter-secret-name": "s",
            "csi.storage.k8s.io/snapshotter-secret-namespace": "n"});
        assert_eq!(of_content(&content(class_keys)), None);
    }

    #[test]
    fn i48_only_a_whole_secret_without_templates_is_taken_from_a_class() {
        let [namespace_key, name_key] = SNAPSHOTTER;
        let class =
            |name: &str, namespace: &str| json!({"parameters": {name_key: name, namespace_key: namespace}});
        assert_eq!(deleting(&class("s", "n")).map(shown).as_deref(), Some("secrets n/s"));
        assert_eq!(deleting(&class("${volumesnapshot.name}", "n")), None);
        assert_eq!(deleting(&class("s", "${volumesnapshot.namespace}")), None);
        assert_eq!(deleting(&class("s", "")), None);
        assert_eq!(deleting(&json!({"parameters": null})), None);
    }

    #[test]
    fn i09_a_class_names_its_secrets_by_parameters_and_not_by_annotations() {
        let all = |parameters: Value| {
            let class = json!({"parameters": parameters});
            of_class(&class).into_iter().map(shown).collect::<Vec<_>>()
        };
        let [list_namespace, list_name] = LISTER;
        let [namespace, name] = SNAPSHOTTER;
        assert_eq!(all(json!({list_namespace: "n", list_name: "list"})), ["secrets n/list"]);
        assert_eq!(
            all(json!({list_namespace: "n", list_name: "list", namespace: "n", name: "s"})),
            ["secrets n/s", "secrets n/list"]
        );
        assert_eq!(
            all(json!({list_namespace: "n", list_name: "s", namespace: "n", name: "s"})),
            ["secrets n/s"]
        );
        assert_eq!(
            all(json!({list_namespace: "${volumesnapshot.namespace}", list_name: "s"})),
            Vec::<String>::new()
        );
        let annotated = json!({"metadata": {"annotations": {list_namespace: "n", list_name: "s"}}});
        assert_eq!(of_class(&annotated), []);
    }
}
