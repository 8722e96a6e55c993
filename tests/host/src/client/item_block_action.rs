//! Actions that tell which items belong together.

use serde_json::Value;
use velero_plugin::client::proto::v1::item_block_action_client::ItemBlockActionClient as Client;
use velero_plugin::client::proto::v1::{
    ItemBlockActionAppliesToRequest, ItemBlockActionGetRelatedItemsRequest,
};

use super::error::CallError;
use super::plugin::{Plugin, connect};
use super::resource::{ResourceIdentifier, Selection};
use crate::go::json;

/// An item block action.
#[derive(Clone)]
pub struct ItemBlockAction(pub Plugin);

impl ItemBlockAction {
    /// The items that the action wants.
    ///
    /// # Errors
    ///
    /// When the call failed; the whole backup fails then.
    pub async fn applies_to(&self) -> Result<Selection, CallError> {
        let call = |channel, plugin| async move {
            let request = ItemBlockActionAppliesToRequest { plugin };
            let reply = connect!(Client<_>, channel).applies_to(request).await?.into_inner();
            Ok(Selection::from_wire(reply.resource_selector))
        };
        self.0.call("AppliesTo", call).await
    }

    /// The items that belong into one block with `item`.
    ///
    /// # Errors
    ///
    /// When the call failed; it counts as an error of the backup, which goes on.
    pub async fn get_related_items(
        &self,
        item: &Value,
        backup: &Value,
    ) -> Result<Vec<ResourceIdentifier>, CallError> {
        let (item, backup) = (json::compact(item).into(), json::compact(backup).into());
        let call = |channel, plugin| async move {
            let request = ItemBlockActionGetRelatedItemsRequest { plugin, item, backup };
            let reply = connect!(Client<_>, channel).get_related_items(request).await?.into_inner();
            Ok(ResourceIdentifier::list(reply.related_items))
        };
        self.0.call("GetRelatedItems", call).await
    }
}
