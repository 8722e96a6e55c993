//! Actions on the items of a backup, of both versions; version 1 looks like version 2 without operations.

use serde::Serialize;
use serde_json::Value;
use velero_plugin::AsyncNotSupported;
use velero_plugin::client::proto::generated::{
    self, backup_item_action_client::BackupItemActionClient as V1,
};
use velero_plugin::client::proto::v2::{self, backup_item_action_client::BackupItemActionClient as V2};

use super::error::CallError;
use super::plugin::{Plugin, connect};
use super::progress::Progress;
use super::resource::{ResourceIdentifier, Selection};
use crate::go::json;

/// A backup item action.
#[derive(Clone)]
pub enum BackupItemAction {
    /// Version 1.
    V1(Plugin),
    /// Version 2.
    V2(Plugin),
}

/// What an action made of an item.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Executed {
    /// The item to go on with.
    pub item: Value,
    /// Items to back up now.
    pub additional_items: Vec<ResourceIdentifier>,
    /// The operation that was started; empty for none.
    #[serde(rename = "operationID")]
    pub operation_id: String,
    /// Items to read again when the operation is done.
    pub post_operation_items: Vec<ResourceIdentifier>,
}

impl BackupItemAction {
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
    /// When the call failed; the whole backup fails then.
    pub async fn applies_to(&self) -> Result<Selection, CallError> {
        let call = |channel, plugin| async move {
            let selector = match self {
                Self::V1(_) => {
                    let request = generated::BackupItemActionAppliesToRequest { plugin };
                    connect!(V1<_>, channel).applies_to(request).await?.into_inner().resource_selector
                }
                Self::V2(_) => {
                    let request = v2::BackupItemActionAppliesToRequest { plugin };
                    connect!(V2<_>, channel).applies_to(request).await?.into_inner().resource_selector
                }
            };
            Ok(Selection::from_wire(selector))
        };
        self.plugin().call("AppliesTo", call).await
    }

    /// Runs the action on `item`.
    ///
    /// # Errors
    ///
    /// When the call failed or the reply holds no object; the item fails then.
    pub async fn execute(&self, item: &Value, backup: &Value) -> Result<Executed, CallError> {
        let (item, backup) = (json::compact(item).into(), json::compact(backup).into());
        let call = |channel, plugin| async move {
            let reply = match self {
                Self::V1(_) => {
                    let request = generated::ExecuteRequest { plugin, item, backup };
                    let reply = connect!(V1<_>, channel).execute(request).await?.into_inner();
                    v2::ExecuteResponse {
                        item: reply.item,
                        additional_items: reply.additional_items,
                        ..v2::ExecuteResponse::default()
                    }
                }
                Self::V2(_) => {
                    let request = v2::ExecuteRequest { plugin, item, backup };
                    connect!(V2<_>, channel).execute(request).await?.into_inner()
                }
            };
            Ok(Executed {
                item: json::object(&reply.item)?,
                additional_items: ResourceIdentifier::list(reply.additional_items),
                operation_id: reply.operation_id,
                post_operation_items: ResourceIdentifier::list(reply.post_operation_items),
            })
        };
        self.plugin().call("Execute", call).await
    }

    /// How far an operation is.
    ///
    /// # Errors
    ///
    /// When the call failed; the operation is failed for good then.
    pub async fn progress(&self, operation_id: &str, backup: &Value) -> Result<Progress, CallError> {
        let Self::V2(plugin) = self else { return Err(AsyncNotSupported.into()) };
        let (operation_id, backup) = (operation_id.to_owned(), json::compact(backup).into());
        let call = |channel, plugin| async move {
            let request = v2::BackupItemActionProgressRequest { plugin, operation_id, backup };
            Progress::from_wire(connect!(V2<_>, channel).progress(request).await?.into_inner().progress)
        };
        plugin.call("Progress", call).await
    }

    /// Gives an operation up.
    ///
    /// # Errors
    ///
    /// When the call failed; the server does not care.
    pub async fn cancel(&self, operation_id: &str, backup: &Value) -> Result<(), CallError> {
        let Self::V2(plugin) = self else { return Ok(()) };
        let (operation_id, backup) = (operation_id.to_owned(), json::compact(backup).into());
        let call = |channel, plugin| async move {
            let request = v2::BackupItemActionCancelRequest { plugin, operation_id, backup };
            connect!(V2<_>, channel).cancel(request).await?;
            Ok(())
        };
        plugin.call("Cancel", call).await
    }
}
