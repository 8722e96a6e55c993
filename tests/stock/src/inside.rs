//! The process in the sandbox: holds one stack at a time and runs scenarios on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};

use crate::build::{Plugin, Programs};

use crate::components::driver;
use crate::components::snapshots::Pace;
use crate::components::velero::Server;
use crate::demo;
use crate::golden;
use crate::measures::{self, Extent};
use crate::minor::Minor;
use crate::outside::interrupted_code;
use crate::ports::Ports;
use crate::process::Launcher;
use crate::report::{self, Outcome, Verdict};
use crate::sandbox::Sandbox;
use crate::scenarios::{self, Scenario};
use crate::screen::{self, Screen};
use crate::stack::Stack;
use crate::tools;

/// What the process in the sandbox is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) minor: Minor,
    pub(crate) programs: Programs,
    pub(crate) sandbox: Sandbox,
    /// Everything that is written goes here.
    pub(crate) folder: PathBuf,
    pub(crate) task: Task,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Task {
    Scenarios { names: Vec<String> },
    Up { enable_csi: bool, plugins: Vec<PathBuf> },
    Demo { round: u64, verbose: bool },
    Measure { pace: Pace, extent: Extent },
    Golden { hello: Plugin, check: bool },
}

impl Job {
    pub(crate) fn results(&self) -> PathBuf {
        self.folder.join("results.jsonl")
    }
}

pub(crate) fn run(job: &Path) -> Result<ExitCode> {
    let job: Job = serde_json::from_slice(&fs::read(job)?).context("the job is not readable")?;
    if let Sandbox::Namespaces { .. } = job.sandbox {
        let up = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status();
        ensure!(up.context("cannot start ip")?.success(), "cannot bring the loopback up");
    }
    block_on(async {
        match &job.task {
            Task::Scenarios { names } => run_all(&job, names).await,
            Task::Up { enable_csi, plugins } => up(&job, *enable_csi, plugins).await,
            Task::Demo { round, verbose } => {
                let mut stack = start(&job, 1, &Screen::new()).await?;
                demo::tell(&mut stack, Duration::from_secs(*round), *verbose).await
            }
            Task::Measure { pace, extent } => {
                let mut stack = start(&job, 1, &Screen::new()).await?;
                measures::run(&mut stack, *pace, extent).await
            }
            Task::Golden { hello, check } => {
                let mut stack = start(&job, 1, &Screen::new()).await?;
                let plugins = job.programs.ours.plugins.iter().chain([hello]).cloned().collect();
                golden::make(&mut stack, plugins, &job.folder.join("golden"), *check).await
            }
        }
    })
}

/// Runs to the end, or until Ctrl-C, SIGTERM or the end of standard input: then the work is dropped, and with it all
/// processes.
fn block_on(work: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    // One thread: the children ask the kernel to die with the thread that started them.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminated = signal(SignalKind::terminate())?;
        tokio::select! {
            done = work => done,
            _ = tokio::signal::ctrl_c() => Ok(interrupted_code()),
            _ = terminated.recv() => Ok(interrupted_code()),
            () = let_go() => Ok(interrupted_code()),
        }
    })
}

/// Completes when the process that started this one closes its end of standard input; never when that is no pipe.
async fn let_go() {
    match pipe::OpenOptions::new().open_receiver("/dev/stdin") {
        Ok(mut lifeline) => drop(lifeline.read(&mut [0]).await),
        Err(_) => std::future::pending().await,
    }
}

/// Scenarios share a stack while they pass; a failure costs the stack, so that the next one starts clean.
async fn run_all(job: &Job, names: &[String]) -> Result<ExitCode> {
    let screen = Screen::new();
    let mut stack = None;
    let mut stacks = 0;
    for scenario in scenarios::ALL.iter().filter(|scenario| names.iter().any(|name| name == scenario.name)) {
        let began = Instant::now();
        let (verdict, note) = if let Some(reason) = (scenario.skip_on)(job.minor) {
            (Verdict::Skipped, reason.to_owned())
        } else {
            if stack.is_none() {
                stacks += 1;
                stack = Some(start(job, stacks, &screen).await?);
            }
            let Some(running) = stack.as_mut() else { continue };
            match scenario_on(running, scenario, &screen).await {
                Ok(note) => (Verdict::Passed, note),
                Err(error) => {
                    stack = None;
                    (Verdict::Failed, format!("{error:#}"))
                }
            }
        };
        screen.line(scenario.name, &format!("{}: {note}", verdict.text()));
        let outcome = Outcome {
            scenario: scenario.name.to_owned(),
            minor: job.minor,
            verdict,
            seconds: began.elapsed().as_secs_f64(),
            note,
        };
        report::append(&job.results(), &outcome)?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn start(job: &Job, number: usize, screen: &Screen) -> Result<Stack> {
    screen.line(&format!("stack {number}"), &format!("starting for Velero {}", job.minor));
    let folder = job.folder.join(format!("stack-{number}"));
    let pace = match job.task {
        Task::Measure { pace, .. } => pace,
        _ => Pace::default(),
    };
    Stack::start(job.minor, job.programs.clone(), job.sandbox, &folder, pace, screen).await
}

async fn scenario_on(stack: &mut Stack, scenario: &Scenario, screen: &Screen) -> Result<String> {
    screen.line(scenario.name, "running");
    let limit = Duration::from_secs(600);
    let ran = tokio::time::timeout(limit, (scenario.run)(stack)).await;
    ran.with_context(|| format!("not done after {} s", limit.as_secs()))?
}

async fn up(job: &Job, enable_csi: bool, plugins: &[PathBuf]) -> Result<ExitCode> {
    let screen = Screen::new();
    let mut stack = start(job, 1, &screen).await?;
    let mut server = Server { enable_csi, ..Server::default() };
    server.plugins.clone_from(&job.programs.ours.plugins);
    for path in plugins {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        server.plugins.push(Plugin { name, path: path.clone() });
    }
    stack.start_server(server).await?;
    let tools = tools::folder(&job.folder);
    screen::print(&format!(
        "\nVelero {} is up. Ctrl-C ends it.\n\n  {t}/kubectl get backups\n  {t}/velero backup create b1 --include-namespaces default\n  \
         {t}/enter COMMAND…    any command in the sandbox\n\n  kubeconfig  {}\n  logs        {}\n",
        job.minor,
        stack.access.kubeconfig.display(),
        stack.logs().display(),
        t = tools.display(),
    ));
    std::future::pending::<()>().await;
    Ok(ExitCode::SUCCESS)
}

/// Runs the conformance suite on a driver of its own; its words go to the terminal.
pub(crate) fn sanity(suite: &Path, driver: &Path, screen: &Screen) -> Result<ExitCode> {
    let folder = tempfile::Builder::new().prefix("velero-stock-sanity-").tempdir()?;
    let launcher =
        Launcher { logs: folder.path().to_owned(), home: folder.path().to_owned(), screen: screen.clone() };
    block_on(async {
        let ports = Ports::choose(Sandbox::Loopback)?;
        let driver = driver::start(&launcher, driver, folder.path(), ports).await?;
        let mut command = launcher.command(suite);
        command.arg(format!("--csi.endpoint=unix://{}", driver.socket.display()));
        command.args(["--ginkgo.focus", "Identity|Controller"]);
        let status = command.status().await.context("cannot start csi-sanity")?;
        Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}
