//! What all actions of this process share: the settings and the cluster.

use std::sync::Arc;

use velero_plugin::HostArgs;

use crate::cluster::Cluster;
use crate::server::Server;
use crate::settings::{Mode, Settings};

/// The settings and the cluster.
#[derive(Debug)]
pub struct Environment {
    /// What the operator has set.
    pub settings: Settings,
    /// The cluster that the server backs up.
    pub cluster: Cluster,
    /// The server that started this process.
    pub server: Server,
}

impl Environment {
    /// Of this process. Nothing is connected yet.
    pub fn of_process() -> Arc<Self> {
        let arguments = HostArgs::from_env();
        Arc::new(Self {
            settings: Settings::of_process(&arguments),
            server: Server::new(arguments.clone()),
            cluster: Cluster::of_server(arguments),
        })
    }

    /// Whether Velero's own actions take and track the snapshots.
    pub fn is_alongside(&self) -> bool {
        self.settings.mode == Mode::Alongside
    }
}
