//! The actions on ConfigMaps, right except for the one breach.

use async_trait::async_trait;
use tonic::{Request, Response, Status};
use velero_plugin::client::proto::generated::delete_item_action_server::DeleteItemAction;
use velero_plugin::client::proto::generated::plugin_lister_server::PluginLister;
use velero_plugin::client::proto::generated::{
    DeleteItemActionAppliesToRequest, DeleteItemActionAppliesToResponse, DeleteItemActionExecuteRequest,
    ListPluginsResponse, PluginIdentifier, ResourceSelector,
};
use velero_plugin::client::proto::v2::backup_item_action_server::BackupItemAction;
use velero_plugin::client::proto::v2::{
    BackupItemActionAppliesToRequest, BackupItemActionAppliesToResponse, BackupItemActionCancelRequest,
    BackupItemActionProgressRequest, BackupItemActionProgressResponse, ExecuteRequest, ExecuteResponse,
};

use crate::behaviour::Behaviour;

/// What a failing Progress says; the tests look for it.
const PROGRESS_ERROR: &str = "the array forgot this operation";

/// All services of one misbehaving plugin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actions(pub(crate) Behaviour);

impl Actions {
    fn dies(self, here: Behaviour) {
        if self.0 == here {
            std::process::exit(3);
        }
    }
}

fn config_maps() -> ResourceSelector {
    ResourceSelector { included_resources: vec!["configmaps".to_owned()], ..ResourceSelector::default() }
}

#[async_trait]
impl PluginLister for Actions {
    async fn list_plugins(&self, _: Request<ListRequest>) -> Result<Response<ListPluginsResponse>, Status> {
        let command = std::env::args().next().unwrap_or_default();
        let identifier = |(kind, name): (&str, &str)| PluginIdentifier {
            command: command.clone(),
            kind: kind.to_owned(),
            name: name.to_owned(),
        };
        Ok(Response::new(ListPluginsResponse {
            plugins: self.0.plugins().into_iter().map(identifier).collect(),
        }))
    }
}

type ListRequest = velero_plugin::client::proto::generated::Empty;

#[async_trait]
impl BackupItemAction for Actions {
    async fn applies_to(
        &self,
        _: Request<BackupItemActionAppliesToRequest>,
    ) -> Result<Response<BackupItemActionAppliesToResponse>, Status> {
        Ok(Response::new(BackupItemActionAppliesToResponse { resource_selector: Some(config_maps()) }))
    }

    async fn execute(&self, request: Request<ExecuteRequest>) -> Result<Response<ExecuteResponse>, Status> {
        self.dies(Behaviour::DiesInExecute);
        let request = request.into_inner();
        // An operation in the Finalizing phases would be another breach.
        let finalizing = String::from_utf8_lossy(&request.backup).contains("\"phase\":\"Finalizing");
        let operation_id = if finalizing { String::new() } else { "operation".to_owned() };
        Ok(Response::new(ExecuteResponse { item: request.item, operation_id, ..ExecuteResponse::default() }))
    }

    async fn progress(
        &self,
        _: Request<BackupItemActionProgressRequest>,
    ) -> Result<Response<BackupItemActionProgressResponse>, Status> {
        self.dies(Behaviour::DiesInProgress);
        Err(Status::unknown(PROGRESS_ERROR))
    }

    async fn cancel(&self, _: Request<BackupItemActionCancelRequest>) -> Result<Response<()>, Status> {
        Ok(Response::new(()))
    }
}

#[async_trait]
impl DeleteItemAction for Actions {
    async fn applies_to(
        &self,
        _: Request<DeleteItemActionAppliesToRequest>,
    ) -> Result<Response<DeleteItemActionAppliesToResponse>, Status> {
        Ok(Response::new(DeleteItemActionAppliesToResponse { resource_selector: Some(config_maps()) }))
    }

    async fn execute(
        &self,
        _: Request<DeleteItemActionExecuteRequest>,
    ) -> Result<Response<DeleteReply>, Status> {
        self.dies(Behaviour::DiesInDelete);
        Ok(Response::new(DeleteReply::default()))
    }
}

type DeleteReply = velero_plugin::client::proto::generated::Empty;
