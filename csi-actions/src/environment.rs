//! What all actions of this process share: the settings, the cluster, and what was decided by it.

use std::sync::Arc;

use velero_plugin::HostArgs;

use crate::cluster::{Cluster, PATIENCE};
use crate::policy::Decisions;
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
    /// Which claims get a snapshot.
    pub decisions: Decisions,
}

impl Environment {
    /// Of these.
    pub fn new(settings: Settings, cluster: Cluster, server: Server) -> Self {
        let decisions = Decisions::new(cluster.patient(PATIENCE), settings.mode);
        Self { settings, cluster, server, decisions }
    }

    /// Of this process. Nothing is connected yet.
    pub fn of_process() -> Arc<Self> {
        let arguments = HostArgs::from_env();
        let settings = Settings::of_process(&arguments);
        let server = Server::new(arguments.clone());
        Arc::new(Self::new(settings, Cluster::of_server(arguments), server))
    }

    /// Whether Velero's own actions take and track the snapshots.
    pub fn is_alongside(&self) -> bool {
        self.settings.mode == Mode::Alongside
    }
}
