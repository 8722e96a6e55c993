//! RestoreItemAction, version 2: as version 1, may wait for its additional items and start operations.

use std::time::Duration;

use async_trait::async_trait;
use tonic::{Request, Response, Status};

use super::restore_item_action::{Changes, RestoreInput, input};
use super::service::kind_service;
use super::{Handlers, operation_id, restore};
use crate::AsyncNotSupported;
use crate::error::Result;
use crate::generated::v2 as wire;
use crate::model::{Item, OperationId, Progress, ResourceIdentifier, ResourceSelector, Restore};

#[derive(Debug, Clone, Copy, Default)]
enum Wait {
    #[default]
    No,
    ServerDefault,
    AtMost(Duration),
}

/// What becomes of an item of a restore, whether to wait for its additional items, and the operation that was
/// started for it.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    changes: Changes,
    operation: Option<OperationId>,
    wait: Wait,
}

impl Outcome {
    /// The item is restored as it came.
    pub fn unchanged() -> Self {
        Self::default()
    }

    /// This item is restored, and handed to the next action, in place of the one that came.
    pub fn changed(item: Item) -> Self {
        Changes::changed(item).into()
    }

    /// The item is not restored, and no further action sees it. Additional items are ignored; an operation is not.
    pub fn skip() -> Self {
        Changes::skip().into()
    }

    /// As [`Changes::with_additional_items`].
    #[must_use]
    pub fn with_additional_items(mut self, items: impl IntoIterator<Item = ResourceIdentifier>) -> Self {
        self.changes = self.changes.with_additional_items(items);
        self
    }

    /// The item is restored only when
    /// [`are_additional_items_ready`](RestoreItemActionV2::are_additional_items_ready) says so, at most after `timeout`
    /// (`None`: the server's resource timeout, ten minutes by default). Then, or on an error, **it is restored all the
    /// same** and the restore counts an error.
    #[must_use]
    pub fn wait_for_additional_items(mut self, timeout: Option<Duration>) -> Self {
        // Zero on the wire means the server's default, so a zero given here becomes the shortest wait there is.
        self.wait =
            timeout.map_or(Wait::ServerDefault, |timeout| Wait::AtMost(timeout.max(Duration::from_nanos(1))));
        self
    }

    /// An operation was started. Velero asks for its progress until it ends.
    #[must_use]
    pub fn with_operation(mut self, id: OperationId) -> Self {
        self.operation = Some(id);
        self
    }

    /// The changes to the item.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The operation's id, if one was started.
    pub fn operation(&self) -> Option<&OperationId> {
        self.operation.as_ref()
    }

    /// Whether the item waits for its additional items.
    pub fn waits(&self) -> bool {
        !matches!(self.wait, Wait::No)
    }

    fn into_wire(self, came: bytes::Bytes) -> wire::RestoreItemActionExecuteResponse {
        let waits = self.waits();
        let (item, additional_items, skip_restore) = self.changes.into_wire(came);
        let timeout = match self.wait {
            Wait::No | Wait::ServerDefault => None,
            Wait::AtMost(timeout) => Some(prost_types::Duration {
                seconds: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
                nanos: timeout.subsec_nanos().cast_signed(),
            }),
        };
        wire::RestoreItemActionExecuteResponse {
            item,
            additional_items,
            skip_restore,
            operation_id: self.operation.map(OperationId::into_string).unwrap_or_default(),
            wait_for_additional_items: waits,
            additional_items_ready_timeout: timeout,
        }
    }
}

impl From<Changes> for Outcome {
    fn from(changes: Changes) -> Self {
        Self { changes, ..Self::default() }
    }
}

/// An action on the items of a restore.
#[async_trait]
pub trait RestoreItemActionV2: Send + Sync + 'static {
    /// Which items [`execute`](Self::execute) sees. Velero asks once per restore, before the first item.
    fn applies_to(&self) -> ResourceSelector;

    /// Called for each matching item.
    ///
    /// # Errors
    ///
    /// An error keeps the item from being restored, and the restore becomes `PartiallyFailed`.
    async fn execute(&self, input: RestoreInput) -> Result<Outcome>;

    /// Whether the additional items of an item that waits are ready: asked at once, then every second. `items` are
    /// those that exist in the cluster, **with the names and namespaces of the archive**: map the namespace with
    /// [`Restore::target_namespace`], and derive the name again where the action changed it.
    ///
    /// # Errors
    ///
    /// An error ends the wait, counts as one of the restore, and **the item is restored all the same**. For
    /// trouble that may pass return `false`.
    async fn are_additional_items_ready(
        &self,
        _items: Vec<ResourceIdentifier>,
        _restore: Restore,
    ) -> Result<bool> {
        Ok(true)
    }

    /// How far an operation is. Asked once right after the last item, then every ten seconds, **each time in a new
    /// process**: nothing kept in memory is there.
    ///
    /// # Errors
    ///
    /// **Any error ends the operation for good.** Return one only where asking again is pointless, and
    /// [`Progress::running`] with a description for all that may pass.
    async fn progress(&self, _operation: OperationId, _restore: Restore) -> Result<Progress> {
        Err(AsyncNotSupported)?
    }

    /// Gives an operation up: called once when it outlives the restore's `itemOperationTimeout`.
    ///
    /// # Errors
    ///
    /// Seen nowhere. The operation counts as failed in any case.
    async fn cancel(&self, _operation: OperationId, _restore: Restore) -> Result<()> {
        Ok(())
    }
}

kind_service!(RestoreItemActionV2, wire::restore_item_action_server::RestoreItemActionServer, |action| Some(
    action.applies_to()
));

#[async_trait]
impl wire::restore_item_action_server::RestoreItemAction for Handlers<dyn RestoreItemActionV2> {
    async fn applies_to(
        &self,
        request: Request<wire::RestoreItemActionAppliesToRequest>,
    ) -> Result<Response<wire::RestoreItemActionAppliesToResponse>, Status> {
        self.call(&request.into_inner().plugin, "applies_to", |action| async move {
            let selector = Some(action.applies_to().into_wire());
            Ok(wire::RestoreItemActionAppliesToResponse { resource_selector: selector })
        })
        .await
    }

    async fn execute(
        &self,
        request: Request<wire::RestoreItemActionExecuteRequest>,
    ) -> Result<Response<wire::RestoreItemActionExecuteResponse>, Status> {
        let wire::RestoreItemActionExecuteRequest { plugin, item: came, restore: of, item_from_backup } =
            request.into_inner();
        self.call(&plugin, "execute", |action| async move {
            Ok(action.execute(input(came.clone(), item_from_backup, &of)?).await?.into_wire(came))
        })
        .await
    }

    async fn are_additional_items_ready(
        &self,
        request: Request<wire::RestoreItemActionItemsReadyRequest>,
    ) -> Result<Response<wire::RestoreItemActionItemsReadyResponse>, Status> {
        let wire::RestoreItemActionItemsReadyRequest { plugin, restore: of, additional_items } =
            request.into_inner();
        self.call(&plugin, "are_additional_items_ready", |action| async move {
            let items = additional_items.into_iter().map(ResourceIdentifier::from_wire).collect();
            let ready = action.are_additional_items_ready(items, restore(&of)?).await?;
            Ok(wire::RestoreItemActionItemsReadyResponse { ready })
        })
        .await
    }

    async fn progress(
        &self,
        request: Request<wire::RestoreItemActionProgressRequest>,
    ) -> Result<Response<wire::RestoreItemActionProgressResponse>, Status> {
        let wire::RestoreItemActionProgressRequest { plugin, operation_id: id, restore: of } =
            request.into_inner();
        self.call(&plugin, "progress", |action| async move {
            let progress = action.progress(operation_id(id)?, restore(&of)?).await?;
            Ok(wire::RestoreItemActionProgressResponse { progress: Some(progress.into_wire()) })
        })
        .await
    }

    async fn cancel(
        &self,
        request: Request<wire::RestoreItemActionCancelRequest>,
    ) -> Result<Response<()>, Status> {
        let wire::RestoreItemActionCancelRequest { plugin, operation_id: id, restore: of } =
            request.into_inner();
        self.call(
            &plugin,
            "cancel",
            |action| async move { action.cancel(operation_id(id)?, restore(&of)?).await },
        )
        .await
    }
}
