//! What the kernel tells about a running process: `/proc`, read and understood.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

/// What a process holds while it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Memory {
    /// Bytes of it in memory, those of its file too.
    pub(crate) resident: u64,
    /// Bytes that no file holds, so that no other process can share them.
    pub(crate) anonymous: u64,
    pub(crate) threads: u64,
}

impl Memory {
    pub(crate) fn of(process: u32) -> Result<Self> {
        let path = format!("/proc/{process}/status");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        Self::parse(&text).with_context(|| format!("{path} lacks VmRSS, RssAnon or Threads"))
    }

    fn parse(status: &str) -> Option<Self> {
        let field = |name: &str| -> Option<u64> {
            let rest = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            rest.split_whitespace().next()?.parse().ok()
        };
        Some(Self {
            resident: field("VmRSS")? * 1024,
            anonymous: field("RssAnon")? * 1024,
            threads: field("Threads")?,
        })
    }
}

/// Processor time of the process so far, of all threads that it has now; none where the kernel does not keep it.
pub(crate) fn processor_time(process: u32) -> Option<Duration> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let mut sum = Duration::ZERO;
    for task in tasks.flatten() {
        // Ticks of 10 ms, as in `stat`, would be far too coarse.
        sum += on_processor(&fs::read_to_string(task.path().join("schedstat")).ok()?)?;
    }
    Some(sum)
}

/// The first field of `schedstat`: nanoseconds on a processor.
fn on_processor(schedstat: &str) -> Option<Duration> {
    schedstat.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// The load averages over 1, 5 and 15 minutes.
pub(crate) fn load_average() -> Option<[f64; 3]> {
    parse_load_average(&fs::read_to_string("/proc/loadavg").ok()?)
}

fn parse_load_average(text: &str) -> Option<[f64; 3]> {
    let mut fields = text.split_whitespace().map(|field| field.parse().ok());
    Some([fields.next()??, fields.next()??, fields.next()??])
}

/// What the processor is called.
pub(crate) fn processor_model() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_status() {
        let status = "Name:\thello\nVmHWM:\t    2000 kB\nVmRSS:\t    1392 kB\nRssAnon:\t     170 kB\nRssFile:\t1222 kB\nThreads:\t1\n";
        let memory = Memory { resident: 1392 * 1024, anonymous: 170 * 1024, threads: 1 };
        assert_eq!(Memory::parse(status), Some(memory));
        assert_eq!(Memory::parse("VmRSS:\t1 kB\nThreads:\t1\n"), None, "a zombie has no memory");
    }

    #[test]
    fn the_other_files_are_understood() {
        assert_eq!(on_processor("1100184 340467 12\n"), Some(Duration::from_nanos(1_100_184)));
        assert_eq!(on_processor(""), None);
        assert_eq!(parse_load_average("3.98 4.36 4.29 5/431 12345\n"), Some([3.98, 4.36, 4.29]));
        assert_eq!(parse_load_average("3.98 4.36"), None);
    }

    #[test]
    fn this_process_is_seen() {
        let memory = Memory::of(std::process::id()).unwrap();
        assert!(memory.resident > memory.anonymous && memory.threads >= 1, "{memory:?}");
    }
}
