//! One stage of the server's work: the plugin processes that it started, and what they logged.
//!
//! Velero keeps one process per binary and stage. The next stage starts new ones, so what a plugin keeps in memory
//! is gone between a backup and the polls of its operations.

mod journal;
mod launch;
mod restartable;
mod start;

pub use journal::{Journal, Results, Summary};
pub use launch::{Launch, Unusable};
pub use restartable::SessionError;
pub use start::{Ended, LineSink, Processes, Running, Start};

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Mutex;
use tonic::transport::Channel;

use crate::event::{Event, Observer};
use restartable::{Pace, Restartable};

/// The processes of one stage.
pub struct Session {
    start: Arc<dyn Start>,
    journal: Arc<Journal>,
    pace: Pace,
    processes: Mutex<BTreeMap<String, Arc<Mutex<Restartable>>>>,
}

/// A binary's process in a session, replaced when it died.
#[derive(Clone)]
pub struct Process {
    restartable: Arc<Mutex<Restartable>>,
    journal: Arc<Journal>,
}

impl Session {
    /// A session without processes yet.
    pub fn new(start: Arc<dyn Start>, journal: Arc<Journal>) -> Self {
        Self { start, journal, pace: Pace::Steady, processes: Mutex::new(BTreeMap::new()) }
    }

    /// The same, where one call follows the other at once.
    #[must_use]
    pub(crate) fn hurried(self) -> Self {
        Self { pace: Pace::Hurried, ..self }
    }

    /// The process of `command`, started when this is the first call for it.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub async fn process(&self, command: &str) -> Result<Process, SessionError> {
        let mut processes = self.processes.lock().await;
        let restartable = if let Some(known) = processes.get(command) {
            known.clone()
        } else {
            let new =
                Restartable::start(command, self.start.clone(), self.journal.clone(), self.pace).await?;
            let new = Arc::new(Mutex::new(new));
            processes.insert(command.to_owned(), new.clone());
            new
        };
        Ok(Process { restartable, journal: self.journal.clone() })
    }

    /// The log of the stage.
    pub fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    /// Ends the processes, one after the other as the server does it.
    pub async fn end(&self) {
        let processes = std::mem::take(&mut *self.processes.lock().await);
        for (command, process) in processes {
            // What the processes log from here on is not counted by the server either.
            let ended = process.lock().await.end().await;
            if let Some(Ended { status, killed, took }) = ended {
                let event = Event::ProcessEnded { command: &command, status, killed, took };
                self.journal.observer().observe(&event);
            }
        }
    }
}

impl Process {
    /// A connection to the running process, and its generation: 0 for the first, one more for each that replaced a
    /// dead one. A store must be initialised again in each.
    ///
    /// # Errors
    ///
    /// When the process had died and no other one starts.
    pub async fn channel(&self) -> Result<(Channel, u64), SessionError> {
        self.restartable.lock().await.channel().await
    }

    /// A connection to the process as it is, even if it has died.
    pub(crate) async fn channel_as_it_is(&self) -> Result<Channel, SessionError> {
        self.restartable.lock().await.channel_as_it_is()
    }

    /// Takes note that a call found its connection broken.
    pub(crate) async fn broke(&self) {
        self.restartable.lock().await.broke().await;
    }

    pub(crate) fn observer(&self) -> &dyn Observer {
        self.journal.observer()
    }
}
