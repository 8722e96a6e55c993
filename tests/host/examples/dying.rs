//! A plugin for the tests of processes: what it does at a ConfigMap stands in that ConfigMap's name.

use std::process::ExitCode;

use velero_plugin::backup::{BackupItemActionV2, DeleteItemAction, Outcome};
use velero_plugin::{
    Backup, BackupPhase, Error, Item, OperationId, Progress, ResourceIdentifier, ResourceSelector, Result,
    async_trait, name, plugin,
};

struct Dying;

/// The annotation that shows how often an item was archived.
const ARCHIVED: [&str; 3] = ["metadata", "annotations", "archived"];

#[async_trait]
impl BackupItemActionV2 for Dying {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::resources(["configmaps"])
    }

    async fn execute(&self, item: Item, backup: Backup) -> Result<Outcome> {
        if backup.phase().is_finalizing() {
            return Ok(Outcome::changed(item.edited(|object| object.set(&ARCHIVED, "twice"))?));
        }
        let operation = |id: &str| {
            let again = ResourceIdentifier::new("", "configmaps", item.namespace(), item.name())?;
            Ok(Outcome::unchanged().with_operation(OperationId::new(id)?, [again]))
        };
        match item.name() {
            "exits" => std::process::exit(3),
            "aborts" => std::process::abort(),
            "fails" => Err(Error::new("as it was told")),
            "warns" => {
                tracing::warn!(name = item.name(), "a warning");
                Ok(Outcome::unchanged())
            }
            "operates" => operation("exits"),
            "waits" => operation("waits"),
            name if name.starts_with("ends") => operation("ends"),
            "panics" => panic!("as it was told"),
            "process" => {
                let process = std::process::id().to_string();
                let stamped = item.edited(|object| object.set(&["data", "process"], process))?;
                Ok(Outcome::changed(stamped))
            }
            _ => Ok(Outcome::unchanged()),
        }
    }

    async fn progress(&self, operation: OperationId, backup: Backup) -> Result<Progress> {
        match operation.as_str() {
            // Not in the first round, which is served by the process that started the operation.
            "exits" if backup.phase() != BackupPhase::InProgress => std::process::exit(3),
            "ends" if backup.phase() != BackupPhase::InProgress => Ok(Progress::completed()),
            _ => Ok(Progress::running().amount(1, 2, "Bytes")),
        }
    }
}

struct DyingDelete;

#[async_trait]
impl DeleteItemAction for DyingDelete {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::resources(["configmaps"])
    }

    async fn execute(&self, _: Item, _: Backup) -> Result<()> {
        Ok(())
    }
}

fn main() -> ExitCode {
    plugin!()
        .logs_of("dying")
        .backup_item_action_v2(name!("example.io/dying"), || Dying)
        .delete_item_action(name!("example.io/dying-delete"), || DyingDelete)
        .run()
}
