//! go-plugin's own services: Controller ends the process, Stdio and Broker are streams that only stay open.

use std::pin::Pin;

use async_trait::async_trait;
use futures_util::{Stream, StreamExt as _, stream};
use tonic::{Request, Response, Status, Streaming};

use crate::generated::plugin as wire;
use crate::process::{Stop, StopHandle};

/// The three services.
pub(super) struct GoPlugin {
    pub(super) stop: StopHandle,
}

type Silence<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl GoPlugin {
    /// A stream that says nothing and ends well when the process does. Ending with an error in the middle of a backup
    /// would be one of the backup's.
    fn silence<T: Send + 'static>(&self) -> Silence<T> {
        let stopped = self.stop.stopped();
        Box::pin(stream::once(stopped).filter_map(|_| async { None }))
    }
}

#[async_trait]
impl wire::grpc_controller_server::GrpcController for GoPlugin {
    /// Answers at once; the host waits for it without a limit, then two seconds for the process.
    async fn shutdown(&self, _: Request<wire::Empty>) -> Result<Response<wire::Empty>, Status> {
        self.stop.stop(Stop::Shutdown);
        Ok(Response::new(wire::Empty {}))
    }
}

#[async_trait]
impl wire::grpc_stdio_server::GrpcStdio for GoPlugin {
    type StreamStdioStream = Silence<wire::StdioData>;

    /// Nothing is ever sent: logs go over stderr, and Velero throws away what comes here.
    async fn stream_stdio(&self, _: Request<()>) -> Result<Response<Self::StreamStdioStream>, Status> {
        Ok(Response::new(self.silence()))
    }
}

#[async_trait]
impl wire::grpc_broker_server::GrpcBroker for GoPlugin {
    type StartStreamStream = Silence<wire::ConnInfo>;

    /// Velero opens the stream and never writes to it.
    async fn start_stream(
        &self,
        request: Request<Streaming<wire::ConnInfo>>,
    ) -> Result<Response<Self::StartStreamStream>, Status> {
        let mut incoming = request.into_inner();
        let stopped = self.stop.stopped();
        tokio::spawn(async move {
            // The host leaves its half open; holding on to ours would keep the connection from ending.
            let read = async { while let Ok(Some(_)) = incoming.message().await {} };
            tokio::select! {
                () = read => {}
                _ = stopped => {}
            }
        });
        Ok(Response::new(self.silence()))
    }
}
