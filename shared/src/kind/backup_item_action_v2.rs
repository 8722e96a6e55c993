//! BackupItemAction, version 2: as version 1, and may start an operation that goes on after the item is archived.

use async_trait::async_trait;
use tonic::{Request, Response, Status};

use super::backup_item_action::Changes;
use super::service::kind_service;
use super::{Handlers, backup, identifiers, item, operation_id};
use crate::AsyncNotSupported;
use crate::error::Result;
use crate::generated::v2 as wire;
use crate::model::{Backup, Item, OperationId, Progress, ResourceIdentifier, ResourceSelector};

/// What becomes of an item of a backup, and the operation that was started for it.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    changes: Changes,
    operation: Option<(OperationId, Vec<ResourceIdentifier>)>,
}

impl Outcome {
    /// The item is archived as it came, byte for byte.
    pub fn unchanged() -> Self {
        Self::default()
    }

    /// This item is archived, and handed to the next action, in place of the one that came.
    pub fn changed(item: Item) -> Self {
        Changes::changed(item).into()
    }

    /// As [`Changes::with_additional_items`].
    #[must_use]
    pub fn with_additional_items(mut self, items: impl IntoIterator<Item = ResourceIdentifier>) -> Self {
        self.changes = self.changes.with_additional_items(items);
        self
    }

    /// An operation was started. Velero asks for its progress until it ends, then archives `post_operation_items` again.
    ///
    /// While a backup is finalized no operation may start; Velero would drop the item's final version without a word.
    /// So one that is returned there is left out of the reply.
    #[must_use]
    pub fn with_operation(
        mut self,
        id: OperationId,
        post_operation_items: impl IntoIterator<Item = ResourceIdentifier>,
    ) -> Self {
        self.operation = Some((id, post_operation_items.into_iter().collect()));
        self
    }

    /// The changes to the item.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The operation's id, if one was started, and the items to archive again after it.
    pub fn operation(&self) -> Option<(&OperationId, &[ResourceIdentifier])> {
        self.operation.as_ref().map(|(id, items)| (id, items.as_slice()))
    }
}

impl From<Changes> for Outcome {
    fn from(changes: Changes) -> Self {
        Self { changes, operation: None }
    }
}

/// An action on the items of a backup.
#[async_trait]
pub trait BackupItemActionV2: Send + Sync + 'static {
    /// Which items [`execute`](Self::execute) sees. Velero asks once per backup, before the first item.
    fn applies_to(&self) -> ResourceSelector;

    /// Called for each matching item, possibly several at once, and again for items that other actions added. After
    /// all operations have ended it is called once more for each of their post-operation items, in a new process, with
    /// the backup in phase `Finalizing`.
    ///
    /// # Errors
    ///
    /// An error keeps the item out of the backup, which becomes `PartiallyFailed`. In a Finalizing phase it is
    /// seen nowhere but in the server's log, and the archive keeps the item's first version.
    async fn execute(&self, item: Item, backup: Backup) -> Result<Outcome>;

    /// How far an operation is. Asked once right after the last item, then every ten seconds, **each time in a new
    /// process**: nothing kept in memory is there.
    ///
    /// # Errors
    ///
    /// **Any error ends the operation for good.** Return one only where asking again is pointless, and
    /// [`Progress::running`] with a description for all that may pass.
    async fn progress(&self, _operation: OperationId, _backup: Backup) -> Result<Progress> {
        Err(AsyncNotSupported)?
    }

    /// Gives an operation up: called once when it outlives the backup's `itemOperationTimeout`, right after a
    /// [`progress`](Self::progress) that said it was running. Be quick: the server waits.
    ///
    /// # Errors
    ///
    /// Seen nowhere. The operation counts as failed in any case.
    async fn cancel(&self, _operation: OperationId, _backup: Backup) -> Result<()> {
        Ok(())
    }
}

kind_service!(BackupItemActionV2, wire::backup_item_action_server::BackupItemActionServer, |action| Some(
    action.applies_to()
));

#[async_trait]
impl wire::backup_item_action_server::BackupItemAction for Handlers<dyn BackupItemActionV2> {
    async fn applies_to(
        &self,
        request: Request<wire::BackupItemActionAppliesToRequest>,
    ) -> Result<Response<wire::BackupItemActionAppliesToResponse>, Status> {
        self.call(&request.into_inner().plugin, "applies_to", |action| async move {
            let selector = Some(action.applies_to().into_wire());
            Ok(wire::BackupItemActionAppliesToResponse { resource_selector: selector })
        })
        .await
    }

    async fn execute(
        &self,
        request: Request<wire::ExecuteRequest>,
    ) -> Result<Response<wire::ExecuteResponse>, Status> {
        let wire::ExecuteRequest { plugin, item: came, backup: of } = request.into_inner();
        self.call(&plugin, "execute", |action| async move {
            let of = backup(&of)?;
            let finalizing = of.phase().is_finalizing();
            let Outcome { changes, operation } = action.execute(item(came.clone())?, of).await?;
            let (item, additional_items) = changes.into_wire(came);
            let mut reply = wire::ExecuteResponse { item, additional_items, ..Default::default() };
            match operation {
                Some((id, _)) if finalizing => {
                    tracing::debug!(%id, "no operation may start while finalizing");
                }
                Some((id, items)) => {
                    reply.operation_id = id.into_string();
                    reply.post_operation_items = identifiers(items);
                }
                None => {}
            }
            Ok(reply)
        })
        .await
    }

    async fn progress(
        &self,
        request: Request<wire::BackupItemActionProgressRequest>,
    ) -> Result<Response<wire::BackupItemActionProgressResponse>, Status> {
        let wire::BackupItemActionProgressRequest { plugin, operation_id: id, backup: of } =
            request.into_inner();
        self.call(&plugin, "progress", |action| async move {
            let progress = action.progress(operation_id(id)?, backup(&of)?).await?;
            Ok(wire::BackupItemActionProgressResponse { progress: Some(progress.into_wire()) })
        })
        .await
    }

    async fn cancel(
        &self,
        request: Request<wire::BackupItemActionCancelRequest>,
    ) -> Result<Response<()>, Status> {
        let wire::BackupItemActionCancelRequest { plugin, operation_id: id, backup: of } =
            request.into_inner();
        self.call(
            &plugin,
            "cancel",
            |action| async move { action.cancel(operation_id(id)?, backup(&of)?).await },
        )
        .await
    }
}
