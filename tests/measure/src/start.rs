//! One start of a program, as short as it can be: spawn it, read its first line, look at it, end it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use crate::interrupt::{self, Guarded};
use crate::procfs::{self, Memory};
use crate::statistics::{self, Summary};
use crate::subject::Subject;

/// How long a program is left alone before its memory is read.
const SETTLING: Duration = Duration::from_millis(300);
/// Memory varies little from start to start.
const MEMORY_SAMPLES: usize = 5;

/// What many starts showed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    /// From before the spawn until the first line was read.
    pub(crate) handshake: Summary,
    /// Processor time by then; none where the kernel does not tell.
    pub(crate) processor: Option<Summary>,
    /// Some time after it; the middle of a few starts.
    pub(crate) idle: Memory,
}

/// Starts each subject so many times, one after the other in turns, so that whatever else the machine does hits all
/// alike. Their order changes with each turn, so that none always follows a heavy one.
pub(crate) fn series(subjects: &[(&Subject, &Path)], starts: usize) -> Result<Vec<Figures>> {
    let folder = tempfile::tempdir().context("cannot make a folder for sockets")?;
    let mut handshakes = vec![Vec::with_capacity(starts); subjects.len()];
    let mut processor = vec![Vec::with_capacity(starts); subjects.len()];
    for round in 0..starts {
        for (index, (subject, program)) in in_turn(subjects, round) {
            let mut started = Started::new(subject, program, folder.path())?;
            handshakes[index].push(started.handshake);
            processor[index].extend(procfs::processor_time(started.process.child().id()));
        }
    }
    let mut memory = vec![Vec::new(); subjects.len()];
    for round in 0..MEMORY_SAMPLES.min(starts) {
        for (index, (subject, program)) in in_turn(subjects, round) {
            let mut started = Started::new(subject, program, folder.path())?;
            std::thread::sleep(SETTLING);
            interrupt::check()?;
            memory[index].push(Memory::of(started.process.child().id())?);
        }
    }
    let figures = handshakes.iter().zip(&processor).zip(&memory);
    figures
        .map(|((handshakes, processor), memory)| {
            Ok(Figures {
                handshake: Summary::of(handshakes).context("nothing was started")?,
                processor: Summary::of(processor),
                idle: middle(memory).context("nothing was started")?,
            })
        })
        .collect()
}

/// The subjects with their places, another one first in each round.
fn in_turn<T: Copy>(subjects: &[T], round: usize) -> impl Iterator<Item = (usize, T)> {
    let count = subjects.len();
    (0..count).map(move |turn| (turn + round) % count).map(|index| (index, subjects[index]))
}

fn middle(samples: &[Memory]) -> Option<Memory> {
    let median =
        |field: fn(&Memory) -> u64| statistics::median(&samples.iter().map(field).collect::<Vec<_>>());
    Some(Memory {
        resident: median(|memory| memory.resident)?,
        anonymous: median(|memory| memory.anonymous)?,
        threads: median(|memory| memory.threads)?,
    })
}

/// A program that has written its first line. Killed when dropped.
struct Started {
    process: Guarded,
    handshake: Duration,
}

impl Started {
    fn new(subject: &Subject, program: &Path, sockets: &Path) -> Result<Self> {
        interrupt::check()?;
        let mut command = Command::new(program);
        command
            .args(subject.command_line())
            .env("VELERO_PLUGIN", "hello")
            .env("PLUGIN_MIN_PORT", "10000")
            .env("PLUGIN_MAX_PORT", "25000")
            .env("PLUGIN_PROTOCOL_VERSIONS", "2")
            .env("TMPDIR", sockets)
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let began = Instant::now();
        let mut process =
            Guarded::new(command.spawn().with_context(|| format!("cannot start {}", program.display()))?);
        let stdout = process.child().stdout.take().context("the program has no standard output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).context("the first line cannot be read")?;
        let handshake = began.elapsed();
        interrupt::check()?;
        if line.is_empty() {
            // A signal to the whole process group reaches the program, too, and may do so first.
            std::thread::sleep(SETTLING);
            interrupt::check()?;
            bail!("{} ended without a handshake", subject.name);
        }
        ensure!(
            line.starts_with("1|2|unix|"),
            "{} is no plugin of Velero: its first line is {line:?}",
            subject.name
        );
        Ok(Self { process, handshake })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_one_goes_first_in_each_round() {
        let order = |round| in_turn(&['a', 'b', 'c'], round).collect::<Vec<_>>();
        assert_eq!(order(0), [(0, 'a'), (1, 'b'), (2, 'c')]);
        assert_eq!(order(1), [(1, 'b'), (2, 'c'), (0, 'a')]);
        assert_eq!(order(5), [(2, 'c'), (0, 'a'), (1, 'b')]);
    }
}
