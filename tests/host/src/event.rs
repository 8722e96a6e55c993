//! What happens in a run, told to whoever looks on: a terminal, a test, a report.

use std::process::ExitStatus;
use std::time::Duration;

use velero_plugin::BackupPhase;

use crate::log::{Level, LogLine};
use crate::operation::Operation;

/// One thing that happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A plugin's process said where it listens.
    ProcessStarted {
        /// The binary.
        command: &'a str,
        /// Unknown for a plugin that is no process of ours.
        id: Option<u32>,
        /// From before its start until its handshake was read.
        took: Duration,
    },
    /// A plugin's process is gone.
    ProcessEnded {
        /// The binary.
        command: &'a str,
        /// Unknown for a plugin that is no process of ours.
        status: Option<ExitStatus>,
        /// It did not end within two seconds of the request.
        killed: bool,
        /// From the request until its end was seen.
        took: Duration,
    },
    /// A plugin logged a line.
    PluginLog {
        /// The binary.
        command: &'a str,
        /// What the server makes of it.
        line: &'a LogLine,
    },
    /// The server logged a line of its own.
    HostLog {
        /// Its level.
        level: Level,
        /// Its text.
        message: &'a str,
    },
    /// A plugin is about to be called.
    Calling {
        /// The plugin's name, or the binary's for `ListPlugins`.
        plugin: &'a str,
        /// The method, as in `Execute`.
        method: &'static str,
    },
    /// A plugin was called.
    Called {
        /// The plugin's name, or the binary's for `ListPlugins`.
        plugin: &'a str,
        /// The method, as in `Execute`.
        method: &'static str,
        /// Until the answer.
        took: Duration,
        /// Why it failed, if it did.
        error: Option<&'a str>,
    },
    /// A backup came into a phase.
    Phase {
        /// The backup's name.
        backup: &'a str,
        /// The phase.
        phase: BackupPhase,
    },
    /// An operation was started, or is not as it was.
    Operation(&'a Operation),
}

/// Looks on. Called from within the run, so it must be quick.
pub trait Observer: Send + Sync {
    /// Takes note of `event`.
    fn observe(&self, event: &Event<'_>);
}

/// Looks away.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn observe(&self, _: &Event<'_>) {}
}
