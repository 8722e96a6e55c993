//! A process that is started again when it died, by the server's rules.

use std::sync::Arc;

use tonic::transport::Channel;
use velero_plugin::client::StartError;

use super::journal::Journal;
use super::start::{Ended, LineSink, Running, Start};
use crate::event::Event;
use crate::log::Level;

/// So many failed starts in a row are tried.
const MOST_FAILURES: u32 = 10;

/// Why there is no process to call.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// It did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It died too often.
    #[error("unable to restart plugin process: exceeded maximum number of reset failures")]
    TooManyFailures,
}

pub(crate) struct Restartable {
    command: String,
    start: Arc<dyn Start>,
    journal: Arc<Journal>,
    running: Option<Box<dyn Running>>,
    generation: u64,
    failures: u32,
}

impl Restartable {
    pub(crate) async fn start(
        command: &str,
        start: Arc<dyn Start>,
        journal: Arc<Journal>,
    ) -> Result<Self, SessionError> {
        let mut new =
            Self { command: command.to_owned(), start, journal, running: None, generation: 0, failures: 0 };
        new.running = Some(new.launch().await?);
        Ok(new)
    }

    /// The connection and the generation of the process. A process that is known to have ended is replaced first;
    /// what was being called when it ended is not called again.
    pub(crate) async fn channel(&mut self) -> Result<(Channel, u64), SessionError> {
        let ended = self.running.as_mut().and_then(|running| running.exited());
        if let Some(status) = ended {
            self.running = None;
            if !status.success() {
                self.journal.host(Level::Error, &format!("plugin process exited: {} {status}", self.command));
            }
        }
        if self.running.is_none() {
            self.running = Some(self.restart().await?);
        }
        let running = self.running.as_ref().ok_or(SessionError::TooManyFailures)?;
        Ok((running.channel(), self.generation))
    }

    async fn restart(&mut self) -> Result<Box<dyn Running>, SessionError> {
        if self.failures > MOST_FAILURES {
            return Err(SessionError::TooManyFailures);
        }
        match self.launch().await {
            Ok(running) => {
                self.failures = 0;
                self.generation += 1;
                Ok(running)
            }
            Err(error) => {
                self.failures += 1;
                Err(error.into())
            }
        }
    }

    async fn launch(&self) -> Result<Box<dyn Running>, StartError> {
        let journal = self.journal.clone();
        let command = self.command.clone();
        let sink: LineSink = Box::new(move |line| journal.plugin(&command, line));
        let running = self.start.start(&self.command, sink).await?;
        let took = running.started_in();
        self.journal.observer().observe(&Event::ProcessStarted { command: &self.command, took });
        Ok(running)
    }

    /// Ends the process, if there is one.
    pub(crate) async fn end(&mut self) -> Option<Ended> {
        let running = self.running.take()?;
        Some(running.stop().await)
    }
}
