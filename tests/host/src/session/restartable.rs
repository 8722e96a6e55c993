//! A process that is started again when it died, by the server's rules.

use std::sync::Arc;
use std::time::Duration;

use tonic::transport::Channel;
use velero_plugin::client::StartError;

use super::journal::Journal;
use super::start::{Ended, LineSink, Running, Start};
use crate::event::Event;
use crate::log::Level;

/// So many failed starts in a row are tried.
const MOST_FAILURES: u32 = 10;
/// A process whose connection broke is gone long before.
const EXIT_GUARD: Duration = Duration::from_secs(5);

/// Why there is no process to call.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// It did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It died too often.
    #[error("unable to restart plugin process: exceeded maximum number of reset failures")]
    TooManyFailures,
    /// Its stage is over.
    #[error("the plugin's process was ended with its stage")]
    Ended,
}

/// How closely calls follow each other. A real server notices the end of a process some milliseconds after the call
/// that met it; what it calls until then goes to the dead one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// One more call is lost: the items of a backup.
    Steady,
    /// All further calls of the stage are lost: polls and deletions.
    Hurried,
}

/// What is known of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    /// It answered so far.
    Alive,
    /// A call met its end, and the next one will too.
    Lost,
    /// Its end is noticed.
    Dead,
}

pub(crate) struct Restartable {
    command: String,
    start: Arc<dyn Start>,
    journal: Arc<Journal>,
    pace: Pace,
    /// `None` after the end of the stage.
    running: Option<Box<dyn Running>>,
    health: Health,
    generation: u64,
    failures: u32,
}

impl Restartable {
    pub(crate) async fn start(
        command: &str,
        start: Arc<dyn Start>,
        journal: Arc<Journal>,
        pace: Pace,
    ) -> Result<Self, SessionError> {
        let running = Some(launch(command, &start, &journal).await?);
        let command = command.to_owned();
        Ok(Self { command, start, journal, pace, running, health: Health::Alive, generation: 0, failures: 0 })
    }

    /// The connection and the generation of the process. A process that is known to have ended is replaced first;
    /// what was being called when it ended is not called again.
    pub(crate) async fn channel(&mut self) -> Result<(Channel, u64), SessionError> {
        if self.health == Health::Alive && self.has_exited() {
            self.health = Health::Dead;
        }
        match self.health {
            Health::Lost if self.pace == Pace::Steady => self.health = Health::Dead,
            Health::Alive | Health::Lost => {}
            Health::Dead => self.restart().await?,
        }
        Ok((self.channel_as_it_is()?, self.generation))
    }

    pub(crate) fn channel_as_it_is(&self) -> Result<Channel, SessionError> {
        let running = self.running.as_ref().ok_or(SessionError::Ended)?;
        Ok(running.channel())
    }

    /// A call found the connection broken. The end of the process is in the log before the next call.
    pub(crate) async fn broke(&mut self) {
        if self.health != Health::Alive {
            return;
        }
        let gone = async {
            while !self.has_exited() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        // One that lives on with a broken connection is called again.
        if tokio::time::timeout(EXIT_GUARD, gone).await.is_ok() {
            self.health = Health::Lost;
        }
    }

    fn has_exited(&mut self) -> bool {
        let exited = self.running.as_mut().and_then(|running| running.exited());
        let Some(status) = exited else { return false };
        if !status.success() {
            self.journal.host(Level::Error, &format!("plugin process exited: {} {status}", self.command));
        }
        true
    }

    async fn restart(&mut self) -> Result<(), SessionError> {
        if self.failures > MOST_FAILURES {
            return Err(SessionError::TooManyFailures);
        }
        match launch(&self.command, &self.start, &self.journal).await {
            Ok(running) => {
                (self.running, self.health) = (Some(running), Health::Alive);
                self.failures = 0;
                self.generation += 1;
                Ok(())
            }
            Err(error) => {
                self.failures += 1;
                Err(error.into())
            }
        }
    }

    /// Ends the process; `None` for one that ended by itself.
    pub(crate) async fn end(&mut self) -> Option<Ended> {
        let running = self.running.take().filter(|_| self.health == Health::Alive)?;
        Some(running.stop().await)
    }
}

async fn launch(
    command: &str,
    start: &Arc<dyn Start>,
    journal: &Arc<Journal>,
) -> Result<Box<dyn Running>, StartError> {
    let (log, of) = (journal.clone(), command.to_owned());
    let sink: LineSink = Box::new(move |line| log.plugin(&of, line));
    let running = start.start(command, sink).await?;
    let took = running.started_in();
    journal.observer().observe(&Event::ProcessStarted { command, id: running.id(), took });
    Ok(running)
}
