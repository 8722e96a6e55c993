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

/// A row per scenario and a column per server, and under it what each failure said.
pub(crate) fn summary(outcomes: &[Outcome]) -> String {
    let mut minors: Vec<Minor> = outcomes.iter().map(|outcome| outcome.minor).collect();
    minors.sort();
    minors.dedup();
    let mut scenarios: Vec<&str> = Vec::new();
    for outcome in outcomes {
        if !scenarios.contains(&outcome.scenario.as_str()) {
            scenarios.push(&outcome.scenario);
        }
    }
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header(
        std::iter::once("Scenario".to_owned()).chain(minors.iter().map(|minor| format!("Velero {minor}"))),
    );
    for scenario in scenarios {
        let cell = |minor: &Minor| {
            let outcome =
                outcomes.iter().find(|outcome| outcome.scenario == scenario && outcome.minor == *minor);
            outcome.map_or_else(String::new, Outcome::cell)
        };
        table.add_row(std::iter::once(scenario.to_owned()).chain(minors.iter().map(cell)));
    }
    let mut text = table.to_string();
    for outcome in outcomes.iter().filter(|outcome| outcome.verdict != Verdict::Passed) {
        let (scenario, minor, verdict, note) =
            (&outcome.scenario, outcome.minor, outcome.verdict.text(), &outcome.note);
        text.extend(["\n\n", &format!("{scenario} on {minor} {verdict}: {note}")]);
    }
    text
}

impl Outcome {
    fn cell(&self) -> String {
        match self.verdict {
            Verdict::Skipped => Verdict::Skipped.text().to_owned(),
            verdict => format!("{}, {:.0} s", verdict.text(), self.seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(scenario: &str, minor: Minor, verdict: Verdict, note: &str) -> Outcome {
        Outcome { scenario: scenario.to_owned(), minor, verdict, seconds: 12.3, note: note.to_owned() }
    }

    #[test]
    fn the_summary_has_a_column_per_server_and_the_words_of_each_failure() {
        let text = summary(&[
            outcome("a", Minor::V1_18, Verdict::Passed, "fine"),
            outcome("b", Minor::V1_18, Verdict::Failed, "it broke\nhere"),
            outcome("a", Minor::V1_14, Verdict::Skipped, "not built"),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "| Scenario | Velero 1.14 | Velero 1.18  |",
                "|----------|-------------|--------------|",
                "| a        | skipped     | passed, 12 s |",
                "| b        |             | FAILED, 12 s |",
                "",
                "b on 1.18 FAILED: it broke",
                "here",
                "",
                "a on 1.14 skipped: not built",
            ]
        );
    }

    #[test]
    fn outcomes_survive_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("results.jsonl");
        assert!(read(&file).expect("no file is no outcome").is_empty());
        for verdict in [Verdict::Passed, Verdict::Failed] {
            append(&file, &outcome("a", Minor::V1_18, verdict, "x")).expect("written");
        }
        let verdicts: Vec<_> = read(&file).expect("readable").iter().map(|outcome| outcome.verdict).collect();
        assert_eq!(verdicts, [Verdict::Passed, Verdict::Failed]);
    }
}
