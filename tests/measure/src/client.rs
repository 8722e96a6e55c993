//! Velero's own client: the Go program that starts and calls plugins with the server's code, one job per process.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::interrupt::{self, Guarded};
use crate::statistics::{Summary, percentile};
use crate::subject::Subject;

/// Where the program lies.
#[derive(Clone, Debug)]
pub(crate) struct Client(pub(crate) PathBuf);

/// A plugin in a job.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plugin<'a> {
    command: &'a Path,
    arguments: &'a [String],
    built_in: bool,
}

impl<'a> Plugin<'a> {
    pub(crate) fn new(subject: &'a Subject, command: &'a Path) -> Self {
        Self { command, arguments: &subject.arguments, built_in: subject.built_in }
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum Job<'a> {
    Starts(&'a Starts<'a>),
    Execute(&'a Execute<'a>),
    Progress(&'a Progress<'a>),
}

#[derive(Debug, Serialize)]
struct Starts<'a> {
    plugins: Vec<Plugin<'a>>,
    rounds: usize,
}

/// Calls of Execute.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Execute<'a> {
    pub(crate) plugin: Plugin<'a>,
    /// The action's name; the first that applies to `resource` where it is empty.
    pub(crate) action: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) item: &'a Value,
    pub(crate) backup: &'a Value,
    /// Callers at once.
    pub(crate) callers: usize,
    pub(crate) warm_up: usize,
    /// Calls in all.
    pub(crate) calls: usize,
}

/// One call of Progress per operation, in a new process.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Progress<'a> {
    pub(crate) plugin: Plugin<'a>,
    pub(crate) action: &'a str,
    pub(crate) operations: &'a [String],
    pub(crate) backup: &'a Value,
}

/// What the client saw of a plugin's starts.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Started {
    /// Spawn until the handshake was taken.
    pub(crate) handshake: Summary,
    /// Spawn until the reply to ListPlugins.
    pub(crate) first_reply: Summary,
    /// The request to end until the process was gone.
    pub(crate) stop: Summary,
    /// How many plugins it listed.
    pub(crate) listed: usize,
}

/// What the client saw of calls to Execute.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Executed {
    pub(crate) action: String,
    pub(crate) callers: usize,
    pub(crate) calls: usize,
    pub(crate) calls_per_second: f64,
    /// Nanoseconds of one call, waiting for its turn included.
    pub(crate) median: u64,
    pub(crate) p99: u64,
}

/// What the client saw of a round of polls; times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Polled {
    pub(crate) calls: usize,
    pub(crate) completed: usize,
    pub(crate) failed: usize,
    /// Spawn until the last reply.
    pub(crate) duration: u64,
    /// Processor time of the plugin's process.
    pub(crate) cpu: u64,
}

impl Client {
    /// Starts, lists and ends each of the plugins so many times, in turns.
    pub(crate) fn starts(&self, plugins: Vec<Plugin<'_>>, rounds: usize) -> Result<Vec<Started>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Seen {
            handshake: Vec<u64>,
            first_reply: Vec<u64>,
            stop: Vec<u64>,
            listed: usize,
        }
        let seen: Vec<Seen> = self.run(Job::Starts(&Starts { plugins, rounds }), None)?;
        let summary = |series: &[u64]| {
            let series: Vec<_> = series.iter().copied().map(Duration::from_nanos).collect();
            Summary::of(&series).context("the client started nothing")
        };
        seen.into_iter()
            .map(|seen| {
                Ok(Started {
                    handshake: summary(&seen.handshake)?,
                    first_reply: summary(&seen.first_reply)?,
                    stop: summary(&seen.stop)?,
                    listed: seen.listed,
                })
            })
            .collect()
    }

    /// Calls Execute; nothing where the plugin has no such action.
    pub(crate) fn execute(&self, job: &Execute<'_>, kubeconfig: &Path) -> Result<Option<Executed>> {
        #[derive(Deserialize)]
        struct Seen {
            action: String,
            calls: usize,
            duration: u64,
            each: Option<Vec<u64>>,
        }
        let seen: Seen = self.run(Job::Execute(job), Some(kubeconfig))?;
        let Some(mut each) = seen.each else { return Ok(None) };
        each.sort_unstable();
        let calls = u32::try_from(seen.calls).context("too many calls")?;
        Ok(Some(Executed {
            action: seen.action,
            callers: job.callers,
            calls: seen.calls,
            calls_per_second: f64::from(calls) / Duration::from_nanos(seen.duration).as_secs_f64(),
            median: percentile(&each, 50).context("nothing was called")?,
            p99: percentile(&each, 99).context("nothing was called")?,
        }))
    }

    /// A round of polls.
    pub(crate) fn progress(&self, job: &Progress<'_>, kubeconfig: &Path) -> Result<Polled> {
        self.run(Job::Progress(job), Some(kubeconfig))
    }

    fn run<T: DeserializeOwned>(&self, job: Job<'_>, kubeconfig: Option<&Path>) -> Result<T> {
        interrupt::check()?;
        let sockets = tempfile::tempdir().context("cannot make a folder for sockets")?;
        let mut command = Command::new(&self.0);
        command.env("TMPDIR", sockets.path()).env_remove("KUBECONFIG");
        if let Some(kubeconfig) = kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut process = Guarded::new(command.spawn().context("cannot start the Velero client")?);
        // Kept open until the end: the client takes its closing for our death, and ends its plugin.
        let mut stdin = process.child().stdin.take().context("the Velero client has no input")?;
        stdin.write_all(&serde_json::to_vec(&job)?).context("the Velero client does not take its job")?;
        stdin.write_all(b"\n")?;
        let mut stdout = process.child().stdout.take().context("the Velero client has no output")?;
        let mut answer = Vec::new();
        stdout.read_to_end(&mut answer).context("the Velero client's answer cannot be read")?;
        let status = process.child().wait()?;
        interrupt::check()?;
        ensure!(status.success(), "the Velero client ended with {status}");
        serde_json::from_slice(&answer).context("the Velero client's answer is not understood")
    }
}
