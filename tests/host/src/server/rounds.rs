//! The rounds in which a server asks for the operations of a backup.

use async_trait::async_trait;
use serde_json::{Value, json};
use velero_plugin::Kind;

use super::{Server, StageError};
use crate::client::Progress;
use crate::event::Event;
use crate::model::Backup;
use crate::operation::{Operation, Outcome, ProgressSource, poll};
use crate::phase;
use crate::session::Session;

/// The operations of one backup between two rounds. Mere progress stays here; the store sees changes of the phase
/// and errors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tracked {
    operations: Vec<Operation>,
}

/// Asks the plugins of a session.
pub(crate) struct PluginSource<'a> {
    server: &'a Server,
    session: &'a Session,
    backup: Value,
}

impl PluginSource<'_> {
    async fn action(&self, operation: &Operation) -> Result<crate::client::BackupItemAction, String> {
        let name = &operation.spec.backup_item_action;
        let entry = self.server.parts.registry.find_for_use(Kind::BackupItemActionV2, name);
        let entry =
            entry.ok_or_else(|| format!("unable to find {} plugin for {name}", Kind::BackupItemActionV2))?;
        self.server.backup_action(self.session, entry).await.map_err(|error| error.to_string())
    }
}

#[async_trait]
impl ProgressSource for PluginSource<'_> {
    async fn progress(&mut self, operation: &Operation) -> Result<Progress, String> {
        let action = self.action(operation).await?;
        let asked = action.progress(&operation.spec.operation_id, &self.backup).await;
        asked.map_err(|error| error.to_string())
    }

    async fn cancel(&mut self, operation: &Operation) {
        if let Ok(action) = self.action(operation).await {
            // What comes of it shows nowhere.
            let _ = action.cancel(&operation.spec.operation_id, &self.backup).await;
        }
    }
}

impl Server {
    pub(crate) fn source<'a>(&'a self, session: &'a Session, backup: &Backup) -> PluginSource<'a> {
        PluginSource { server: self, session, backup: backup.object().clone() }
    }

    pub(crate) async fn track(&self, name: &str, operations: Vec<Operation>) {
        self.tracked.lock().await.insert(name.to_owned(), Tracked { operations });
    }

    /// One round over a backup that waits for operations, in new processes. Other backups stay as they are.
    ///
    /// # Errors
    ///
    /// When the cluster or the store can't take the new state.
    pub async fn round(&self, backup: &mut Backup) -> Result<(), StageError> {
        if !phase::is_waiting(backup.phase()) {
            return Ok(());
        }
        let name = backup.name().to_owned();
        let known = self.tracked.lock().await.get(&name).cloned().unwrap_or_default();
        let mut operations = known.operations;
        if operations.is_empty() {
            operations = self.parts.store.operations(&name).await?;
        }
        let before = operations.clone();
        let session = self.session().hurried();
        let mut source = self.source(&session, backup);
        let timeout = backup.item_operation_timeout();
        let outcome = poll(&mut operations, timeout, || self.now(), &mut source).await;
        session.end().await;
        for (operation, _) in operations.iter().zip(&before).filter(|(now, then)| now != then) {
            self.parts.observer.observe(&Event::Operation(operation));
        }
        self.take_round(backup, &operations, &outcome).await?;
        if phase::is_waiting(backup.phase()) {
            self.track(&name, operations).await;
        } else {
            self.tracked.lock().await.remove(&name);
        }
        Ok(())
    }

    async fn take_round(
        &self,
        backup: &mut Backup,
        operations: &[Operation],
        outcome: &Outcome,
    ) -> Result<(), StageError> {
        let before = backup.object().clone();
        let errors = outcome.errors.len();
        let next = phase::after_poll(backup.phase(), outcome.outstanding, errors);
        backup.count_operations(outcome);
        if errors > 0 {
            backup.set_status("errors", json!(backup.count("errors") + errors as u64));
        }
        let moved = next != backup.phase();
        backup.set_phase(next);
        if errors > 0 || moved {
            self.parts.store.put_metadata(backup).await?;
            if !operations.is_empty() {
                self.parts.store.put_operations(backup.name(), operations).await?;
            }
        }
        if moved {
            self.record(backup).await?;
        } else if *backup.object() != before {
            self.parts.cluster.record(backup.object()).await?;
        }
        Ok(())
    }
}
