//! A child process of the stack: in a group of its own, with its output in a file, ended when it is dropped.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use crate::screen::Screen;

/// Starts the processes of one stack.
#[derive(Clone, Debug)]
pub(crate) struct Launcher {
    /// Each process writes `NAME.log` here.
    pub(crate) logs: PathBuf,
    /// Home and temporary folder of all of them, so that nothing of the user's own set-up leaks in.
    pub(crate) home: PathBuf,
    pub(crate) screen: Screen,
}

impl Launcher {
    /// A command with a clean environment that dies with this process, even if that is killed.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.home)
            .env("TMPDIR", &self.home)
            .current_dir(&self.home)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Starts `command` as `name`; its output goes to the end of that name's log file.
    pub(crate) fn start(&self, name: &str, mut command: Command) -> Result<Process> {
        let log = self.logs.join(format!("{name}.log"));
        let out = File::options().create(true).append(true).open(&log);
        let out = out.with_context(|| format!("cannot write {}", log.display()))?;
        let child = command
            .process_group(0)
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).context("a process without an id")?;
        let screen = self.screen.clone();
        Ok(Process {
            name: name.to_owned(),
            child,
            pid: Pid::from_raw(pid),
            log,
            began: Instant::now(),
            screen,
        })
    }
}

/// A running component.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    pid: Pid,
    log: PathBuf,
    began: Instant,
    screen: Screen,
}

impl Process {
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// Waits until `probe` is content, and says so on the screen.
    ///
    /// # Errors
    /// When the process ends first, or `limit` passes; the text has the last lines of its log.
    pub(crate) async fn ready<F>(&mut self, limit: Duration, mut probe: impl FnMut() -> F) -> Result<()>
    where
        F: Future<Output = bool>,
    {
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status} while starting\n{}", self.name, self.last_lines());
            }
            if probe().await {
                self.screen.ready(&self.name, self.began.elapsed());
                return Ok(());
            }
            if self.began.elapsed() > limit {
                bail!("{} is not ready after {} s\n{}", self.name, limit.as_secs(), self.last_lines());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits for the process to end by itself.
    pub(crate) async fn ended(&mut self, limit: Duration) -> Result<ExitStatus> {
        match tokio::time::timeout(limit, self.child.wait()).await {
            Ok(status) => Ok(status?),
            Err(_) => bail!("{} still runs after {} s", self.name, limit.as_secs()),
        }
    }

    /// The end of the log, for an error text.
    pub(crate) fn last_lines(&self) -> String {
        let text =
            fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        format!("  {}", lines[lines.len().saturating_sub(8)..].join("\n  "))
    }

    /// Asks the process alone to end, as a supervisor does, and waits; after `grace` the whole group is killed.
    pub(crate) async fn stop(mut self, grace: Duration) -> Result<()> {
        let _ = kill(self.pid, Signal::SIGTERM); // it may have ended by itself
        drop(tokio::time::timeout(grace, self.child.wait()).await);
        self.end().await
    }

    /// Kills this process and no other, as the kernel does when memory runs out: what it started lives on.
    pub(crate) async fn kill_alone(mut self) -> Result<()> {
        kill(self.pid, Signal::SIGKILL).with_context(|| format!("cannot kill {}", self.name))?;
        self.child.wait().await?;
        // Dropping would end the group; that is what the caller wants to look at first.
        self.pid = Pid::from_raw(0);
        Ok(())
    }

    /// Kills the process with all that it started, and waits until it is gone.
    pub(crate) async fn end(mut self) -> Result<()> {
        self.kill_group();
        self.child.wait().await.with_context(|| format!("cannot wait for {}", self.name))?;
        Ok(())
    }

    fn kill_group(&self) {
        if self.pid.as_raw() > 1 {
            let _ = killpg(self.pid, Signal::SIGKILL); // an empty group is what is wanted
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_group();
    }
}
