//! `csi-actions doctor`: looks at a cluster as the actions would, and tells a person what a backup will meet there. It reads
//! only.
//!
//! One file per question: each is a pure function from what was read to findings. Nothing of it runs in a process that
//! Velero started.

mod claims;
mod facts;
mod grouped;
mod leftovers;
mod order;
mod report;
mod rights;
mod server;
mod snapshots;
mod text;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::SystemTime;

use velero_plugin::HostArgs;

use crate::cluster::permissions;
use crate::cluster::{ApiError, Cluster};
use facts::Facts;
use order::{Asked, HELP, Order, Output};
use report::Report;

/// What `--help` of the binary says of it.
pub const ABOUT: &str =
    "looks at a cluster and says what a backup will meet there; `doctor --help` says more";

/// Does what the words after `doctor` ask for. Ends with 0 where all is well, with 1 where a backup would fail, and with 2
/// where that can't be told.
pub fn run(words: Vec<OsString>) -> ExitCode {
    let order = match order::parse(words) {
        Ok(Asked::Help) => return print(HELP, 0),
        Ok(Asked::Rbac) => return print(&permissions::cluster_role(), 0),
        Ok(Asked::Examine(order)) => order,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "csi-actions doctor: {error}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&error),
    };
    match runtime.block_on(examine(&order)) {
        Ok(report) => {
            let shown = match order.output {
                Output::Text => text::shown(&report),
                Output::Json => format!("{:#}\n", report.as_json()),
            };
            print(&shown, report.code())
        }
        Err(error) => refuse(&error),
    }
}

async fn examine(order: &Order) -> Result<Report, ApiError> {
    let cluster = Cluster::of_server(HostArgs::new(order.connection()));
    let facts = Facts::gather(&cluster, order).await?;
    Ok(report(&facts, SystemTime::now()))
}

fn report(facts: &Facts, now: SystemTime) -> Report {
    Report {
        sections: vec![
            server::section(facts),
            snapshots::section(facts, now),
            claims::section(facts),
            rights::section(facts),
            leftovers::section(facts, now),
        ],
    }
}

fn print(text: &str, code: u8) -> ExitCode {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::from(code),
        // The reader has gone, as `head` does.
        Err(_) => ExitCode::from(2),
    }
}

fn refuse(error: &dyn std::fmt::Display) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "csi-actions doctor: {error}");
    ExitCode::from(2)
}
