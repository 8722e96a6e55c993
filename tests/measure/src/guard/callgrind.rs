//! Counts the instructions of a program's start with valgrind's callgrind.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::interrupt::{self, Guarded};
use crate::procfs;

/// A plugin that has not used the processor for so long waits for its host.
const IDLE: Duration = Duration::from_millis(300);
/// Against a plugin that never rests.
const LONGEST: Duration = Duration::from_secs(60);

/// From the program's first instruction through the handshake until it waits, and from SIGTERM to its end.
pub(super) fn instructions_of_a_start(program: &Path) -> Result<u64> {
    interrupt::check()?;
    let folder = tempfile::tempdir().context("cannot make a folder for the count")?;
    let counts = folder.path().join("callgrind.out");
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", counts.display()))
        .arg(program)
        .args(["--log-level", "info"])
        // Each variable costs instructions, so there are the same ones everywhere.
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("VELERO_PLUGIN", "hello")
        .env("PLUGIN_MIN_PORT", "10000")
        .env("PLUGIN_MAX_PORT", "25000")
        .env("PLUGIN_PROTOCOL_VERSIONS", "2")
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    let mut process = Guarded::new(command.spawn().context("cannot start valgrind")?);
    let stdout = process.child().stdout.take().context("valgrind has no output")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).context("the handshake cannot be read")?;
    interrupt::check()?;
    ensure!(line.starts_with("1|2|unix|"), "{} wrote no handshake but {line:?}", program.display());
    let id = process.child().id();
    wait_until_idle(id)?;
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw).context("valgrind has no process id")?;
    kill_process(pid, Signal::TERM).context("cannot end the plugin")?;
    let status = process.child().wait()?;
    interrupt::check()?;
    ensure!(status.success(), "{} ended with {status} after SIGTERM", program.display());
    let text = fs::read_to_string(&counts).with_context(|| format!("cannot read {}", counts.display()))?;
    total(&text).with_context(|| format!("{} has no total", counts.display()))
}

fn wait_until_idle(process: u32) -> Result<()> {
    let began = Instant::now();
    let used = || procfs::processor_time(process).context("the kernel keeps no processor times (schedstat)");
    let mut before = used()?;
    while began.elapsed() < LONGEST {
        std::thread::sleep(IDLE);
        let now = used()?;
        if now == before {
            return Ok(());
        }
        before = now;
    }
    anyhow::bail!("the plugin did not come to rest within {LONGEST:?}")
}

/// The number of events in callgrind's file; there is one kind, instructions.
fn total(counts: &str) -> Option<u64> {
    counts.lines().find_map(|line| line.strip_prefix("totals:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_found() {
        let counts = "version: 1\nevents: Ir\nsummary: 174925\n\nfn=(1) main\n1 5\n\ntotals: 174925\n";
        assert_eq!(total(counts), Some(174_925));
        assert_eq!(total("events: Ir\n"), None);
        assert_eq!(total("totals: 1 2\n"), None, "two kinds of events are not what was asked for");
    }
}
