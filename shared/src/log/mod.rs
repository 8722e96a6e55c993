//! Logging towards Velero: what a plugin logs with [`tracing`] becomes part of the log of the backup or restore.
//!
//! # What a line does to a backup
//!
//! Velero counts the lines of a running backup: a line at warn level is one of its warnings, and **one line at error level
//! makes the whole backup `PartiallyFailed`**, on top of whatever the call returns. So what is returned is not logged
//! again, and what is tolerated is logged at info or debug.
//!
//! | in the plugin | line at |
//! |---|---|
//! | `tracing::error!(fails_backup = true, …)` | error |
//! | `tracing::error!(…)`, `tracing::warn!(…)` | warn |
//! | `info!`, `debug!`, `trace!` | the same |
//! | info and above of a library, whatever it calls it | debug |
//! | debug and trace of a library | nowhere |
//!
//! A library is any crate but the plugin's own, `velero_plugin`, and those named by
//! [`Plugin::logs_of`](crate::Plugin::logs_of). The level that the server was started with (`--log-level`) applies.
//! In restores and deletions Velero counts no lines.
//!
//! `println!` and `eprintln!` reach nobody: from the handshake on, standard output and standard error are `/dev/null`, for the
//! plugin and for the children that inherit them.

mod layer;
mod line;

pub(crate) use layer::HclogLayer;
