//! BackupItemAction, version 1: looks at each item of a backup and may change what is archived.

use async_trait::async_trait;
use bytes::Bytes;
use tonic::{Request, Response, Status};

use super::service::kind_service;
use super::{Handlers, backup, identifiers, item};
use crate::error::Result;
use crate::generated::generated as wire;
use crate::model::{Backup, Item, ResourceIdentifier, ResourceSelector};

/// What becomes of an item of a backup.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    item: Option<Item>,
    additional_items: Vec<ResourceIdentifier>,
}

impl Changes {
    /// The item is archived as it came, byte for byte.
    pub fn unchanged() -> Self {
        Self::default()
    }

    /// This item is archived, and handed to the next action, in place of the one that came.
    pub fn changed(item: Item) -> Self {
        Self { item: Some(item), ..Self::default() }
    }

    /// These are backed up as well, now. They pass the backup's filters unless the returned item carries the annotation
    /// `backup.velero.io/must-include-additional-items: "true"`. One that doesn't exist is a warning; any other trouble
    /// with one fails this item.
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

    /// The bytes for the reply (those that came where nothing changed) and the additional items.
    pub(super) fn into_wire(self, came: Bytes) -> (Bytes, Vec<wire::ResourceIdentifier>) {
        (self.item.map_or(came, Item::into_bytes), identifiers(self.additional_items))
    }
}

/// An action on the items of a backup, without asynchronous operations. New plugins implement
/// [`BackupItemActionV2`](crate::backup::BackupItemActionV2).
#[async_trait]
pub trait BackupItemAction: Send + Sync + 'static {
    /// Which items [`execute`](Self::execute) sees. Velero asks once per backup, before the first item.
    fn applies_to(&self) -> ResourceSelector;

    /// Called for each matching item, possibly several at once, and again for items that other actions added.
    ///
    /// # Errors
    ///
    /// An error keeps the item out of the backup, which becomes `PartiallyFailed`.
    async fn execute(&self, item: Item, backup: Backup) -> Result<Changes>;
}

kind_service!(BackupItemAction, wire::backup_item_action_server::BackupItemActionServer, |action| Some(
    action.applies_to()
));

#[async_trait]
impl wire::backup_item_action_server::BackupItemAction for Handlers<dyn BackupItemAction> {
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
            let changes = action.execute(item(came.clone())?, backup(&of)?).await?;
            let (item, additional_items) = changes.into_wire(came);
            Ok(wire::ExecuteResponse { item, additional_items })
        })
        .await
    }
}
