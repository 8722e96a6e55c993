//! The Identity service: who the driver is and which services it has.

use tonic::{Request, Response, Status};

use crate::csi::identity_server::Identity;
use crate::csi::plugin_capability::{
    Service as ServiceCapability, Type, VolumeExpansion, service, volume_expansion,
};
use crate::csi::{
    GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse, GetPluginInfoRequest, GetPluginInfoResponse,
    PluginCapability, ProbeRequest, ProbeResponse,
};

use super::{Service, plain};

#[tonic::async_trait]
impl Identity for Service {
    async fn get_plugin_info(
        &self,
        _: Request<GetPluginInfoRequest>,
    ) -> Result<Response<GetPluginInfoResponse>, Status> {
        self.driver
            .serve(plain("GetPluginInfo"), |driver, _| {
                Ok(GetPluginInfoResponse {
                    name: driver.config().name.clone(),
                    // The sidecars end at once without it.
                    vendor_version: env!("CARGO_PKG_VERSION").to_owned(),
                    ..GetPluginInfoResponse::default()
                })
            })
            .await
    }

    async fn get_plugin_capabilities(
        &self,
        _: Request<GetPluginCapabilitiesRequest>,
    ) -> Result<Response<GetPluginCapabilitiesResponse>, Status> {
        let service = |kind: service::Type| Type::Service(ServiceCapability { r#type: kind.into() });
        let online = VolumeExpansion { r#type: volume_expansion::Type::Online.into() };
        let capabilities = [
            service(service::Type::ControllerService),
            service(service::Type::GroupControllerService),
            Type::VolumeExpansion(online),
        ]
        .map(|kind| PluginCapability { r#type: Some(kind) })
        .to_vec();
        let reply = GetPluginCapabilitiesResponse { capabilities };
        self.driver.serve(plain("GetPluginCapabilities"), |_, _| Ok(reply)).await
    }

    async fn probe(&self, _: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Status> {
        self.driver.serve(plain("Probe"), |_, _| Ok(ProbeResponse { ready: Some(true) })).await
    }
}
