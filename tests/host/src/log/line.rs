//! One line of a plugin's log, and what in it would end the server.

use std::fmt;

use serde_json::{Map, Value};

use super::Level;

/// A line as the server logs it.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    /// Its level.
    pub level: Level,
    /// Its text; the raw line where it is not go-plugin's JSON.
    pub message: String,
    /// What else the JSON held.
    pub fields: Map<String, Value>,
    /// Why the line is raw text; nothing where it is an entry as the plugin meant it.
    pub unread: Option<Unread>,
    /// What in the line would end the server that logs it.
    pub fault: Option<Fault>,
}

impl LogLine {
    pub(crate) fn raw(level: Level, text: &str, why: Unread) -> Self {
        let unread = Some(why);
        Self { level, message: text.to_owned(), fields: Map::new(), unread, fault: None }
    }
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<7} {}", self.level, self.message)?;
        for (key, value) in &self.fields {
            // Where in the plugin's source a line was written says little to a reader of the terminal.
            if key != "logSource" && key != "@logSourceSetBy" {
                write!(f, " {key}={value}")?;
            }
        }
        Ok(())
    }
}

/// Why a line is no entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each says what it is")]
pub enum Unread {
    TooLong,
    NoObject,
    TimestampForm,
    NoLevel,
    UnknownLevel(String),
    /// A field that go-plugin reads first is not text.
    NoText,
}

/// A field that the server takes for text without looking, and dies of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// go-plugin reads these three before anything else.
    #[error("the field {0:?} of a log line is not text: the Velero server dies of it")]
    Special(&'static str),
    /// The hook that counts a backup's warnings and errors reads these.
    #[error("the field {0:?} of a log line is not text: the Velero server dies of it during a backup")]
    Counted(&'static str),
}

impl Fault {
    /// In the fields of a line that is go-plugin's JSON.
    pub(crate) fn of_special(fields: &Map<String, Value>) -> Option<Self> {
        let not_text = |key: &&str| fields.get(*key).is_some_and(|value| !value.is_string());
        ["@message", "@level", "@timestamp"].into_iter().find(not_text).map(Self::Special)
    }

    /// In the fields that reach the server's logger.
    pub(crate) fn of_counted(fields: &Map<String, Value>) -> Option<Self> {
        let not_text = |key: &&str| fields.get(*key).is_some_and(|value| !value.is_string());
        ["namespace", "resource", "name"].into_iter().find(not_text).map(Self::Counted)
    }
}
