//! The Controller service: volumes and snapshots.

use jiff::Timestamp;
use tonic::{Request, Response, Status};

use crate::csi::controller_server::Controller;
use crate::csi::controller_service_capability::{Rpc, Type, rpc};
use crate::csi::{
    ControllerExpandVolumeRequest, ControllerExpandVolumeResponse, ControllerGetCapabilitiesRequest,
    ControllerGetCapabilitiesResponse, ControllerServiceCapability, CreateSnapshotRequest,
    CreateSnapshotResponse, CreateVolumeRequest, CreateVolumeResponse, DeleteSnapshotRequest,
    DeleteSnapshotResponse, DeleteVolumeRequest, DeleteVolumeResponse, GetCapacityRequest,
    GetCapacityResponse, GetSnapshotRequest, GetSnapshotResponse, ListSnapshotsRequest,
    ListSnapshotsResponse, ListVolumesRequest, ListVolumesResponse, ValidateVolumeCapabilitiesRequest,
    ValidateVolumeCapabilitiesResponse, list_snapshots_response, list_volumes_response,
    validate_volume_capabilities_response,
};
use crate::driver::Call;
use crate::state::{
    Change, NewSnapshot, NewVolume, PageRequest, Refusal, SnapshotFilter, Source, check_capabilities,
};

use super::{Service, about, message, plain, sorted};

/// What the Controller service can do.
const CAPABILITIES: [rpc::Type; 8] = [
    rpc::Type::CreateDeleteVolume,
    rpc::Type::ListVolumes,
    rpc::Type::GetCapacity,
    rpc::Type::CreateDeleteSnapshot,
    rpc::Type::ListSnapshots,
    rpc::Type::CloneVolume,
    rpc::Type::ExpandVolume,
    rpc::Type::GetSnapshot,
];

#[tonic::async_trait]
impl Controller for Service {
    async fn controller_get_capabilities(
        &self,
        _: Request<ControllerGetCapabilitiesRequest>,
    ) -> Result<Response<ControllerGetCapabilitiesResponse>, Status> {
        let capability = |kind: rpc::Type| ControllerServiceCapability {
            r#type: Some(Type::Rpc(Rpc { r#type: kind.into() })),
        };
        let reply = ControllerGetCapabilitiesResponse { capabilities: CAPABILITIES.map(capability).to_vec() };
        self.driver.serve(plain("ControllerGetCapabilities"), |_, _| Ok(reply)).await
    }

    // === Volumes ===

    async fn create_volume(
        &self,
        request: Request<CreateVolumeRequest>,
    ) -> Result<Response<CreateVolumeResponse>, Status> {
        let request = request.into_inner();
        let parameters = sorted(request.parameters);
        let call = Call {
            parameters: parameters.clone(),
            volumes: vec![request.name.clone()],
            ..about("CreateVolume", &request.name, &request.secrets)
        };
        self.driver
            .serve(call, move |driver, _| {
                let new = NewVolume {
                    name: request.name,
                    capacity: request.capacity_range.unwrap_or_default().into(),
                    source: request.volume_content_source.map(Source::try_from).transpose()?,
                    parameters,
                };
                let volume = driver.transition(|state, context| {
                    check_capabilities(&request.volume_capabilities)?;
                    if !request.mutable_parameters.is_empty() {
                        let reason = "volumes can't be modified".to_owned();
                        return Err(Refusal::Invalid { field: "mutable_parameters", reason });
                    }
                    state.create_volume(new, context)
                })?;
                Ok(CreateVolumeResponse { volume: Some(volume.into()) })
            })
            .await
    }

    async fn delete_volume(
        &self,
        request: Request<DeleteVolumeRequest>,
    ) -> Result<Response<DeleteVolumeResponse>, Status> {
        let request = request.into_inner();
        self.driver
            .serve(about("DeleteVolume", &request.volume_id, &request.secrets), move |driver, _| {
                driver.transition(|state, _| state.delete_volume(&request.volume_id))?;
                Ok(DeleteVolumeResponse {})
            })
            .await
    }

    async fn validate_volume_capabilities(
        &self,
        request: Request<ValidateVolumeCapabilitiesRequest>,
    ) -> Result<Response<ValidateVolumeCapabilitiesResponse>, Status> {
        let request = request.into_inner();
        let call = about("ValidateVolumeCapabilities", &request.volume_id, &request.secrets);
        self.driver
            .serve(call, move |driver, _| {
                driver.read(|state| state.volume(&request.volume_id).map(|_| ()))?;
                match check_capabilities(&request.volume_capabilities) {
                    Ok(()) => {}
                    Err(refusal @ Refusal::Missing { .. }) => return Err(refusal.into()),
                    // Not an error: the answer to the question is no.
                    Err(refusal) => {
                        let message = refusal.to_string();
                        return Ok(ValidateVolumeCapabilitiesResponse { confirmed: None, message });
                    }
                }
                let confirmed = validate_volume_capabilities_response::Confirmed {
                    volume_context: request.volume_context,
                    volume_capabilities: request.volume_capabilities,
                    parameters: request.parameters,
                };
                Ok(ValidateVolumeCapabilitiesResponse { confirmed: Some(confirmed), message: String::new() })
            })
            .await
    }

    async fn list_volumes(
        &self,
        request: Request<ListVolumesRequest>,
    ) -> Result<Response<ListVolumesResponse>, Status> {
        let request = request.into_inner();
        self.driver
            .serve(plain("ListVolumes"), move |driver, _| {
                let page =
                    PageRequest { max_entries: request.max_entries, starting_token: &request.starting_token };
                let page = driver.read(|state| state.list_volumes(page))?;
                let entry = |volume| list_volumes_response::Entry { volume: Some(volume) };
                let entries = page.entries.into_iter().map(|volume| entry(volume.into())).collect();
                Ok(ListVolumesResponse { entries, next_token: page.next_token })
            })
            .await
    }

    async fn get_capacity(
        &self,
        _: Request<GetCapacityRequest>,
    ) -> Result<Response<GetCapacityResponse>, Status> {
        self.driver
            .serve(plain("GetCapacity"), |driver, _| {
                let pool_bytes = driver.config().pool_bytes;
                let available_capacity = driver.read(|state| state.available_bytes(pool_bytes));
                Ok(GetCapacityResponse { available_capacity, maximum_volume_size: Some(pool_bytes) })
            })
            .await
    }

    async fn controller_expand_volume(
        &self,
        request: Request<ControllerExpandVolumeRequest>,
    ) -> Result<Response<ControllerExpandVolumeResponse>, Status> {
        let request = request.into_inner();
        let call = about("ControllerExpandVolume", &request.volume_id, &request.secrets);
        self.driver
            .serve(call, move |driver, _| {
                let capacity_bytes = driver.transition(|state, context| {
                    if let Some(capability) = &request.volume_capability {
                        check_capabilities(std::slice::from_ref(capability))?;
                    }
                    let range = request.capacity_range.map(Into::into);
                    let reply = state.expand_volume(&request.volume_id, range, context)?;
                    Ok(Change { reply, work: Vec::new() })
                })?;
                Ok(ControllerExpandVolumeResponse { capacity_bytes, node_expansion_required: false })
            })
            .await
    }

    // === Snapshots ===

    async fn create_snapshot(
        &self,
        request: Request<CreateSnapshotRequest>,
    ) -> Result<Response<CreateSnapshotResponse>, Status> {
        let request = request.into_inner();
        let parameters = sorted(request.parameters);
        let call = Call {
            parameters: parameters.clone(),
            volumes: vec![request.source_volume_id.clone()],
            ..about("CreateSnapshot", &request.name, &request.secrets)
        };
        self.driver
            .serve(call, move |driver, verdict| {
                let new = NewSnapshot { name: request.name, volume_id: request.source_volume_id, parameters };
                let snapshot = driver.transition(|state, context| {
                    state.create_snapshot(new, verdict.shape(context.now), context)
                })?;
                let snapshot = message::snapshot(&snapshot, Timestamp::now());
                Ok(CreateSnapshotResponse { snapshot: Some(snapshot) })
            })
            .await
    }

    async fn delete_snapshot(
        &self,
        request: Request<DeleteSnapshotRequest>,
    ) -> Result<Response<DeleteSnapshotResponse>, Status> {
        let request = request.into_inner();
        self.driver
            .serve(about("DeleteSnapshot", &request.snapshot_id, &request.secrets), move |driver, _| {
                driver.transition(|state, _| state.delete_snapshot(&request.snapshot_id))?;
                Ok(DeleteSnapshotResponse {})
            })
            .await
    }

    async fn list_snapshots(
        &self,
        request: Request<ListSnapshotsRequest>,
    ) -> Result<Response<ListSnapshotsResponse>, Status> {
        let request = request.into_inner();
        let call = Call {
            volumes: vec![request.source_volume_id.clone()],
            ..about("ListSnapshots", &request.snapshot_id, &request.secrets)
        };
        self.driver
            .serve(call, move |driver, _| {
                let filter = SnapshotFilter {
                    snapshot_id: &request.snapshot_id,
                    volume_id: &request.source_volume_id,
                };
                let page =
                    PageRequest { max_entries: request.max_entries, starting_token: &request.starting_token };
                let page = driver.read(|state| state.list_snapshots(filter, page))?;
                let now = Timestamp::now();
                let entry = |snapshot| list_snapshots_response::Entry {
                    snapshot: Some(message::snapshot(snapshot, now)),
                };
                let entries = page.entries.iter().map(entry).collect();
                Ok(ListSnapshotsResponse { entries, next_token: page.next_token })
            })
            .await
    }

    async fn get_snapshot(
        &self,
        request: Request<GetSnapshotRequest>,
    ) -> Result<Response<GetSnapshotResponse>, Status> {
        let request = request.into_inner();
        self.driver
            .serve(about("GetSnapshot", &request.snapshot_id, &request.secrets), move |driver, _| {
                let snapshot = driver.read(|state| {
                    state
                        .snapshot(&request.snapshot_id)
                        .map(|found| message::snapshot(found, Timestamp::now()))
                })?;
                Ok(GetSnapshotResponse { snapshot: Some(snapshot) })
            })
            .await
    }
}
