//! What a Velero server wrote: its own lines and those of its plugins.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

/// The log file of one server, written with `--log-format json`.
#[derive(Clone, Debug)]
pub(crate) struct ServerLog {
    path: PathBuf,
}

/// What go-plugin says before it starts a process, at debug.
const STARTING: &str = "starting plugin";

/// One line. What is not JSON (a panic, a message of a library) has the level `text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) level: String,
    pub(crate) message: String,
    /// File name of the plugin binary that the line came from or is about.
    pub(crate) plugin: Option<String>,
    pub(crate) raw: String,
}

impl ServerLog {
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub(crate) fn lines(&self) -> Result<Vec<Line>> {
        let bytes = fs::read(&self.path).with_context(|| format!("cannot read {}", self.path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).lines().map(parse).collect())
    }

    /// Warnings and errors that came from the plugin binary of that name or are about it.
    pub(crate) fn complaints(&self, plugin: &str) -> Result<Vec<Line>> {
        let mut lines = self.lines()?;
        lines.retain(|line| line.plugin.as_deref() == Some(plugin) && line.complains());
        Ok(lines)
    }

    /// How many processes of the plugin binary of that name were started.
    pub(crate) fn starts(&self, plugin: &str) -> Result<usize> {
        let starts = |line: &&Line| line.plugin.as_deref() == Some(plugin) && line.message == STARTING;
        Ok(self.lines()?.iter().filter(starts).count())
    }

    /// The lines that hold the text.
    pub(crate) fn saying(&self, words: &str) -> Result<Vec<Line>> {
        let mut lines = self.lines()?;
        lines.retain(|line| line.message.contains(words));
        Ok(lines)
    }
}

impl Line {
    fn complains(&self) -> bool {
        // go-plugin 1.6.0 loses a race against its own reader at some exits, with plugins in Go too.
        let lost_race = self.message.contains("encountered while scanning std")
            && self.raw.contains("file already closed");
        matches!(self.level.as_str(), "warning" | "error" | "fatal" | "panic") && !lost_race
    }
}

fn parse(raw: &str) -> Line {
    let Some(fields) = serde_json::from_str::<Value>(raw).ok().filter(Value::is_object) else {
        return Line { level: "text".to_owned(), message: raw.to_owned(), plugin: None, raw: raw.to_owned() };
    };
    let field = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let file_name = |path: &str| Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
    let mut message = field("msg").to_owned();
    for cause in ["error", "error.message"].map(field) {
        if !cause.is_empty() {
            message = format!("{message}: {cause}");
        }
    }
    Line { level: field("level").to_owned(), message, plugin: file_name(field("cmd")), raw: raw.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart() {
        for (raw, level, message, plugin, complains) in [
            (r#"{"level":"info","msg":"hello"}"#, "info", "hello", None, false),
            (
                r#"{"level":"warning","msg":"hm","cmd":"/p/csi-actions"}"#,
                "warning",
                "hm",
                Some("csi-actions"),
                true,
            ),
            (r#"{"level":"error","msg":"oh","error":"no","cmd":"/p/x"}"#, "error", "oh: no", Some("x"), true),
            (r#"{"level":"error","msg":"oh","error.message":"no"}"#, "error", "oh: no", None, true),
            ("panic: runtime error", "text", "panic: runtime error", None, false),
            (
                r#"{"level":"error","msg":"error encountered while scanning stdout","error":"read |0: file already closed"}"#,
                "error",
                "error encountered while scanning stdout: read |0: file already closed",
                None,
                false,
            ),
        ] {
            let line = parse(raw);
            assert_eq!(
                (line.level.as_str(), line.message.as_str(), line.plugin.as_deref(), line.complains()),
                (level, message, plugin, complains),
                "{raw}"
            );
        }
    }
}
