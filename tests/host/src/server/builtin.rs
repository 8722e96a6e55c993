//! The server's own actions that bring a pod's claims and a claim's volume into a backup.

use async_trait::async_trait;
use serde_json::Value;

use super::action::BackupAction;
use crate::client::backup_item_action::Executed;
use crate::client::{CallError, ResourceIdentifier, Selection};

/// Those that run in every backup. Of Velero's own set the ones for CRDs of version v1beta1 and for the roles of
/// service accounts are left out.
pub(crate) fn backup_actions() -> Vec<Box<dyn BackupAction>> {
    vec![
        Box::new(Additional { name: "velero.io/pod", resource: "pods", items: claims_of_pod }),
        Box::new(Additional {
            name: "velero.io/pv",
            resource: "persistentvolumeclaims",
            items: volume_of_claim,
        }),
    ]
}

/// An action that only names further items.
struct Additional {
    name: &'static str,
    resource: &'static str,
    items: fn(&Value) -> Vec<ResourceIdentifier>,
}

#[async_trait]
impl BackupAction for Additional {
    fn name(&self) -> &str {
        self.name
    }

    async fn applies_to(&self) -> Result<Selection, CallError> {
        Ok(Selection { included_resources: vec![self.resource.to_owned()], ..Selection::default() })
    }

    async fn execute(&self, item: &Value, _: &Value) -> Result<Executed, CallError> {
        Ok(Executed {
            item: item.clone(),
            additional_items: (self.items)(item),
            operation_id: String::new(),
            post_operation_items: Vec::new(),
        })
    }
}

fn claims_of_pod(pod: &Value) -> Vec<ResourceIdentifier> {
    let namespace = pod.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
    let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array);
    let claim =
        |volume: &Value| volume.pointer("/persistentVolumeClaim/claimName")?.as_str().map(str::to_owned);
    let identifier = |name| ResourceIdentifier {
        group: String::new(),
        resource: "persistentvolumeclaims".to_owned(),
        namespace: namespace.to_owned(),
        name,
    };
    volumes.into_iter().flatten().filter_map(claim).map(identifier).collect()
}

/// Of a claim that is bound.
fn volume_of_claim(claim: &Value) -> Vec<ResourceIdentifier> {
    let volume = claim.pointer("/spec/volumeName").and_then(Value::as_str).unwrap_or_default();
    let bound = claim.pointer("/status/phase").and_then(Value::as_str) == Some("Bound");
    if volume.is_empty() || !bound {
        return Vec::new();
    }
    vec![ResourceIdentifier {
        resource: "persistentvolumes".to_owned(),
        name: volume.to_owned(),
        ..ResourceIdentifier::default()
    }]
}
