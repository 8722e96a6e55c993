//! A process of the specimen, or of any other plugin: started as a host does, with its log collected.

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::process::Command;
use tonic::Status;
use tonic::transport::Channel;
use velero_host::log::{Level, LogLine, LogReader};
use velero_host::minor::Minor;
use velero_plugin::client::proto::generated::plugin_lister_client::PluginListerClient;
use velero_plugin::client::proto::v2::backup_item_action_client::BackupItemActionClient;
use velero_plugin::client::proto::{generated, v2};
use velero_plugin::client::{LARGEST_MESSAGE, PluginProcess, StartError, Stopped};

use crate::names;

/// A process to be started.
#[derive(Debug)]
pub struct Start {
    command: Command,
    /// Whether its temporary directory was chosen.
    placed: bool,
}

/// A running process. Killed when dropped.
#[derive(Debug)]
pub struct Specimen {
    process: PluginProcess,
    pid: Pid,
    log: Log,
    /// Its temporary directory, so that one that is killed leaves nothing.
    folder: TempDir,
}

/// A process that ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// What it wrote to standard output after the handshake.
    pub stdout: Vec<u8>,
    /// The lines it wrote to stderr.
    pub log: Vec<String>,
}

#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn push(&self, line: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    fn lines_after(&self, seen: usize) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.get(seen..).unwrap_or_default().to_vec()
    }
}

// === impl Start ===

impl Start {
    /// The binary at `program` (`env!("CARGO_BIN_EXE_specimen")`), told to log everything.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self::bare(program).arg("--log-level=trace")
    }

    /// The same without an argument.
    pub fn bare(program: impl AsRef<OsStr>) -> Self {
        Self { command: Command::new(program), placed: false }
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// More arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item: AsRef<OsStr>>) -> Self {
        self.command.args(args);
        self
    }

    /// Another name than the program's in `argv[0]`.
    #[must_use]
    pub fn called(mut self, name: impl AsRef<OsStr>) -> Self {
        self.command.arg0(name);
        self
    }

    /// A variable of the environment. Without a `TMPDIR` it gets one of its own.
    #[must_use]
    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.placed |= key == "TMPDIR";
        self.command.env(key, value);
        self
    }

    /// Starts it and waits for its handshake.
    ///
    /// # Errors
    ///
    /// When a host would give it up.
    pub async fn start(mut self) -> Result<Specimen, StartError> {
        let unplaced =
            |source| StartError::Spawn { command: "a temporary directory for it".to_owned(), source };
        let folder = TempDir::new().map_err(unplaced)?;
        if !self.placed {
            self.command.env("TMPDIR", folder.path());
        }
        let log = Log::default();
        let sink = log.clone();
        let process = PluginProcess::start(self.command, move |line| sink.push(line)).await?;
        let pid = process.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        // It was not waited for yet, so it has an id.
        let pid = pid.ok_or(StartError::Timeout)?;
        Ok(Specimen { process, pid, log, folder })
    }
}

// === impl Specimen ===

impl Specimen {
    /// The connection, for the clients of the protocol.
    pub fn channel(&self) -> Channel {
        self.process.channel()
    }

    /// The socket it listens on.
    pub fn socket(&self) -> &Path {
        &self.process.handshake().socket
    }

    /// Its process id.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// The lines of its log until now, but for the first `seen`.
    pub fn log_after(&self, seen: usize) -> Vec<String> {
        self.log.lines_after(seen)
    }

    /// Sends it a signal.
    ///
    /// # Errors
    ///
    /// When it is gone.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        kill_process(self.pid, signal).context("signal the specimen")
    }

    /// Asks for the list of plugins.
    ///
    /// # Errors
    ///
    /// What the call says.
    pub async fn list(&self) -> Result<Vec<generated::PluginIdentifier>, Status> {
        let reply = PluginListerClient::new(self.channel()).list_plugins(generated::Empty {}).await?;
        Ok(reply.into_inner().plugins)
    }

    /// A client of the backup action, version 2.
    pub fn backup_actions(&self) -> BackupItemActionClient<Channel> {
        BackupItemActionClient::new(self.channel()).max_decoding_message_size(LARGEST_MESSAGE)
    }

    /// Hands `item` to the backup action, version 2.
    ///
    /// # Errors
    ///
    /// What the call says.
    pub async fn execute(&self, item: impl Into<Bytes>) -> Result<v2::ExecuteResponse, Status> {
        let request = v2::ExecuteRequest {
            plugin: names::BACKUP.to_owned(),
            item: item.into(),
            backup: crate::item::backup("InProgress"),
        };
        Ok(self.backup_actions().execute(request).await?.into_inner())
    }

    /// Ends it as a host does.
    ///
    /// # Errors
    ///
    /// When its end can't be seen.
    pub async fn stop(self) -> anyhow::Result<(Stopped, Vec<String>)> {
        let Self { process, log, folder: _folder, .. } = self;
        let stopped = process.stop().await?;
        Ok((stopped, log.lines_after(0)))
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    ///
    /// When its end can't be seen.
    pub async fn wait(self) -> anyhow::Result<Ended> {
        let Self { process, log, folder: _folder, .. } = self;
        let (status, stdout) = process.wait().await?;
        Ok(Ended { status, stdout, log: log.lines_after(0) })
    }

    /// Kills it as the kernel does when memory runs out.
    ///
    /// # Errors
    ///
    /// When it is gone already.
    pub async fn kill(self) -> anyhow::Result<()> {
        let Self { process, folder: _folder, .. } = self;
        Ok(process.kill().await?)
    }
}

/// The entries that a server at the lowest level makes of a log.
///
/// # Errors
///
/// With the first line that is no entry, or would end the server.
pub fn entries(log: &[String]) -> anyhow::Result<Vec<LogLine>> {
    let mut reader = LogReader::new(Minor::default(), Level::Trace);
    let mut entries = Vec::new();
    for line in log {
        for entry in reader.read(line) {
            if let Some(fault) = entry.fault {
                anyhow::bail!("{fault}: {line:.300}");
            }
            if let Some(why) = entry.unread {
                anyhow::bail!("{why:?}: {line:.300}");
            }
            entries.push(entry);
        }
    }
    Ok(entries)
}
