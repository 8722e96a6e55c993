//! What was found, and what it means for the exit code.

use serde_json::{Value, json};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// Good to know.
    Note,
    /// Something to mend, though no backup fails of it.
    Warning,
    /// It could not be looked at.
    Unknown,
    /// A backup will fail.
    Failing,
}

impl Level {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Unknown => "unknown",
            Self::Failing => "failing",
        }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) level: Level,
    /// What it is about; "" where the section says it.
    pub(super) subject: String,
    pub(super) text: String,
    /// What to do, or the command for it.
    pub(super) hint: Option<String>,
}

impl Finding {
    pub(super) fn new(level: Level, subject: impl Into<String>, text: impl Into<String>) -> Self {
        Self { level, subject: subject.into(), text: text.into(), hint: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The findings about one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) findings: Vec<Finding>,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) sections: Vec<Section>,
}

impl Report {
    pub(super) fn count(&self, level: Level) -> usize {
        self.sections
            .iter()
            .flat_map(|section| &section.findings)
            .filter(|found| found.level == level)
            .count()
    }

    /// 1 where a backup will fail, else 2 where that can't be told, else 0.
    pub(super) fn code(&self) -> u8 {
        match (self.count(Level::Failing), self.count(Level::Unknown)) {
            (1.., _) => 1,
            (0, 1..) => 2,
            (0, 0) => 0,
        }
    }

    pub(super) fn as_json(&self) -> Value {
        let finding = |found: &Finding| json!({"level": found.level.as_str(), "subject": found.subject, "text": found.text, "hint": found.hint});
        let section = |section: &Section| json!({"title": section.title, "findings": section.findings.iter().map(finding).collect::<Vec<_>>()});
        json!({"code": self.code(), "sections": self.sections.iter().map(section).collect::<Vec<_>>()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_that_will_fail_goes_before_what_could_not_be_seen_and_warnings_cost_nothing() {
        let report = |levels: &[Level]| {
            let findings = levels.iter().map(|level| Finding::new(*level, "", "x")).collect();
            Report { sections: vec![Section { title: "t", findings }] }
        };
        assert_eq!(report(&[]).code(), 0);
        assert_eq!(report(&[Level::Ok, Level::Note, Level::Warning]).code(), 0);
        assert_eq!(report(&[Level::Unknown, Level::Ok]).code(), 2);
        assert_eq!(report(&[Level::Unknown, Level::Failing]).code(), 1);
    }
}
