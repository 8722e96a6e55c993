//! One kind's service, and what all of them have in common.
//!
//! A service is linked into a plugin only when something of its kind is registered: the binary starts thousands of
//! times a day, and most plugins have one or two of nine kinds.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use tonic::body::Body;
use tonic::{Status, server};

use super::Kind;
use crate::model::ResourceSelector;
use crate::name::PluginName;
use crate::process::Calls;

/// Velero sends items of any size; gRPC's own default of 4 MiB would refuse the larger ones.
pub(crate) const LARGEST_MESSAGE: usize = i32::MAX as usize;

/// The answer to a request.
pub(crate) type Answer = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// The plugins of one kind behind its gRPC service.
pub(crate) trait KindService: Any + Send + Sync {
    /// Counts the calls in `calls`.
    fn count_in(&mut self, calls: &Calls);

    /// Answers one request. Never fails: an error is a gRPC status.
    fn serve(self: Arc<Self>, request: Request<Incoming>) -> Answer;

    /// Which items the plugin `name` applies to, for kinds that have items.
    fn selector(&self, name: &PluginName) -> Option<ResourceSelector>;
}

/// Puts the handlers of `$plugin` behind the generated `$server`. `$selector` tells a plugin's selector.
macro_rules! kind_service {
    ($plugin:path, $server:path, $selector:expr) => {
        impl $crate::kind::KindService for $crate::kind::Handlers<dyn $plugin> {
            fn count_in(&mut self, calls: &$crate::process::Calls) {
                self.set_calls(calls);
            }

            fn serve(
                self: std::sync::Arc<Self>,
                request: http::Request<hyper::body::Incoming>,
            ) -> $crate::kind::Answer {
                use tonic::codegen::Service as _;
                use $server as Server;
                let mut service =
                    Server::from_arc(self).max_decoding_message_size($crate::kind::LARGEST_MESSAGE);
                Box::pin(async move { service.call(request).await.unwrap_or_else(|never| match never {}) })
            }

            fn selector(&self, name: &$crate::PluginName) -> Option<$crate::ResourceSelector> {
                let selector: fn(&dyn $plugin) -> Option<$crate::ResourceSelector> = $selector;
                selector(self.get(name)?.as_ref())
            }
        }
    };
}
pub(super) use kind_service;

/// Answers a request to a kind of which nothing is registered, as a Go plugin does: it serves all kinds, and knows
/// no plugin of that name.
pub(crate) async fn not_registered(kind: Kind, request: Request<Incoming>) -> Response<Body> {
    let service = NotRegistered(kind);
    server::Grpc::new(tonic_prost::ProstCodec::default())
        .max_decoding_message_size(LARGEST_MESSAGE)
        .unary(service, request)
        .await
}

/// The words of a Go plugin, which users search for.
pub(super) fn not_found(kind: Kind, name: &str) -> Status {
    Status::unknown(format!("{kind} plugin: {name} was not found or has an invalid name format"))
}

struct NotRegistered(Kind);

/// What the requests of every kind have in common: the name comes first.
#[derive(Clone, PartialEq, prost::Message)]
struct AnyRequest {
    #[prost(string, tag = "1")]
    plugin: String,
}

impl server::UnaryService<AnyRequest> for NotRegistered {
    type Response = ();
    type Future = std::future::Ready<Result<tonic::Response<()>, Status>>;

    fn call(&mut self, request: tonic::Request<AnyRequest>) -> Self::Future {
        std::future::ready(Err(not_found(self.0, &request.into_inner().plugin)))
    }
}
