//! DeleteItemAction: cleans up after each item of a backup that is deleted.

use async_trait::async_trait;
use tonic::{Request, Response, Status};

use super::service::kind_service;
use super::{Handlers, backup, item};
use crate::error::Result;
use crate::generated::generated as wire;
use crate::model::{Backup, Item, ResourceSelector};

/// An action on the archived items of a backup that is being deleted.
#[async_trait]
pub trait DeleteItemAction: Send + Sync + 'static {
    /// Which items [`execute`](Self::execute) sees. Velero asks once per deletion.
    fn applies_to(&self) -> ResourceSelector;

    /// Called for each matching item of the archive, one after the other, in no certain order. It may be called again
    /// for an item that is already cleaned up: the deletion may be asked for twice.
    ///
    /// # Errors
    ///
    /// Velero logs the error and deletes the backup all the same, without another try: retry inside. After
    /// an error nothing points at what was left over but the text, so name it.
    async fn execute(&self, item: Item, backup: Backup) -> Result<()>;
}

kind_service!(DeleteItemAction, wire::delete_item_action_server::DeleteItemActionServer, |action| Some(
    action.applies_to()
));

#[async_trait]
impl wire::delete_item_action_server::DeleteItemAction for Handlers<dyn DeleteItemAction> {
    async fn applies_to(
        &self,
        request: Request<wire::DeleteItemActionAppliesToRequest>,
    ) -> Result<Response<wire::DeleteItemActionAppliesToResponse>, Status> {
        self.call(&request.into_inner().plugin, "applies_to", |action| async move {
            let selector = Some(action.applies_to().into_wire());
            Ok(wire::DeleteItemActionAppliesToResponse { resource_selector: selector })
        })
        .await
    }

    async fn execute(
        &self,
        request: Request<wire::DeleteItemActionExecuteRequest>,
    ) -> Result<Response<wire::Empty>, Status> {
        let wire::DeleteItemActionExecuteRequest { plugin, item: came, backup: of } = request.into_inner();
        self.call(&plugin, "execute", |action| async move {
            action.execute(item(came)?, backup(&of)?).await?;
            Ok(wire::Empty {})
        })
        .await
    }
}
