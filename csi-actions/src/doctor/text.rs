//! The report for a person at a terminal.

use std::fmt::Write as _;

use super::report::{Finding, Level, Report};

/// Sections with a line for each finding, hints below, and a verdict at the end.
pub(super) fn shown(report: &Report) -> String {
    let mut text = String::new();
    for section in &report.sections {
        let _ = writeln!(text, "{}", section.title);
        let width =
            section.findings.iter().map(|found| found.subject.chars().count()).max().unwrap_or_default();
        for found in &section.findings {
            line(&mut text, found, width);
        }
        text.push('\n');
    }
    let _ = writeln!(text, "{}", verdict(report));
    text
}

fn line(text: &mut String, found: &Finding, width: usize) {
    let mark = match found.level {
        Level::Ok => "ok  ",
        Level::Note => "    ",
        Level::Warning => "warn",
        Level::Unknown => "??  ",
        Level::Failing => "FAIL",
    };
    let subject = &found.subject;
    let gap = if width == 0 { "" } else { "  " };
    let _ = writeln!(text, "  {mark}  {subject:<width$}{gap}{}", found.text);
    for hint in found.hint.iter().flat_map(|hint| hint.lines()) {
        let _ = writeln!(text, "        > {hint}");
    }
}

fn verdict(report: &Report) -> String {
    let count = |level, one: &str, several: &str| match report.count(level) {
        0 => None,
        1 => Some(one.to_owned()),
        number => Some(format!("{number} {several}")),
    };
    let parts = [
        count(Level::Failing, "1 finding will fail a backup", "findings will fail a backup"),
        count(Level::Unknown, "1 question could not be answered", "questions could not be answered"),
        count(Level::Warning, "1 warning", "warnings"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "All is well.".to_owned() } else { format!("{}.", parts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::report::Section;

    #[test]
    fn findings_are_lined_up_with_hints_below_and_a_verdict_at_the_end() {
        let findings = vec![
            Finding::new(Level::Ok, "app/data", "fine"),
            Finding::new(Level::Failing, "a/b", "no class").hint("create one\nor exclude it"),
            Finding::new(Level::Warning, "", "old"),
        ];
        let report = Report { sections: vec![Section { title: "Claims", findings }] };
        let expected = "Claims\n  ok    app/data  fine\n  FAIL  a/b       no class\n        > create one\n        > or exclude it\n  \
                        warn            old\n\n1 finding will fail a backup, 1 warning.\n";
        assert_eq!(shown(&report), expected);
        assert_eq!(shown(&Report { sections: Vec::new() }), "All is well.\n");
    }
}
