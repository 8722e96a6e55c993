//! Claims that Kubernetes makes for one pod each (`ephemeral` volumes) belong into the block of that pod, so that they are cut
//! between its hooks.
//!
//! Velero's own `velero.io/pvc`, which is there on every server that knows blocks, has the claim's volume, the running pods that
//! name the claim and the claims of its group. The pod of an `ephemeral` volume does not name the claim.

use async_trait::async_trait;
use serde_json::Value;
use velero_plugin::backup::ItemBlockAction;
use velero_plugin::{Backup, Item, ResourceIdentifier, ResourceSelector, Result};

use crate::object::text;

/// The action on claims.
#[derive(Debug, Default)]
pub struct ClaimBlock;

#[async_trait]
impl ItemBlockAction for ClaimBlock {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::resources(["persistentvolumeclaims"])
    }

    async fn related_items(&self, item: Item, _: Backup) -> Result<Vec<ResourceIdentifier>> {
        let Some(pod) = pod_of(item.object()) else { return Ok(Vec::new()) };
        Ok(vec![ResourceIdentifier::new("", "pods", item.namespace(), pod)?])
    }
}

/// The pod that a bound claim was made for.
fn pod_of(claim: &Value) -> Option<&str> {
    text(claim, &["spec", "volumeName"]).filter(|_| text(claim, &["status", "phase"]) == Some("Bound"))?;
    let owners = claim.pointer("/metadata/ownerReferences").and_then(Value::as_array)?;
    let is_pod = |owner: &&Value| {
        let kind = (text(owner, &["apiVersion"]), text(owner, &["kind"]));
        kind == (Some("v1"), Some("Pod")) && owner["controller"] == true
    };
    text(owners.iter().find(is_pod)?, &["name"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claim(phase: &str, owners: &Value) -> Value {
        json!({"kind": "PersistentVolumeClaim", "metadata": {"namespace": "a", "name": "web-scratch", "ownerReferences": owners},
            "spec": {"volumeName": "pv1"}, "status": {"phase": phase}})
    }

    #[tokio::test]
    async fn only_the_pod_that_a_claim_was_made_for_is_added_to_what_velero_finds_itself() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "name": "web", "controller": true});
        let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "controller": true});
        let other = json!({"apiVersion": "v1", "kind": "Pod", "name": "web"});
        let table = [
            (claim("Bound", &json!([pod])), vec!["pods a/web"]),
            (claim("Pending", &json!([pod])), vec![]),
            (claim("Bound", &json!([set, pod])), vec!["pods a/web"]),
            (claim("Bound", &json!([set])), vec![]),
            (claim("Bound", &json!([other])), vec![]),
            (claim("Bound", &Value::Null), vec![]),
        ];
        for (claim, related) in table {
            let item = Item::try_from(claim.clone()).unwrap();
            let items = ClaimBlock.related_items(item, Backup::from(Value::Null)).await.unwrap();
            let items: Vec<String> = items.iter().map(ToString::to_string).collect();
            assert_eq!(items, related, "{claim}");
        }
    }
}
