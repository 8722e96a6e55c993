//! The backup actions. Version 2 starts operations, which live in the folder: each poll comes from a new process.

use std::time::{Duration, UNIX_EPOCH};

use e2e::item::{DO, WITH};
use serde_json::{Value, json};
use velero_plugin::backup::{BackupItemAction, BackupItemActionV2, Changes, Outcome};
use velero_plugin::{
    Backup as OfBackup, InvalidOperationId, Item, LabelSelector, OperationId, Progress, ResourceIdentifier,
    ResourceSelector, Result, async_trait,
};

use crate::{folder, order};

pub(crate) struct BackupV1;

#[async_trait]
impl BackupItemAction for BackupV1 {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::resources(["pods"])
    }

    async fn execute(&self, item: Item, _: OfBackup) -> Result<Changes> {
        Ok(order::obey(&item).await?.map_or_else(Changes::unchanged, Changes::changed))
    }
}

pub(crate) struct Backup;

#[async_trait]
impl BackupItemActionV2 for Backup {
    fn applies_to(&self) -> ResourceSelector {
        let selector = ResourceSelector::resources(["pods", "deployments.apps"])
            .except_resources(["secrets"])
            .in_namespaces(["shop", "web-*"])
            .except_namespaces(["kube-system"]);
        match LabelSelector::exists("specimen.example/wanted") {
            Ok(labels) => selector.with_labels(labels),
            Err(_) => selector,
        }
    }

    /// Beside the orders of all kinds: `additional` (names of pods), and `start` (a JSON text that becomes the
    /// operation's state).
    async fn execute(&self, item: Item, _: OfBackup) -> Result<Outcome> {
        let with = item.annotation(WITH).unwrap_or_default();
        match item.annotation(DO) {
            Some("additional") => {
                let pods = with.split(',').map(|name| ResourceIdentifier::new("", "pods", "shop", name));
                Ok(Outcome::unchanged()
                    .with_additional_items(pods.collect::<std::result::Result<Vec<_>, _>>()?))
            }
            Some("start") => {
                let id = format!("op-{}", item.name());
                folder::write(&id, &serde_json::from_str(with)?)?;
                Ok(Outcome::unchanged().with_operation(OperationId::new(id)?, [item.identifier("pods")?]))
            }
            _ => Ok(order::obey(&item).await?.map_or_else(Outcome::unchanged, Outcome::changed)),
        }
    }

    async fn progress(&self, operation: OperationId, _: OfBackup) -> Result<Progress> {
        progress(&operation)
    }

    async fn cancel(&self, operation: OperationId, _: OfBackup) -> Result<()> {
        cancel(&operation)
    }
}

/// What the state of an operation says.
pub(crate) fn progress(operation: &OperationId) -> Result<Progress> {
    let Some(state) = folder::read(operation.as_str())? else {
        Err(InvalidOperationId(operation.to_string()))?
    };
    assert!(state["panic"] != true, "no progress");
    if let Some(trouble) = state["trouble"].as_str() {
        // What may pass is told, not returned: an error would end the operation for good.
        return Ok(Progress::running().description(trouble));
    }
    let progress = match (&state["failed"], &state["completed"]) {
        (Value::String(reason), _) => Progress::failed(reason.as_str()),
        (_, Value::Bool(true)) => Progress::completed(),
        _ => Progress::running(),
    };
    let number = |key: &str| state[key].as_u64().unwrap_or_default();
    let progress = progress.amount(number("done"), number("total"), "Bytes");
    Ok(match state["started"].as_u64() {
        Some(seconds) => progress.started(UNIX_EPOCH + Duration::from_secs(seconds)),
        None => progress,
    })
}

/// Gives an operation up; an unknown one is fine.
pub(crate) fn cancel(operation: &OperationId) -> Result<()> {
    if folder::read(operation.as_str())?.is_some() {
        folder::write(operation.as_str(), &json!({"failed": "cancelled"}))?;
    }
    Ok(())
}
