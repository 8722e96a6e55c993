//! Finds the service of a request by its path.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use tonic::body::Body;
use tonic::codegen::Service as _;

use super::go_plugin::GoPlugin;
use super::health::Health;
use super::lister::{ListedKinds, Lister};
use crate::generated::{generated, health, plugin};
use crate::kind::{Kind, KindService, not_registered};
use crate::plugin::Plugin;
use crate::process::{Calls, StopHandle};

/// The services of a plugin.
pub(crate) struct Router {
    go_plugin: Arc<GoPlugin>,
    health: Arc<Health>,
    lister: Arc<Lister>,
    kinds: BTreeMap<Kind, Arc<dyn KindService>>,
}

impl Router {
    pub(crate) fn new(plugin: Plugin, kinds: ListedKinds, calls: &Calls, stop: StopHandle) -> Self {
        let lister = Lister {
            command: std::env::args_os().next().unwrap_or_default().to_string_lossy().into_owned(),
            plugins: plugin.names().map(|(kind, name)| (kind, name.to_string())).collect(),
            kinds,
        };
        let services = plugin.into_services().map(|(kind, mut service)| {
            service.count_in(calls);
            (kind, Arc::from(service))
        });
        Self {
            go_plugin: Arc::new(GoPlugin { stop: stop.clone() }),
            health: Arc::new(Health { stop }),
            lister: Arc::new(lister),
            kinds: services.collect(),
        }
    }

    /// Answers one request. Never fails: an error is a gRPC status.
    pub(crate) async fn route(&self, request: Request<Incoming>) -> Response<Body> {
        macro_rules! serve {
            ($server:path, $service:ident) => {{
                use $server as Server;
                let answered = Server::from_arc(Arc::clone(&self.$service)).call(request).await;
                answered.unwrap_or_else(|never| match never {})
            }};
        }
        let service = request.uri().path().split('/').nth(1).unwrap_or_default();
        match service {
            "plugin.GRPCController" => {
                serve!(plugin::grpc_controller_server::GrpcControllerServer, go_plugin)
            }
            "plugin.GRPCStdio" => serve!(plugin::grpc_stdio_server::GrpcStdioServer, go_plugin),
            "plugin.GRPCBroker" => serve!(plugin::grpc_broker_server::GrpcBrokerServer, go_plugin),
            "grpc.health.v1.Health" => serve!(health::health_server::HealthServer, health),
            "generated.PluginLister" => serve!(generated::plugin_lister_server::PluginListerServer, lister),
            _ => match Kind::ALL.into_iter().find(|kind| kind.service() == service) {
                Some(kind) => match self.kinds.get(&kind) {
                    Some(service) => Arc::clone(service).serve(request).await,
                    None => not_registered(kind, request).await,
                },
                None => tonic::Status::unimplemented(format!("unknown service {service}")).into_http(),
            },
        }
    }
}
