//! Actions on the items of a backup that is deleted.

use serde_json::Value;
use velero_plugin::client::proto::generated::delete_item_action_client::DeleteItemActionClient as Client;
use velero_plugin::client::proto::generated::{
    DeleteItemActionAppliesToRequest, DeleteItemActionExecuteRequest,
};

use super::error::CallError;
use super::plugin::{Plugin, connect};
use super::resource::Selection;
use crate::go::json;

/// A delete item action.
#[derive(Clone)]
pub struct DeleteItemAction(pub Plugin);

impl DeleteItemAction {
    /// The items that the action wants.
    ///
    /// # Errors
    ///
    /// When the call failed; the deletion ends then.
    pub async fn applies_to(&self) -> Result<Selection, CallError> {
        let call = |channel, plugin| async move {
            let request = DeleteItemActionAppliesToRequest { plugin };
            let reply = connect!(Client<_>, channel).applies_to(request).await?.into_inner();
            Ok(Selection::from_wire(reply.resource_selector))
        };
        self.0.call("AppliesTo", call).await
    }

    /// Runs the action on an item of the archive.
    ///
    /// # Errors
    ///
    /// When the call failed; the released servers log it and go on.
    pub async fn execute(&self, item: &Value, backup: &Value) -> Result<(), CallError> {
        let (item, backup) = (json::compact(item).into(), json::compact(backup).into());
        let call = |channel, plugin| async move {
            let request = DeleteItemActionExecuteRequest { plugin, item, backup };
            connect!(Client<_>, channel).execute(request).await?;
            Ok(())
        };
        self.0.call("Execute", call).await
    }
}
