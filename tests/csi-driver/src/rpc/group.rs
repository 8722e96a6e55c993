//! The `GroupController` service: snapshots of several volumes at once.

use jiff::Timestamp;
use tonic::{Request, Response, Status};

use crate::csi::group_controller_server::GroupController;
use crate::csi::group_controller_service_capability::{Rpc, Type, rpc};
use crate::csi::{
    CreateVolumeGroupSnapshotRequest, CreateVolumeGroupSnapshotResponse, DeleteVolumeGroupSnapshotRequest,
    DeleteVolumeGroupSnapshotResponse, GetVolumeGroupSnapshotRequest, GetVolumeGroupSnapshotResponse,
    GroupControllerGetCapabilitiesRequest, GroupControllerGetCapabilitiesResponse,
    GroupControllerServiceCapability,
};
use crate::driver::Call;
use crate::state::NewGroup;

use super::{Service, about, message, plain, sorted};

#[tonic::async_trait]
impl GroupController for Service {
    async fn group_controller_get_capabilities(
        &self,
        _: Request<GroupControllerGetCapabilitiesRequest>,
    ) -> Result<Response<GroupControllerGetCapabilitiesResponse>, Status> {
        let all = Rpc { r#type: rpc::Type::CreateDeleteGetVolumeGroupSnapshot.into() };
        let capabilities = vec![GroupControllerServiceCapability { r#type: Some(Type::Rpc(all)) }];
        let reply = GroupControllerGetCapabilitiesResponse { capabilities };
        self.driver.serve(plain("GroupControllerGetCapabilities"), |_, _| Ok(reply)).await
    }

    async fn create_volume_group_snapshot(
        &self,
        request: Request<CreateVolumeGroupSnapshotRequest>,
    ) -> Result<Response<CreateVolumeGroupSnapshotResponse>, Status> {
        let request = request.into_inner();
        let parameters = sorted(request.parameters);
        let call = Call {
            parameters: parameters.clone(),
            volumes: request.source_volume_ids.clone(),
            ..about("CreateVolumeGroupSnapshot", &request.name, &request.secrets)
        };
        self.driver
            .serve(call, move |driver, verdict| {
                let new = NewGroup { name: request.name, volume_ids: request.source_volume_ids, parameters };
                let group = driver.transition(|state, context| {
                    state.create_group(new, verdict.shape(context.now), context)
                })?;
                let group = driver.read(|state| message::group(state, &group, Timestamp::now()));
                Ok(CreateVolumeGroupSnapshotResponse { group_snapshot: Some(group) })
            })
            .await
    }

    async fn delete_volume_group_snapshot(
        &self,
        request: Request<DeleteVolumeGroupSnapshotRequest>,
    ) -> Result<Response<DeleteVolumeGroupSnapshotResponse>, Status> {
        let request = request.into_inner();
        let call = about("DeleteVolumeGroupSnapshot", &request.group_snapshot_id, &request.secrets);
        self.driver
            .serve(call, move |driver, _| {
                driver.transition(|state, _| {
                    state.delete_group(&request.group_snapshot_id, &request.snapshot_ids)
                })?;
                Ok(DeleteVolumeGroupSnapshotResponse {})
            })
            .await
    }

    async fn get_volume_group_snapshot(
        &self,
        request: Request<GetVolumeGroupSnapshotRequest>,
    ) -> Result<Response<GetVolumeGroupSnapshotResponse>, Status> {
        let request = request.into_inner();
        let call = about("GetVolumeGroupSnapshot", &request.group_snapshot_id, &request.secrets);
        self.driver
            .serve(call, move |driver, _| {
                let group = driver.read(|state| {
                    state
                        .group(&request.group_snapshot_id, &request.snapshot_ids)
                        .map(|group| message::group(state, group, Timestamp::now()))
                })?;
                Ok(GetVolumeGroupSnapshotResponse { group_snapshot: Some(group) })
            })
            .await
    }
}
