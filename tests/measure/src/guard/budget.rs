//! The budget: what was measured when it was last recorded, and the sizes that are promised.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, process};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// A start may take so many percent more than recorded.
const TOLERANCE: u64 = 10;

/// `budget.json`.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Budget {
    /// The compiler of the record: another one makes other code.
    rustc: String,
    /// By target and program.
    programs: BTreeMap<String, BTreeMap<String, Entry>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    /// Of a start, when it was last recorded.
    instructions: u64,
    /// Of the file, when it was last recorded; for information.
    size: u64,
    /// The largest file that is allowed; not changed by recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    largest: Option<u64>,
}

/// What a program has now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) instructions: u64,
    pub(super) size: u64,
}

impl Budget {
    pub(super) fn read() -> Result<Self> {
        let path = path();
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is not understood", path.display()))
    }

    pub(super) fn write(&self) -> Result<()> {
        let path = path();
        let text = format!("{}\n", serde_json::to_string_pretty(self)?);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    pub(super) fn record(&mut self, target: &str, program: &str, measured: Measured) {
        self.rustc = compiler();
        let programs = self.programs.entry(target.to_owned()).or_default();
        let entry = programs.entry(program.to_owned()).or_default();
        entry.instructions = measured.instructions;
        entry.size = measured.size;
    }

    /// A line about the program, and what is over the budget.
    pub(super) fn compare(&self, target: &str, program: &str, now: Measured) -> (String, Vec<String>) {
        let mut broken = Vec::new();
        let Some(entry) = self.programs.get(target).and_then(|programs| programs.get(program)) else {
            broken.push(format!("{program} for {target} is not in the budget"));
            return (format!("{} instructions, {} bytes", now.instructions, now.size), broken);
        };
        let allowed = entry.instructions + entry.instructions * TOLERANCE / 100;
        let mut line = format!(
            "{} instructions to start (recorded: {}, allowed: {allowed}), {} bytes",
            now.instructions, entry.instructions, now.size
        );
        if now.instructions > allowed {
            broken.push(format!(
                "{program} for {target} takes {} instructions to start, more than {allowed}: {} were recorded with {}",
                now.instructions, entry.instructions, self.rustc
            ));
        }
        if now.instructions * 100 < entry.instructions * (100 - TOLERANCE) {
            line.push_str("; record it, so that the gain is kept");
        }
        if let Some(largest) = entry.largest {
            let _ = write!(line, " (allowed: {largest})");
            if now.size > largest {
                broken.push(format!("{program} for {target} has {} bytes, more than {largest}", now.size));
            }
        }
        (line, broken)
    }
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("budget.json")
}

fn compiler() -> String {
    let version = process::Command::new("rustc").arg("--version").output();
    version.map_or_else(
        |_| "an unknown compiler".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget() -> Budget {
        serde_json::from_str(
            r#"{"rustc": "rustc 1.95.0", "programs": {"musl": {
                "hello": {"instructions": 1000, "size": 900, "largest": 2000},
                "big": {"instructions": 1000, "size": 900}}}}"#,
        )
        .unwrap()
    }

    #[test]
    fn ten_percent_more_instructions_and_the_largest_size_are_allowed() {
        let table = [
            ("hello", 1100, 2000, 0),
            ("hello", 1101, 2000, 1),
            ("hello", 1100, 2001, 1),
            ("hello", 1101, 2001, 2),
            ("hello", 1, 1, 0),
            ("big", 1000, 9_000_000, 0),
            ("unknown", 1, 1, 1),
        ];
        for (program, instructions, size, broken) in table {
            let (_, messages) = budget().compare("musl", program, Measured { instructions, size });
            assert_eq!(messages.len(), broken, "{program} {instructions} {size}: {messages:?}");
        }
        assert_eq!(budget().compare("gnu", "hello", Measured { instructions: 1, size: 1 }).1.len(), 1);
    }

    #[test]
    fn a_gain_is_to_be_recorded() {
        let line = |instructions| budget().compare("musl", "hello", Measured { instructions, size: 1 }).0;
        assert!(line(899).contains("record it"));
        assert!(!line(900).contains("record it"));
    }

    #[test]
    fn recording_keeps_what_is_promised() {
        let mut budget = budget();
        budget.record("musl", "hello", Measured { instructions: 5, size: 6 });
        let entry = budget.programs["musl"]["hello"];
        assert_eq!(entry, Entry { instructions: 5, size: 6, largest: Some(2000) });
    }

    #[test]
    fn the_checked_in_budget_holds_the_promised_sizes() {
        let budget = Budget::read().unwrap();
        let largest = |program: &str| budget.programs["x86_64-unknown-linux-musl"][program].largest;
        assert_eq!((largest("hello"), largest("csi-actions")), (Some(2_000_000), Some(7_000_000)));
    }
}
