//! The process that the user starts: builds, sends one sandboxed process per server, and sums up.

use std::fs;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::thread;

use anyhow::{Context, Result, ensure};
use tokio::signal::unix::{SignalKind, signal};

use crate::build::{self, Cache, Ours};
use crate::cli::{RunOptions, Servers};
use crate::components::snapshots::Pace;
use crate::inside::{Job, Task};
use crate::measures::Extent;
use crate::minor::Minor;
use crate::report::{self, Outcome, Verdict};
use crate::sandbox::{self, Sandbox};
use crate::scenarios;
use crate::screen::{self, Screen};
use crate::tools;

pub(crate) fn build(servers: &Servers) -> Result<ExitCode> {
    let (cache, screen) = (Cache::from_environment()?, Screen::new());
    let minors = servers.minors();
    build::check_tools(&cache, &minors)?;
    let ours = Ours::build(&screen)?;
    for minor in minors {
        build::programs(&cache, minor, &ours, &screen)?;
        screen.line(&format!("velero {minor}"), "built");
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn run(options: &RunOptions) -> Result<ExitCode> {
    let names = scenarios::choose(&options.scenarios)?;
    sandbox::check_tool()?;
    let (cache, screen) = (Cache::from_environment()?, Screen::new());
    let sandbox = if options.loopback { Sandbox::Loopback } else { Sandbox::detect() };
    let stacks = match sandbox {
        Sandbox::Namespaces { .. } => usize::from(options.stacks),
        Sandbox::Loopback => 1,
    };
    if sandbox == Sandbox::Loopback {
        screen.line("sandbox", "no namespaces: free ports on loopback, one stack at a time");
    }
    let mut minors = options.servers.minors();
    let mut outcomes = Vec::new();
    if options.cached_only {
        let (cached, others): (Vec<_>, Vec<_>) =
            minors.into_iter().partition(|minor| build::is_cached(&cache, *minor).unwrap_or(false));
        for minor in others {
            screen.line(&format!("velero {minor}"), "skipped: not built before");
            outcomes.extend(names.iter().map(|name| skipped(name, minor)));
        }
        minors = cached;
    }
    build::check_tools(&cache, &minors)?;
    let ours = Ours::build(&screen)?;
    let mut kept = Vec::new();
    for minor in minors {
        let programs = build::programs(&cache, minor, &ours, &screen)?;
        let jobs = shares(&names, stacks).into_iter().map(|names| {
            let task = Task::Scenarios { names };
            Ok(Job { minor, programs: programs.clone(), sandbox, folder: run_folder(minor)?, task })
        });
        let jobs = jobs.collect::<Result<Vec<_>>>()?;
        let mut is_interrupted = false;
        for (job, ended) in jobs.iter().zip(side_by_side(&jobs)) {
            let failed = ended.seen.iter().any(|outcome| outcome.verdict == Verdict::Failed);
            outcomes.extend(ended.seen);
            let goes = !failed && !options.keep && ended.code == Some(0);
            if !goes || fs::remove_dir_all(&job.folder).is_err() {
                kept.push(job.folder.clone());
            }
            is_interrupted |= ended.code == Some(INTERRUPTED);
        }
        if is_interrupted {
            break;
        }
    }
    outcomes.sort_by_key(|outcome| scenarios::ALL.iter().position(|each| each.name == outcome.scenario));
    screen::print(&format!("\n{}", report::summary(&outcomes)));
    for folder in kept {
        screen::print(&format!("kept: {}", folder.display()));
    }
    let any = |verdict| outcomes.iter().any(|outcome| outcome.verdict == verdict);
    Ok(match (any(Verdict::Failed), any(Verdict::Passed)) {
        (true, _) => ExitCode::FAILURE,
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::from(ALL_SKIPPED),
    })
}

/// How a stack with scenarios ended.
struct Ended {
    code: Option<i32>,
    seen: Vec<Outcome>,
}

/// Sends all `jobs` at once and waits for all; how they ended, in their order.
fn side_by_side(jobs: &[Job]) -> Vec<Ended> {
    thread::scope(|scope| {
        let running: Vec<_> = jobs.iter().map(|job| scope.spawn(|| scenarios_of(job))).collect();
        let ended = running.into_iter().map(|each| each.join().unwrap_or_else(|panic| resume_unwind(panic)));
        ended.collect()
    })
}

/// Runs the scenarios of `job`. A stack that ends early says nothing about the rest: that must not look like a pass.
fn scenarios_of(job: &Job) -> Ended {
    let (code, mut why) = match send(job) {
        Ok(status) => (status.code(), format!("the stack ended with {status}")),
        Err(error) => (None, format!("{error:#}")),
    };
    let mut seen = report::read(&job.results()).unwrap_or_else(|error| {
        why = format!("{error:#}");
        Vec::new()
    });
    let names = if let Task::Scenarios { names } = &job.task { names.as_slice() } else { &[] };
    let silent = names.iter().filter(|name| seen.iter().all(|outcome| outcome.scenario != **name));
    let lost: Vec<Outcome> = silent.map(|name| unheard(name, job.minor, &why)).collect();
    seen.extend(lost);
    Ended { code, seen }
}

/// Deals `names` out to so many stacks; none is without any.
fn shares(names: &[String], stacks: usize) -> Vec<Vec<String>> {
    let stacks = stacks.min(names.len());
    (0..stacks).map(|first| names.iter().skip(first).step_by(stacks).cloned().collect()).collect()
}

pub(crate) fn up(minor: Minor, enable_csi: bool, plugins: &[PathBuf]) -> Result<ExitCode> {
    let plugins =
        plugins.iter().map(fs::canonicalize).collect::<Result<_, _>>().context("no such plugin binary")?;
    one(minor, Task::Up { enable_csi, plugins })
}

pub(crate) fn demo(minor: Minor, round: u64, verbose: bool) -> Result<ExitCode> {
    one(minor, Task::Demo { round, verbose })
}

/// At each pace on a stack of its own, one after the other: side by side they would measure each other.
pub(crate) fn measure(minor: Minor, paces: &[Pace], extent: &Extent) -> Result<ExitCode> {
    for pace in paces {
        let code = one(minor, Task::Measure { pace: *pace, extent: extent.clone() })?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn golden(check: bool) -> Result<ExitCode> {
    let hello = build::cargo::hello(&Screen::new())?;
    one(Minor::default(), Task::Golden { hello, check })
}

/// A stack for one task that a person looks at.
fn one(minor: Minor, task: Task) -> Result<ExitCode> {
    let (cache, screen, sandbox) = (Cache::from_environment()?, Screen::new(), Sandbox::detect());
    sandbox::check_tool()?;
    build::check_tools(&cache, &[minor])?;
    let ours = Ours::build(&screen)?;
    let programs = build::programs(&cache, minor, &ours, &screen)?;
    let folder = run_folder(minor)?;
    let is_up = matches!(task, Task::Up { .. });
    let job = Job { minor, programs, sandbox, folder: folder.clone(), task };
    let status = send(&job)?;
    let interrupted = status.code() == Some(INTERRUPTED);
    if status.success() || interrupted {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        // Ctrl-C is the way to end what is up, and no way to end a demo well.
        let well = status.success() || is_up;
        return Ok(if well { ExitCode::SUCCESS } else { interrupted_code() });
    }
    screen::print(&format!("kept: {}", folder.display()));
    Ok(ExitCode::FAILURE)
}

/// csi-sanity starts nothing but the driver, so it needs no stack.
pub(crate) fn sanity() -> Result<ExitCode> {
    let (cache, screen) = (Cache::from_environment()?, Screen::new());
    let sanity = build::csi_sanity(&cache, &screen)?;
    let driver = build::csi_driver(&screen)?;
    crate::inside::sanity(&sanity, &driver, &screen)
}

/// The exit code of a run in which nothing has passed and nothing has failed.
const ALL_SKIPPED: u8 = 3;

/// The exit code of a sandboxed process that was told to stop.
pub(crate) const INTERRUPTED: i32 = 130;

/// The same for this process.
pub(crate) fn interrupted_code() -> ExitCode {
    ExitCode::from(u8::try_from(INTERRUPTED).unwrap_or(1))
}

/// Runs a job in its sandbox and waits. Ctrl-C and SIGTERM close the other process's standard input, by which it knows
/// that it has to end; this one stays to sum up.
fn send(job: &Job) -> Result<ExitStatus> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // Before anything that takes time: once another thread listens, they end this process no more.
        let mut interrupted = signal(SignalKind::interrupt())?;
        let mut terminated = signal(SignalKind::terminate())?;
        let file = job.folder.join("job.json");
        fs::write(&file, serde_json::to_vec_pretty(job)?)?;
        // A copy: while the servers were built, this program's own file may have been built anew and replaced.
        let this = job.folder.join("stock");
        fs::copy("/proc/self/exe", &this).context("cannot copy this program's own file")?;
        let mut command: tokio::process::Command = job.sandbox.command(&this).into();
        command.arg("inside").arg(&file).stdin(Stdio::piped());
        let mut child = command.spawn().context("cannot start the sandbox")?;
        let mut lifeline = child.stdin.take();
        if let (Task::Up { .. }, Some(pid)) = (&job.task, child.id()) {
            tools::write(job, pid).await?;
        }
        loop {
            tokio::select! {
                status = child.wait() => return Ok(status?),
                _ = interrupted.recv() => drop(lifeline.take()),
                _ = terminated.recv() => drop(lifeline.take()),
            }
        }
    })
}

/// A folder outside of the cache: paths of sockets must be short.
fn run_folder(minor: Minor) -> Result<PathBuf> {
    let folder = tempfile::Builder::new().prefix(&format!("velero-stock-{minor}-")).tempdir()?.keep();
    ensure!(
        folder.as_os_str().len() < 70,
        "{} is too long for the path of a socket: set TMPDIR",
        folder.display()
    );
    Ok(folder)
}

fn skipped(name: &str, minor: Minor) -> Outcome {
    let note = "the server is not built".to_owned();
    Outcome { scenario: name.to_owned(), minor, verdict: Verdict::Skipped, seconds: 0.0, note }
}

fn unheard(name: &str, minor: Minor, why: &str) -> Outcome {
    let note = format!("not run: {why}");
    Outcome { scenario: name.to_owned(), minor, verdict: Verdict::Failed, seconds: 0.0, note }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_is_dealt_to_one_stack_and_no_stack_is_without_any() {
        let names: Vec<String> = ["a", "b", "c", "d", "e"].map(str::to_owned).into();
        for (stacks, dealt) in
            [(1, vec!["abcde"]), (2, vec!["ace", "bd"]), (8, vec!["a", "b", "c", "d", "e"])]
        {
            let shares: Vec<String> = shares(&names, stacks).iter().map(|share| share.concat()).collect();
            assert_eq!(shares, dealt);
        }
    }
}
