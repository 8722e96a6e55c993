//! ItemBlockAction: says which items belong together in a backup.

use async_trait::async_trait;
use tonic::{Request, Response, Status};

use super::service::kind_service;
use super::{Handlers, backup, identifiers, item};
use crate::error::Result;
use crate::generated::v1 as wire;
use crate::model::{Backup, Item, ResourceIdentifier, ResourceSelector};

/// Groups items that are backed up by one worker, one after the other, between the same hooks. Since Velero 1.15.
#[async_trait]
pub trait ItemBlockAction: Send + Sync + 'static {
    /// Which items [`related_items`](Self::related_items) sees. Velero asks once per backup.
    fn applies_to(&self) -> ResourceSelector;

    /// The items that belong into the block of `item`. Called before the block is backed up, and for each item that was
    /// found, while other blocks are already being backed up.
    ///
    /// # Errors
    ///
    /// An error counts as one of the backup; the item is backed up without its block.
    async fn related_items(&self, item: Item, backup: Backup) -> Result<Vec<ResourceIdentifier>>;
}

kind_service!(ItemBlockAction, wire::item_block_action_server::ItemBlockActionServer, |action| Some(
    action.applies_to()
));

#[async_trait]
impl wire::item_block_action_server::ItemBlockAction for Handlers<dyn ItemBlockAction> {
    async fn applies_to(
        &self,
        request: Request<wire::ItemBlockActionAppliesToRequest>,
    ) -> Result<Response<wire::ItemBlockActionAppliesToResponse>, Status> {
        self.call(&request.into_inner().plugin, "applies_to", |action| async move {
            let selector = action.applies_to().into_wire();
            Ok(wire::ItemBlockActionAppliesToResponse { resource_selector: Some(selector) })
        })
        .await
    }

    async fn get_related_items(
        &self,
        request: Request<wire::ItemBlockActionGetRelatedItemsRequest>,
    ) -> Result<Response<wire::ItemBlockActionGetRelatedItemsResponse>, Status> {
        let wire::ItemBlockActionGetRelatedItemsRequest { plugin, item: came, backup: of } =
            request.into_inner();
        self.call(&plugin, "related_items", |action| async move {
            let items = action.related_items(item(came)?, backup(&of)?).await?;
            Ok(wire::ItemBlockActionGetRelatedItemsResponse { related_items: identifiers(items) })
        })
        .await
    }
}
