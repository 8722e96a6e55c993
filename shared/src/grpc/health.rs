//! The standard health service. go-plugin's contract asks for it; Velero never does.

use std::pin::Pin;

use async_trait::async_trait;
use futures_util::{Stream, StreamExt as _, stream};
use tonic::{Request, Response, Status};

use crate::generated::health as wire;
use crate::process::StopHandle;
use wire::health_check_response::ServingStatus;

/// Serving, as long as the process lives.
pub(super) struct Health {
    pub(super) stop: StopHandle,
}

fn status(service: &str) -> Option<wire::HealthCheckResponse> {
    // "plugin" is go-plugin's name for all that it serves, "" the standard's.
    matches!(service, "" | "plugin")
        .then_some(wire::HealthCheckResponse { status: ServingStatus::Serving as i32 })
}

#[async_trait]
impl wire::health_server::Health for Health {
    async fn check(
        &self,
        request: Request<wire::HealthCheckRequest>,
    ) -> Result<Response<wire::HealthCheckResponse>, Status> {
        let service = request.into_inner().service;
        let unknown = || Status::not_found(format!("unknown service {service:?}: ask for \"plugin\""));
        status(&service).map(Response::new).ok_or_else(unknown)
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<wire::HealthCheckResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<wire::HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let unknown = wire::HealthCheckResponse { status: ServingStatus::ServiceUnknown as i32 };
        let first = status(&request.into_inner().service).unwrap_or(unknown);
        let stopped = self.stop.stopped();
        let then = stream::once(stopped)
            .map(|_| Ok(wire::HealthCheckResponse { status: ServingStatus::NotServing as i32 }));
        Ok(Response::new(Box::pin(stream::iter([Ok(first)]).chain(then))))
    }
}
