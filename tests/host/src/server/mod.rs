//! The server: runs backups through their phases, each stage with plugin processes of its own.

mod action;
mod backup;
mod block;
mod builtin;
mod collect;
mod delete;
mod error;
mod filters;
mod finalize;
mod item;
mod rounds;
mod volumes;

pub use action::BackupAction;
pub use delete::Deletion;
pub use error::StageError;
pub use filters::FilterError;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Mutex;
use velero_plugin::{BackupPhase, Kind};

use crate::client::{self, CallError, Plugin};
use crate::cluster::Cluster;
use crate::event::{Event, Observer};
use crate::minor::Minor;
use crate::model::Backup;
use crate::registry::{Entry, Registry};
use crate::session::{Journal, Session, Start};
use crate::store::BackupStore;
use rounds::Tracked;

/// What happens when a delete action fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// The error is logged and the backup deleted all the same: every release so far.
    #[default]
    Released,
    /// The error is told and the backup kept: what is to come after 1.18.
    Coming,
}

/// The `--resource-timeout` of a server that is told none.
pub const RESOURCE_TIMEOUT: Duration = Duration::from_secs(600);

/// What a server is made of.
pub struct Parts {
    /// Its release.
    pub minor: Minor,
    /// Whether the feature `EnableCSI` is on.
    pub enable_csi: bool,
    /// `--resource-timeout`, which a backup's annotation tells to plugins.
    pub resource_timeout: Duration,
    /// See [`Profile`].
    pub profile: Profile,
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// Where backups are stored.
    pub store: BackupStore,
    /// The plugins that it knows.
    pub registry: Registry,
    /// How they are started.
    pub start: Arc<dyn Start>,
    /// Who looks on.
    pub observer: Arc<dyn Observer>,
    /// What time it is.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

/// A server.
pub struct Server {
    parts: Parts,
    /// The operations of backups that wait for them, kept between rounds.
    tracked: Mutex<BTreeMap<String, Tracked>>,
}

impl Server {
    /// A server that has just started.
    pub fn new(parts: Parts) -> Self {
        Self { parts, tracked: Mutex::default() }
    }

    /// Where it stores backups.
    pub fn store(&self) -> &BackupStore {
        &self.parts.store
    }

    fn now(&self) -> Timestamp {
        (self.parts.now)()
    }

    /// Processes and log of a new stage.
    fn session(&self) -> Session {
        Session::new(self.parts.start.clone(), Journal::new(self.parts.observer.clone()))
    }

    /// Makes the backup's present state known.
    async fn record(&self, backup: &Backup) -> Result<(), StageError> {
        let event = Event::Phase { backup: backup.name(), phase: backup.phase() };
        self.parts.observer.observe(&event);
        Ok(self.parts.cluster.record(backup.object()).await?)
    }

    /// The plugin behind an entry.
    async fn plugin(&self, session: &Session, entry: &Entry) -> Result<Plugin, CallError> {
        Ok(Plugin::new(&entry.name, session.process(&entry.command).await?))
    }

    /// The backup item actions in the order in which they run: the server's own, then those of the plugins.
    async fn backup_actions(&self, session: &Session) -> Result<Vec<Box<dyn BackupAction>>, StageError> {
        let mut actions = builtin::backup_actions();
        for entry in self.parts.registry.of_kind(Kind::BackupItemActionV2) {
            // One name in both versions is version 2 twice.
            let used =
                self.parts.registry.find_for_use(Kind::BackupItemActionV2, &entry.name).unwrap_or(entry);
            actions.push(Box::new(self.backup_action(session, used).await?));
        }
        Ok(actions)
    }

    async fn backup_action(
        &self,
        session: &Session,
        entry: &Entry,
    ) -> Result<client::BackupItemAction, CallError> {
        let plugin = self.plugin(session, entry).await?;
        Ok(match entry.kind {
            Kind::BackupItemAction => client::BackupItemAction::V1(plugin),
            _ => client::BackupItemAction::V2(plugin),
        })
    }

    /// Runs a backup from its start to its end. What went wrong stands in the phase and in `status.failureReason`.
    ///
    /// # Errors
    ///
    /// As of [`run_on`](Self::run_on).
    pub async fn run(&self, backup: &mut Backup, interval: Duration) -> Result<(), StageError> {
        self.back_up(backup).await?;
        self.run_on(backup, interval).await
    }

    /// Runs a backup whose items are done to its end: a round over its operations every `interval`, then finalize.
    ///
    /// # Errors
    ///
    /// When the cluster or the store fails; a real server tries again for ever.
    pub async fn run_on(&self, backup: &mut Backup, interval: Duration) -> Result<(), StageError> {
        while crate::phase::is_waiting(backup.phase()) {
            tokio::time::sleep(interval).await;
            self.round(backup).await?;
        }
        self.finalize(backup).await
    }

    /// Takes a backup of this server up again after a restart, from what is stored of it.
    ///
    /// # Errors
    ///
    /// When it can't be read.
    pub async fn resume(&self, name: &str) -> Result<Option<Backup>, StageError> {
        let Some(mut backup) = self.parts.store.metadata(name).await? else { return Ok(None) };
        if backup.phase() == BackupPhase::InProgress {
            backup.fail(
                "found a backup with status \"InProgress\" during the server starting, mark it as \"Failed\"",
                self.now(),
            );
            self.record(&backup).await?;
        }
        Ok(Some(backup))
    }
}
