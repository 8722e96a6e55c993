//! The gRPC services: each method checks what only the message can tell, and leaves the rest to the state.

mod controller;
mod group;
mod identity;
mod message;
mod node;

use std::collections::HashMap;
use std::sync::Arc;

use crate::csi::controller_server::ControllerServer;
use crate::csi::group_controller_server::GroupControllerServer;
use crate::csi::identity_server::IdentityServer;
use crate::csi::node_server::NodeServer;
use crate::driver::{Call, Driver};
use crate::state::Parameters;

/// All services of one driver.
#[derive(Debug, Clone)]
struct Service {
    driver: Arc<Driver>,
}

/// The routes of all services.
pub fn routes(driver: &Arc<Driver>) -> tonic::service::Routes {
    let service = Service { driver: Arc::clone(driver) };
    tonic::service::Routes::new(IdentityServer::new(service.clone()))
        .add_service(ControllerServer::new(service.clone()))
        .add_service(GroupControllerServer::new(service.clone()))
        .add_service(NodeServer::new(service))
}

/// A call about nothing in particular.
fn plain(method: &'static str) -> Call {
    Call { method, ..Call::default() }
}

/// A call about one object.
fn about(method: &'static str, name: &str, secrets: &HashMap<String, String>) -> Call {
    Call { method, names: vec![name.to_owned()], secrets: keys(secrets), ..Call::default() }
}

/// The keys of secrets; their values are not kept.
fn keys(secrets: &HashMap<String, String>) -> Vec<String> {
    let mut keys: Vec<String> = secrets.keys().cloned().collect();
    keys.sort();
    keys
}

/// Parameters in the state's form.
fn sorted(parameters: HashMap<String, String>) -> Parameters {
    parameters.into_iter().collect()
}
