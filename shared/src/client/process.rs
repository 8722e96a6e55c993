//! A plugin's process, started and ended as go-plugin's host does it.

use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::task::JoinHandle;
use tonic::transport::Channel;

use super::handshake::{Handshake, HandshakeError};
use super::proto::plugin::grpc_broker_client::GrpcBrokerClient;
use super::proto::plugin::grpc_controller_client::GrpcControllerClient;
use super::proto::plugin::grpc_stdio_client::GrpcStdioClient;
use super::proto::plugin::{ConnInfo, Empty};

/// How long the host waits for the handshake.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the host waits for the exit before it kills.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a plugin did not start. It is dead then.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The binary could not be executed.
    #[error("can't start the plugin {command:?}: {source}")]
    Spawn {
        /// What was to be executed.
        command: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// It ended without a handshake.
    #[error(
        "Unrecognized remote plugin message: Failed to read any lines from plugin's stdout; its stderr says: {stderr}"
    )]
    NoLine {
        /// What the plugin wrote to stderr.
        stderr: String,
    },
    /// It was silent.
    #[error("timeout while waiting for plugin to start")]
    Timeout,
    /// Its line was refused.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
}

/// How a plugin's process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// Its exit status.
    pub status: ExitStatus,
    /// Whether it had to be killed.
    pub killed: bool,
    /// From the request to end until the end was seen.
    pub took: Duration,
}

/// A running plugin with the connection to it. Killed when dropped.
#[derive(Debug)]
pub struct PluginProcess {
    child: Child,
    channel: Channel,
    handshake: Handshake,
    started_in: Duration,
    stdout: JoinHandle<Vec<u8>>,
    stderr: JoinHandle<()>,
    streams: [JoinHandle<()>; 2],
}

impl PluginProcess {
    /// Starts `command` with the environment that Velero adds to its own, and waits for the handshake. `command` says the
    /// arguments; its standard streams are replaced. `on_stderr` gets each line of the plugin's log.
    ///
    /// # Errors
    ///
    /// When the host would give the plugin up.
    pub async fn start(
        mut command: Command,
        mut on_stderr: impl FnMut(String) + Send + 'static,
    ) -> Result<Self, StartError> {
        command
            .env("VELERO_PLUGIN", "hello")
            .env("PLUGIN_MIN_PORT", "10000")
            .env("PLUGIN_MAX_PORT", "25000")
            .env("PLUGIN_PROTOCOL_VERSIONS", "2")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let began = Instant::now();
        let name = command.as_std().get_program().to_string_lossy().into_owned();
        let mut child = command.spawn().map_err(|source| StartError::Spawn { command: name, source })?;
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(StartError::NoLine { stderr: String::new() });
        };
        let mut stdout = BufReader::new(stdout);
        let mut log = Lines { stderr: BufReader::new(stderr), line: Vec::new() };
        // What it says before its line: the reason, where no line comes.
        let mut early = Vec::new();
        let read = tokio::time::timeout(START_TIMEOUT, first_line(&mut stdout, &mut log, &mut early)).await;
        let started_in = began.elapsed();
        let line = match read {
            Err(_) => return Err(StartError::Timeout),
            Ok(Ok(line)) if !line.is_empty() => line,
            Ok(_) => {
                // A grandchild may hold its log open.
                let rest = async {
                    while let Some(line) = log.next().await {
                        early.push(line);
                    }
                };
                let _ = tokio::time::timeout(STOP_TIMEOUT, rest).await;
                return Err(StartError::NoLine { stderr: early.join("\n").trim().to_owned() });
            }
        };
        let handshake = Handshake::parse(&line)?;
        let channel = super::channel(handshake.socket.clone());
        let stdout = tokio::spawn(rest_of(stdout));
        let stderr = tokio::spawn(async move {
            early.into_iter().for_each(&mut on_stderr);
            while let Some(line) = log.next().await {
                on_stderr(line);
            }
        });
        let streams = open_streams(&channel);
        Ok(Self { child, channel, handshake, started_in, stdout, stderr, streams })
    }

    /// The connection, for the clients of [`proto`](super::proto).
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// What the plugin announced.
    pub fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    /// From before the start of the process until its line was read.
    pub fn started_in(&self) -> Duration {
        self.started_in
    }

    /// The process id, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// How the process ended, if it has, without waiting. The host starts another one before its next call then.
    ///
    /// # Errors
    ///
    /// When the process can't be seen.
    pub fn exited(&mut self) -> std::io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Ends the plugin: asks it to, closes the connection, waits two seconds, kills.
    ///
    /// # Errors
    ///
    /// When the process' end can't be seen.
    pub async fn stop(self) -> std::io::Result<Stopped> {
        let Self { mut child, channel, stdout, stderr, streams, .. } = self;
        let began = Instant::now();
        let mut controller = GrpcControllerClient::new(channel);
        // The host waits for the reply as long as the process lives; whatever it says is fine.
        tokio::select! {
            _ = controller.shutdown(Empty {}) => {}
            _ = child.wait() => {}
        }
        // With the last user of the channel the connection closes.
        drop(controller);
        for stream in streams {
            stream.abort();
        }
        let waited = tokio::time::timeout(STOP_TIMEOUT, child.wait()).await;
        let killed = waited.is_err();
        if killed {
            child.kill().await?;
        }
        let status = child.wait().await?;
        // The end counts only when nobody holds the plugin's log open any more.
        let _ = stderr.await;
        let _ = stdout.await;
        Ok(Stopped { status, killed, took: began.elapsed() })
    }

    /// Kills the plugin, as the kernel does when memory runs out.
    ///
    /// # Errors
    ///
    /// When there is no process to kill.
    pub async fn kill(mut self) -> std::io::Result<()> {
        self.child.kill().await
    }

    /// Waits for the plugin to end by itself; what it wrote to standard output after the handshake comes with it.
    ///
    /// # Errors
    ///
    /// When the process' end can't be seen.
    pub async fn wait(mut self) -> std::io::Result<(ExitStatus, Vec<u8>)> {
        let status = self.child.wait().await?;
        let _ = (&mut self.stderr).await;
        Ok((status, (&mut self.stdout).await.unwrap_or_default()))
    }
}

/// Opens the two streams that the host holds open for the life of the connection.
fn open_streams(channel: &Channel) -> [JoinHandle<()>; 2] {
    let (mut broker, mut stdio) =
        (GrpcBrokerClient::new(channel.clone()), GrpcStdioClient::new(channel.clone()));
    let broker = tokio::spawn(async move {
        let silence = futures_util::stream::pending::<ConnInfo>();
        if let Ok(reply) = broker.start_stream(silence).await {
            let mut stream = reply.into_inner();
            while let Ok(Some(_)) = stream.message().await {}
        }
    });
    let stdio = tokio::spawn(async move {
        if let Ok(reply) = stdio.stream_stdio(()).await {
            let mut stream = reply.into_inner();
            while let Ok(Some(_)) = stream.message().await {}
        }
    });
    [broker, stdio]
}

/// The first line of `stdout`, "" at its end. Meanwhile the log is read: a plugin that says much must not block on it.
async fn first_line(
    stdout: &mut BufReader<ChildStdout>,
    log: &mut Lines,
    early: &mut Vec<String>,
) -> std::io::Result<String> {
    let mut line = String::new();
    let read = {
        let reading = stdout.read_line(&mut line);
        tokio::pin!(reading);
        loop {
            tokio::select! {
                read = &mut reading => break read,
                Some(line) = log.next() => early.push(line),
            }
        }
    };
    read.map(|_| line)
}

/// The lines of a plugin's log.
struct Lines {
    stderr: BufReader<ChildStderr>,
    /// The part of the next line that was read.
    line: Vec<u8>,
}

impl Lines {
    /// The next line without its end; `None` when there will be none. May be dropped and called again.
    async fn next(&mut self) -> Option<String> {
        let read = self.stderr.read_until(b'\n', &mut self.line).await;
        if read.is_err() || self.line.is_empty() {
            return None;
        }
        let line = std::mem::take(&mut self.line);
        Some(String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned())
    }
}

async fn rest_of(mut stdout: BufReader<ChildStdout>) -> Vec<u8> {
    let mut rest = Vec::new();
    let _ = stdout.read_to_end(&mut rest).await;
    rest
}
