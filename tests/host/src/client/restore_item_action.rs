//! Actions on the items of a restore, of both versions; version 1 looks like version 2 without operations and waits.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use velero_plugin::AsyncNotSupported;
use velero_plugin::client::proto::generated::{
    self, restore_item_action_client::RestoreItemActionClient as V1,
};
use velero_plugin::client::proto::v2::{self, restore_item_action_client::RestoreItemActionClient as V2};

use super::error::CallError;
use super::plugin::{Plugin, connect};
use super::progress::Progress;
use super::resource::{ResourceIdentifier, Selection};
use crate::go::json;

/// A restore item action.
#[derive(Clone)]
pub enum RestoreItemAction {
    /// Version 1.
    V1(Plugin),
    /// Version 2.
    V2(Plugin),
}

/// What an action made of an item.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Executed {
    /// The item to go on with; there must be one also where it is not restored.
    pub item: Value,
    /// Items of the archive to restore now, in their original namespaces.
    pub additional_items: Vec<ResourceIdentifier>,
    /// The item is not to be restored.
    pub skip_restore: bool,
    /// The operation that was started; empty for none.
    #[serde(rename = "operationID")]
    pub operation_id: String,
    /// The item waits until the additional ones are ready.
    pub wait_for_additional_items: bool,
    /// For so long; zero for the server's own limit.
    pub additional_items_ready_timeout: Duration,
}

impl RestoreItemAction {
    /// The plugin that is called.
    pub fn plugin(&self) -> &Plugin {
        match self {
            Self::V1(plugin) | Self::V2(plugin) => plugin,
        }
    }

    /// The items that the action wants.
    ///
    /// # Errors
    ///
    /// When the call failed; nothing is restored then.
    pub async fn applies_to(&self) -> Result<Selection, CallError> {
        let call = |channel, plugin| async move {
            let selector = match self {
                Self::V1(_) => {
                    let request = generated::RestoreItemActionAppliesToRequest { plugin };
                    connect!(V1<_>, channel).applies_to(request).await?.into_inner().resource_selector
                }
                Self::V2(_) => {
                    let request = v2::RestoreItemActionAppliesToRequest { plugin };
                    connect!(V2<_>, channel).applies_to(request).await?.into_inner().resource_selector
                }
            };
            Ok(Selection::from_wire(selector))
        };
        self.plugin().call("AppliesTo", call).await
    }

    /// Runs the action on `item`; `item_from_backup` is how it lies in the archive.
    ///
    /// # Errors
    ///
    /// When the call failed or the reply holds no object; the item is not restored then.
    pub async fn execute(
        &self,
        item: &Value,
        item_from_backup: &Value,
        restore: &Value,
    ) -> Result<Executed, CallError> {
        let item = json::compact(item).into();
        let item_from_backup = json::compact(item_from_backup).into();
        let restore = json::compact(restore).into();
        let call = |channel, plugin| async move {
            let reply = match self {
                Self::V1(_) => {
                    let request = generated::RestoreItemActionExecuteRequest {
                        plugin,
                        item,
                        restore,
                        item_from_backup,
                    };
                    let reply = connect!(V1<_>, channel).execute(request).await?.into_inner();
                    v2::RestoreItemActionExecuteResponse {
                        item: reply.item,
                        additional_items: reply.additional_items,
                        skip_restore: reply.skip_restore,
                        ..v2::RestoreItemActionExecuteResponse::default()
                    }
                }
                Self::V2(_) => {
                    let request =
                        v2::RestoreItemActionExecuteRequest { plugin, item, restore, item_from_backup };
                    connect!(V2<_>, channel).execute(request).await?.into_inner()
                }
            };
            let timeout = reply.additional_items_ready_timeout.and_then(|timeout| timeout.try_into().ok());
            Ok(Executed {
                item: json::object(&reply.item)?,
                additional_items: ResourceIdentifier::list(reply.additional_items),
                skip_restore: reply.skip_restore,
                operation_id: reply.operation_id,
                wait_for_additional_items: reply.wait_for_additional_items,
                additional_items_ready_timeout: timeout.unwrap_or_default(),
            })
        };
        self.plugin().call("Execute", call).await
    }

    /// How far an operation is.
    ///
    /// # Errors
    ///
    /// When the call failed; the operation is failed for good then.
    pub async fn progress(&self, operation_id: &str, restore: &Value) -> Result<Progress, CallError> {
        let Self::V2(plugin) = self else { return Err(AsyncNotSupported.into()) };
        let (operation_id, restore) = (operation_id.to_owned(), json::compact(restore).into());
        let call = |channel, plugin| async move {
            let request = v2::RestoreItemActionProgressRequest { plugin, operation_id, restore };
            Progress::from_wire(connect!(V2<_>, channel).progress(request).await?.into_inner().progress)
        };
        plugin.call("Progress", call).await
    }

    /// Gives an operation up.
    ///
    /// # Errors
    ///
    /// When the call failed; the server does not care.
    pub async fn cancel(&self, operation_id: &str, restore: &Value) -> Result<(), CallError> {
        let Self::V2(plugin) = self else { return Ok(()) };
        let (operation_id, restore) = (operation_id.to_owned(), json::compact(restore).into());
        let call = |channel, plugin| async move {
            let request = v2::RestoreItemActionCancelRequest { plugin, operation_id, restore };
            connect!(V2<_>, channel).cancel(request).await?;
            Ok(())
        };
        plugin.call("Cancel", call).await
    }

    /// Whether the additional items are ready; asked at once and then every second.
    ///
    /// # Errors
    ///
    /// When the call failed; the item is restored all the same, with an error in the results.
    pub async fn are_additional_items_ready(
        &self,
        items: &[ResourceIdentifier],
        restore: &Value,
    ) -> Result<bool, CallError> {
        let Self::V2(plugin) = self else { return Ok(true) };
        let additional_items = items.iter().map(ResourceIdentifier::to_wire).collect();
        let restore = json::compact(restore).into();
        let call = |channel, plugin| async move {
            let request = v2::RestoreItemActionItemsReadyRequest { plugin, restore, additional_items };
            Ok(connect!(V2<_>, channel).are_additional_items_ready(request).await?.into_inner().ready)
        };
        plugin.call("AreAdditionalItemsReady", call).await
    }
}
