//! Whether a claim is in a backup for certain. Velero tells nobody what its filters leave out.

use serde_json::Value;
use velero_plugin::Backup;

use crate::object::{is_deleting, label, namespace};

/// Label of Velero on what no backup takes.
const EXCLUDED: &str = "velero.io/exclude-from-backup";
/// How a filter may name claims.
const CLAIMS: [&str; 3] = ["persistentvolumeclaims", "persistentvolumeclaim", "pvc"];

/// Whether no filter of `backup` can leave out `claim`. Where that takes Velero's own knowledge, as for a pattern, the answer
/// is no.
pub(super) fn is_certain(claim: &Value, backup: &Backup) -> bool {
    let list = |field: &str| -> Vec<&str> {
        let list = backup.get(&["spec", field]).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let takes = |field: &str, names: &[&str]| {
        let list = list(field);
        list.is_empty() || list.iter().any(|each| *each == "*" || names.contains(each))
    };
    let spares = |field: &str, names: &[&str]| {
        list(field).iter().all(|each| !names.contains(each) && !each.contains(['*', '?', '[', '{']))
    };
    let namespace = [namespace(claim)];
    !is_deleting(claim)
        && label(claim, EXCLUDED) != Some("true")
        && takes("includedNamespaces", &namespace)
        && spares("excludedNamespaces", &namespace)
        && ["includedResources", "includedNamespaceScopedResources"].iter().all(|field| takes(field, &CLAIMS))
        && ["excludedResources", "excludedNamespaceScopedResources"]
            .iter()
            .all(|field| spares(field, &CLAIMS))
        && is_selected(claim, backup)
}

/// Whether the labels of the claim are those that the backup selects.
fn is_selected(claim: &Value, backup: &Backup) -> bool {
    if backup
        .get(&["spec", "orLabelSelectors"])
        .and_then(Value::as_array)
        .is_some_and(|list| !list.is_empty())
    {
        return false;
    }
    let Some(selector) = backup.get(&["spec", "labelSelector"]).and_then(Value::as_object) else {
        return true;
    };
    let is_plain = selector.iter().all(|(field, value)| field == "matchLabels" || value.is_null());
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    is_plain && wanted.into_iter().flatten().all(|(key, value)| label(claim, key) == value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn i50_a_claim_that_a_filter_may_leave_out_is_not_certain() {
        let claim = json!({"metadata": {"namespace": "a", "name": "data", "labels": {"tier": "db"}}});
        for (spec, certain) in [
            (json!({}), true),
            (json!({"includedNamespaces": ["*"]}), true),
            (json!({"includedNamespaces": ["b", "a"]}), true),
            (json!({"includedNamespaces": ["b"]}), false),
            (json!({"includedNamespaces": ["a*"]}), false),
            (json!({"excludedNamespaces": ["b"]}), true),
            (json!({"excludedNamespaces": ["a"]}), false),
            (json!({"excludedNamespaces": ["?"]}), false),
            (json!({"includedResources": ["pods", "pvc"]}), true),
            (json!({"includedResources": ["persistentvolumes"]}), false),
            (json!({"includedNamespaceScopedResources": ["*"]}), true),
            (json!({"includedNamespaceScopedResources": ["pods"]}), false),
            (json!({"excludedResources": ["persistentvolumeclaims"]}), false),
            (json!({"excludedResources": ["secrets"]}), true),
            (json!({"excludedNamespaceScopedResources": ["*"]}), false),
            (json!({"labelSelector": {"matchLabels": {"tier": "db"}}}), true),
            (json!({"labelSelector": {"matchLabels": {"tier": "web"}}}), false),
            (json!({"labelSelector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}}), false),
            (json!({"labelSelector": null, "orLabelSelectors": []}), true),
            (json!({"orLabelSelectors": [{"matchLabels": {"tier": "db"}}]}), false),
        ] {
            assert_eq!(is_certain(&claim, &Backup::from(json!({"spec": spec.clone()}))), certain, "{spec}");
        }
        let mut excluded = claim.clone();
        excluded["metadata"]["labels"]["velero.io/exclude-from-backup"] = "true".into();
        let mut going = claim;
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        for claim in [excluded, going] {
            assert!(!is_certain(&claim, &Backup::from(json!({}))), "{claim}");
        }
    }
}
