//! The restore actions. Version 2 waits for its additional items until the folder holds the mark `ready`.

use std::time::Duration;

use e2e::item::{DO, WITH};
use serde_json::json;
use velero_plugin::restore::{Changes, Outcome, RestoreInput, RestoreItemAction, RestoreItemActionV2};
use velero_plugin::{
    OperationId, Progress, ResourceIdentifier, ResourceSelector, Restore as OfRestore, Result, async_trait,
};

use crate::{backup, folder, order};

pub(crate) struct RestoreV1;

#[async_trait]
impl RestoreItemAction for RestoreV1 {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::everything()
    }

    /// Beside the orders of all kinds: `skip`.
    async fn execute(&self, input: RestoreInput) -> Result<Changes> {
        match input.item.annotation(DO) {
            Some("skip") => Ok(Changes::skip()),
            _ => Ok(order::obey(&input.item).await?.map_or_else(Changes::unchanged, Changes::changed)),
        }
    }
}

pub(crate) struct Restore;

#[async_trait]
impl RestoreItemActionV2 for Restore {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::resources(["pods"])
    }

    /// Beside the orders of all kinds: `skip`, `wait` (milliseconds, or nothing for the server's default), `original`
    /// (restores the item as it lies in the archive), and `start` as for backups.
    async fn execute(&self, input: RestoreInput) -> Result<Outcome> {
        let RestoreInput { item, from_backup, .. } = input;
        let with = item.annotation(WITH).unwrap_or_default();
        match item.annotation(DO) {
            Some("skip") => Ok(Outcome::skip()),
            Some("original") => Ok(Outcome::changed(from_backup)),
            Some("wait") => {
                let timeout = if with.is_empty() { None } else { Some(Duration::from_millis(with.parse()?)) };
                let claim =
                    ResourceIdentifier::new("", "persistentvolumeclaims", item.namespace(), item.name())?;
                Ok(Outcome::unchanged().with_additional_items([claim]).wait_for_additional_items(timeout))
            }
            Some("start") => {
                let id = format!("op-{}", item.name());
                folder::write(&id, &serde_json::from_str(with)?)?;
                Ok(Outcome::unchanged().with_operation(OperationId::new(id)?))
            }
            _ => Ok(order::obey(&item).await?.map_or_else(Outcome::unchanged, Outcome::changed)),
        }
    }

    /// Ready when the folder says so; it is told who asked.
    async fn are_additional_items_ready(&self, items: Vec<ResourceIdentifier>, _: OfRestore) -> Result<bool> {
        let asked: Vec<String> = items.iter().map(ToString::to_string).collect();
        folder::write("asked", &json!(asked))?;
        Ok(folder::read("ready")?.is_some())
    }

    async fn progress(&self, operation: OperationId, _: OfRestore) -> Result<Progress> {
        backup::progress(&operation)
    }

    async fn cancel(&self, operation: OperationId, _: OfRestore) -> Result<()> {
        backup::cancel(&operation)
    }
}
