//! The start-up path, counted in instructions: Velero starts a plugin thousands of times a day, and a count tells of a
//! change where a clock on a busy machine tells of its neighbours.
//!
//! These count a build of the dev profile, which every test run has; `cargo measure guard` counts what is shipped. What an
//! empty program costs is taken off, so that the C library's loader does not count, but a build of another compiler may
//! differ: the budgets are counts with Rust 1.95 on x86-64 Linux, and a tenth more. Repeated counts differ by one percent.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use e2e::Start;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt as _;

/// Whether valgrind is there; a word where it is missing.
fn can_count() -> bool {
    let version = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status();
    let found = version.is_ok_and(|status| status.success());
    if !found {
        eprintln!("skipped: valgrind is not installed, so no instructions were counted");
    }
    found
}

/// The arguments with which valgrind counts a program's instructions into `report`.
fn counting(report: &Path) -> [String; 3] {
    let log = format!("--log-file={}", report.display());
    ["--tool=callgrind".to_owned(), "--callgrind-out-file=/dev/null".to_owned(), log]
}

fn count_in(report: &Path) -> anyhow::Result<u64> {
    let report = std::fs::read_to_string(report)?;
    let counted = report.lines().find_map(|line| line.split_once("Collected : "));
    let (_, count) = counted.with_context(|| format!("valgrind counted nothing: {report}"))?;
    Ok(count.trim().parse()?)
}

/// The instructions of a program that does nothing.
fn nothing() -> anyhow::Result<u64> {
    let folder = tempfile::tempdir()?;
    let report = folder.path().join("report");
    let status =
        Command::new("valgrind").args(counting(&report)).arg(env!("CARGO_BIN_EXE_nothing")).status()?;
    anyhow::ensure!(status.success(), "{status}");
    count_in(&report)
}

/// The specimen's instructions from its start to SIGTERM right after the handshake, connected to by nobody.
async fn of_a_start() -> anyhow::Result<u64> {
    let folder = tempfile::tempdir()?;
    let report = folder.path().join("report");
    let mut child = tokio::process::Command::new("valgrind")
        .args(counting(&report))
        .arg(env!("CARGO_BIN_EXE_specimen"))
        .env("VELERO_PLUGIN", "hello")
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let mut stdout = child.stdout.take().context("stdout is piped")?;
    stdout.read_to_string(&mut String::new()).await?;
    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).context("it ended")?;
    kill_process(pid, Signal::TERM)?;
    let status = child.wait().await?;
    anyhow::ensure!(status.success(), "{status}");
    count_in(&report)
}

/// The same with go-plugin's streams opened and one call answered before the end.
async fn of_a_first_call() -> anyhow::Result<u64> {
    let folder = tempfile::tempdir()?;
    let report = folder.path().join("report");
    let start = Start::bare("valgrind").args(counting(&report)).arg(env!("CARGO_BIN_EXE_specimen"));
    let specimen = start.env("TMPDIR", folder.path()).start().await?;
    specimen.list().await?;
    // Not by the host's request: it kills after two seconds, which is short for a program that is watched so closely.
    specimen.signal(Signal::TERM)?;
    let status = specimen.wait().await?.status;
    anyhow::ensure!(status.success(), "{status}");
    count_in(&report)
}

/// Asserts that `count`, less what an empty program takes, is at most a tenth more than `counted`.
fn within(count: u64, counted: u64) -> anyhow::Result<()> {
    let count = count.saturating_sub(nothing()?);
    let budget = counted + counted / 10;
    eprintln!("{count} instructions, the budget is {budget}");
    assert!(
        count <= budget,
        "{count} instructions, the budget is {budget}: look what came into the start-up path (valgrind \
         --tool=callgrind, then callgrind_annotate), or measure the budget anew if it is worth it"
    );
    // A budget that is far too large guards nothing.
    assert!(count >= counted / 2, "only {count} instructions: lower the budget from {budget}");
    Ok(())
}

#[tokio::test]
async fn the_start_stays_within_its_budget() -> anyhow::Result<()> {
    if can_count() { within(of_a_start().await?, 1_645_000) } else { Ok(()) }
}

#[tokio::test]
async fn the_first_call_stays_within_its_budget() -> anyhow::Result<()> {
    if can_count() { within(of_a_first_call().await?, 4_050_000) } else { Ok(()) }
}
