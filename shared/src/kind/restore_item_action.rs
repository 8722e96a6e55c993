//! RestoreItemAction, version 1: looks at each item of a restore and may change or skip it.

use async_trait::async_trait;
use bytes::Bytes;
use tonic::{Request, Response, Status};

use super::service::kind_service;
use super::{Handlers, identifiers, item, restore};
use crate::error::Result;
use crate::generated::generated as wire;
use crate::model::{Item, ResourceIdentifier, ResourceSelector, Restore};

/// An item of a restore, twice.
#[derive(Debug, Clone)]
pub struct RestoreInput {
    /// The item to restore: without status, uid and the like, and as earlier actions left it. Its namespace is
    /// the one in the archive.
    pub item: Item,
    /// The item as it lies in the archive.
    pub from_backup: Item,
    /// The restore.
    pub restore: Restore,
}

/// What becomes of an item of a restore.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    item: Option<Item>,
    additional_items: Vec<ResourceIdentifier>,
    skip: bool,
}

impl Changes {
    /// The item is restored as it came.
    pub fn unchanged() -> Self {
        Self::default()
    }

    /// This item is restored, and handed to the next action, in place of the one that came.
    pub fn changed(item: Item) -> Self {
        Self { item: Some(item), ..Self::default() }
    }

    /// The item is not restored, and no further action sees it. Additional items are ignored.
    pub fn skip() -> Self {
        Self { skip: true, ..Self::default() }
    }

    /// These are restored first. They carry the namespaces of the archive, where they must be: one that is missing
    /// there is a warning.
    #[must_use]
    pub fn with_additional_items(mut self, items: impl IntoIterator<Item = ResourceIdentifier>) -> Self {
        self.additional_items.extend(items);
        self
    }

    /// The item that takes the place of the one that came, if any.
    pub fn item(&self) -> Option<&Item> {
        self.item.as_ref()
    }

    /// The additional items.
    pub fn additional_items(&self) -> &[ResourceIdentifier] {
        &self.additional_items
    }

    /// Whether the item is left out.
    pub fn is_skipped(&self) -> bool {
        self.skip
    }

    /// The bytes for the reply, the additional items, and whether to skip. The bytes are filled even then: Velero
    /// reads them in any case.
    pub(super) fn into_wire(self, came: Bytes) -> (Bytes, Vec<wire::ResourceIdentifier>, bool) {
        (self.item.map_or(came, Item::into_bytes), identifiers(self.additional_items), self.skip)
    }
}

/// An action on the items of a restore, without waiting or asynchronous operations. New plugins implement
/// [`RestoreItemActionV2`](crate::restore::RestoreItemActionV2).
#[async_trait]
pub trait RestoreItemAction: Send + Sync + 'static {
    /// Which items [`execute`](Self::execute) sees. Velero asks once per restore, before the first item.
    fn applies_to(&self) -> ResourceSelector;

    /// Called for each matching item.
    ///
    /// # Errors
    ///
    /// An error keeps the item from being restored, and the restore becomes `PartiallyFailed`.
    async fn execute(&self, input: RestoreInput) -> Result<Changes>;
}

/// The input of an action from the texts of a request.
pub(super) fn input(came: Bytes, from_backup: Bytes, of: &Bytes) -> Result<RestoreInput> {
    // A host that has no second copy sends none.
    let from_backup = if from_backup.is_empty() { came.clone() } else { from_backup };
    Ok(RestoreInput { item: item(came)?, from_backup: item(from_backup)?, restore: restore(of)? })
}

kind_service!(RestoreItemAction, wire::restore_item_action_server::RestoreItemActionServer, |action| Some(
    action.applies_to()
));

#[async_trait]
impl wire::restore_item_action_server::RestoreItemAction for Handlers<dyn RestoreItemAction> {
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
            let changes = action.execute(input(came.clone(), item_from_backup, &of)?).await?;
            let (item, additional_items, skip_restore) = changes.into_wire(came);
            Ok(wire::RestoreItemActionExecuteResponse { item, additional_items, skip_restore })
        })
        .await
    }
}
