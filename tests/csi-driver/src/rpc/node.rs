//! The Node service: volumes in pods, without a staging step.

use tonic::{Request, Response, Status};

use crate::csi::node_server::Node;
use crate::csi::{
    NodeGetCapabilitiesRequest, NodeGetCapabilitiesResponse, NodeGetInfoRequest, NodeGetInfoResponse,
    NodePublishVolumeRequest, NodePublishVolumeResponse, NodeUnpublishVolumeRequest,
    NodeUnpublishVolumeResponse,
};
use crate::state::check_capabilities;

use super::{Service, about, plain};

#[tonic::async_trait]
impl Node for Service {
    async fn node_get_info(
        &self,
        _: Request<NodeGetInfoRequest>,
    ) -> Result<Response<NodeGetInfoResponse>, Status> {
        self.driver
            .serve(plain("NodeGetInfo"), |driver, _| {
                Ok(NodeGetInfoResponse {
                    node_id: driver.config().node_id.clone(),
                    ..NodeGetInfoResponse::default()
                })
            })
            .await
    }

    async fn node_get_capabilities(
        &self,
        _: Request<NodeGetCapabilitiesRequest>,
    ) -> Result<Response<NodeGetCapabilitiesResponse>, Status> {
        let reply = NodeGetCapabilitiesResponse::default();
        self.driver.serve(plain("NodeGetCapabilities"), |_, _| Ok(reply)).await
    }

    async fn node_publish_volume(
        &self,
        request: Request<NodePublishVolumeRequest>,
    ) -> Result<Response<NodePublishVolumeResponse>, Status> {
        let request = request.into_inner();
        let call = about("NodePublishVolume", &request.volume_id, &request.secrets);
        self.driver
            .serve(call, move |driver, _| {
                driver.transition(|state, _| {
                    check_capabilities(request.volume_capability.as_slice())?;
                    state.publish_volume(&request.volume_id, &request.target_path, request.readonly)
                })?;
                Ok(NodePublishVolumeResponse {})
            })
            .await
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<NodeUnpublishVolumeRequest>,
    ) -> Result<Response<NodeUnpublishVolumeResponse>, Status> {
        let request = request.into_inner();
        let call = about("NodeUnpublishVolume", &request.volume_id, &std::collections::HashMap::new());
        self.driver
            .serve(call, move |driver, _| {
                driver.transition(|state, _| {
                    state.unpublish_volume(&request.volume_id, &request.target_path)
                })?;
                Ok(NodeUnpublishVolumeResponse {})
            })
            .await
    }
}
