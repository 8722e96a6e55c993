//! The levels of a log, as the server maps them.

use std::fmt;
use std::str::FromStr;

/// How grave a line is. Errors and warnings of a backup are counted into its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the words of logging")]
pub enum Level {
    /// Of plugins; the server logs it at debug.
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl Level {
    /// The server's word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warning",
            Self::Error => "error",
        }
    }

    /// The level of go-plugin's word in `@level`; anything else than these makes the line raw text at debug.
    pub(crate) fn of_hclog(word: &str) -> Option<Self> {
        match word.trim().to_ascii_lowercase().as_str() {
            "trace" => Some(Self::Trace),
            "debug" => Some(Self::Debug),
            "info" => Some(Self::Info),
            "warn" => Some(Self::Warn),
            "error" => Some(Self::Error),
            _ => None,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that is no level of the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no log level: use trace, debug, info, warning, error, fatal or panic")]
pub struct UnknownLevel(String);

impl FromStr for Level {
    type Err = UnknownLevel;

    /// Of the server's own `--log-level`.
    fn from_str(word: &str) -> Result<Self, UnknownLevel> {
        match word {
            "trace" => Ok(Self::Trace),
            "debug" => Ok(Self::Debug),
            "info" => Ok(Self::Info),
            "warning" | "warn" => Ok(Self::Warn),
            "error" | "fatal" | "panic" => Ok(Self::Error),
            _ => Err(UnknownLevel(word.to_owned())),
        }
    }
}
