//! How a session gets at a running plugin: as a process, or in another way that a test chooses.

use std::process::ExitStatus;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tonic::transport::Channel;
use velero_plugin::client::{PluginProcess, StartError};

use super::launch::Launch;
use crate::log::LogLine;

/// Takes the lines of a plugin's log.
pub type LineSink = Box<dyn FnMut(&LogLine) + Send>;

/// The server waits for the answer to Shutdown as long as the process lives; this host gives up after so long.
const STOP_GUARD: Duration = Duration::from_secs(60);

/// Starts plugins.
#[async_trait]
pub trait Start: Send + Sync {
    /// Starts the plugin that `command` names.
    async fn start(&self, command: &str, sink: LineSink) -> Result<Box<dyn Running>, StartError>;
}

/// A plugin that runs.
#[async_trait]
pub trait Running: Send + Sync {
    /// The connection to it.
    fn channel(&self) -> Channel;

    /// Its process id, where it has one of its own.
    fn id(&self) -> Option<u32> {
        None
    }

    /// From before the start until the handshake.
    fn started_in(&self) -> Duration {
        Duration::ZERO
    }

    /// How it ended, if it has.
    fn exited(&mut self) -> Option<ExitStatus> {
        None
    }

    /// Ends it.
    async fn stop(self: Box<Self>) -> Ended;
}

/// How a plugin ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Unknown for a plugin that is no process of ours.
    pub status: Option<ExitStatus>,
    /// It had to be killed.
    pub killed: bool,
    /// From the request until the end.
    pub took: Duration,
}

/// Starts plugins as processes, as Velero does.
#[derive(Debug, Clone, Default)]
pub struct Processes(pub Launch);

#[async_trait]
impl Start for Processes {
    async fn start(&self, command: &str, mut sink: LineSink) -> Result<Box<dyn Running>, StartError> {
        let mut reader = self.0.log_reader();
        let on_stderr = move |line: String| reader.read(&line).iter().for_each(&mut sink);
        Ok(Box::new(PluginProcess::start(self.0.command(command), on_stderr).await?))
    }
}

#[async_trait]
impl Running for PluginProcess {
    fn channel(&self) -> Channel {
        Self::channel(self)
    }

    fn id(&self) -> Option<u32> {
        Self::id(self)
    }

    fn started_in(&self) -> Duration {
        Self::started_in(self)
    }

    fn exited(&mut self) -> Option<ExitStatus> {
        Self::exited(self).ok().flatten()
    }

    async fn stop(self: Box<Self>) -> Ended {
        let began = Instant::now();
        // The process is killed when the guard drops what stops it.
        match tokio::time::timeout(STOP_GUARD, Self::stop(*self)).await {
            Ok(Ok(stopped)) => {
                Ended { status: Some(stopped.status), killed: stopped.killed, took: stopped.took }
            }
            Ok(Err(_)) | Err(_) => Ended { status: None, killed: true, took: began.elapsed() },
        }
    }
}
