//! The gRPC services of a plugin: go-plugin's own and Velero's kinds, on one connection.

mod go_plugin;
mod health;
mod lister;
mod router;

pub(crate) use lister::ListedKinds;
pub(crate) use router::Router;
