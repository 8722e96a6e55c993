//! go-plugin's own services, done right: a host warns when they are missing, and warnings are counted.

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::{self, Stream};
use tokio::sync::Notify;
use tonic::{Request, Response, Status, Streaming};
use velero_plugin::client::proto::plugin::grpc_broker_server::GrpcBroker;
use velero_plugin::client::proto::plugin::grpc_controller_server::GrpcController;
use velero_plugin::client::proto::plugin::grpc_stdio_server::GrpcStdio;
use velero_plugin::client::proto::plugin::{ConnInfo, Empty, StdioData};

/// Controller, stdio and broker.
#[derive(Clone, Debug, Default)]
pub(crate) struct GoPlugin {
    pub(crate) stop: Arc<Notify>,
}

type Silent<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[async_trait]
impl GrpcController for GoPlugin {
    async fn shutdown(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.stop.notify_one();
        Ok(Response::new(Empty {}))
    }
}

#[async_trait]
impl GrpcStdio for GoPlugin {
    type StreamStdioStream = Silent<StdioData>;

    async fn stream_stdio(&self, _: Request<()>) -> Result<Response<Self::StreamStdioStream>, Status> {
        Ok(Response::new(Box::pin(stream::pending())))
    }
}

#[async_trait]
impl GrpcBroker for GoPlugin {
    type StartStreamStream = Silent<ConnInfo>;

    async fn start_stream(
        &self,
        _: Request<Streaming<ConnInfo>>,
    ) -> Result<Response<Self::StartStreamStream>, Status> {
        Ok(Response::new(Box::pin(stream::pending())))
    }
}
