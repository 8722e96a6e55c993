//! What came out: results as lines of JSON from the sandbox, and the table made of them.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use comfy_table::{Table, presets};
use serde::{Deserialize, Serialize};

use crate::minor::Minor;

/// The result of one scenario on one server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) scenario: String,
    pub(crate) minor: Minor,
    pub(crate) verdict: Verdict,
    pub(crate) seconds: f64,
    /// What was seen, or why it failed.
    pub(crate) note: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Verdict {
    Passed,
    Failed,
    /// The scenario does not apply to this server, or the server is not built; the note says which.
    Skipped,
}

impl Verdict {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Skipped => "skipped",
        }
    }
}

/// Appends the outcome, so that what is known survives the end of the sandbox.
pub(crate) fn append(file: &Path, outcome: &Outcome) -> Result<()> {
    let mut out = File::options().create(true).append(true).open(file)?;
    writeln!(out, "{}", serde_json::to_string(outcome)?)?;
    Ok(())
}

pub(crate) fn read(file: &Path) -> Result<Vec<Outcome>> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        text => text.with_context(|| format!("cannot read {}", file.display()))?,
    };
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// One row per scenario and server.
pub(crate) fn table(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header(["Scenario", "Velero", "Result", "Seconds", "Seen"]);
    for outcome in outcomes {
        let first_line = outcome.note.lines().next().unwrap_or_default().to_owned();
        table.add_row([
            outcome.scenario.clone(),
            outcome.minor.to_string(),
            outcome.verdict.text().to_owned(),
            format!("{:.1}", outcome.seconds),
            first_line,
        ]);
    }
    table
}
