//! An action on items, whoever runs it: a plugin or the server itself.

use async_trait::async_trait;
use serde_json::Value;

use crate::client::backup_item_action::Executed;
use crate::client::{BackupItemAction, CallError, ItemBlockAction, Selection};
use crate::discovery::Discovery;
use crate::select::{LabelError, ResolvedSelection};

/// An action on the items of a backup.
#[async_trait]
pub trait BackupAction: Send + Sync {
    /// Its registered name.
    fn name(&self) -> &str;

    /// The items that it wants.
    async fn applies_to(&self) -> Result<Selection, CallError>;

    /// What it makes of an item.
    async fn execute(&self, item: &Value, backup: &Value) -> Result<Executed, CallError>;
}

#[async_trait]
impl BackupAction for BackupItemAction {
    fn name(&self) -> &str {
        self.plugin().name()
    }

    async fn applies_to(&self) -> Result<Selection, CallError> {
        Self::applies_to(self).await
    }

    async fn execute(&self, item: &Value, backup: &Value) -> Result<Executed, CallError> {
        Self::execute(self, item, backup).await
    }
}

/// An action with the items that it is for.
pub(crate) struct Resolved<A> {
    pub(crate) action: A,
    pub(crate) selection: ResolvedSelection,
}

/// Why actions could not be resolved; the stage fails of the first.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResolveError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Labels(#[from] LabelError),
}

impl From<ResolveError> for super::StageError {
    fn from(error: ResolveError) -> Self {
        match error {
            ResolveError::Call(error) => error.into(),
            ResolveError::Labels(error) => error.into(),
        }
    }
}

pub(crate) async fn resolve_backup_actions(
    actions: Vec<Box<dyn BackupAction>>,
    discovery: &Discovery,
) -> Result<Vec<Resolved<Box<dyn BackupAction>>>, ResolveError> {
    let mut resolved = Vec::new();
    for action in actions {
        let selection = ResolvedSelection::new(&action.applies_to().await?, discovery)?;
        resolved.push(Resolved { action, selection });
    }
    Ok(resolved)
}

pub(crate) async fn resolve_block_actions(
    actions: Vec<ItemBlockAction>,
    discovery: &Discovery,
) -> Result<Vec<Resolved<ItemBlockAction>>, ResolveError> {
    let mut resolved = Vec::new();
    for action in actions {
        let selection = ResolvedSelection::new(&action.applies_to().await?, discovery)?;
        resolved.push(Resolved { action, selection });
    }
    Ok(resolved)
}
