//! Runs the plugins on unmodified Velero servers, with a real Kubernetes API and the real CSI sidecars.
//!
//! The process that the user starts builds what is missing and then runs itself again in a sandbox, once per server:
//! that second process holds the stack, and nothing outlives it.

mod application;
mod backup;
mod cli;
mod components;
mod demo;
mod golden;
mod http;
mod inside;
mod measures;
mod outside;
mod ports;
mod process;
mod report;
mod restore;
mod sandbox;
mod scenarios;
mod server_log;
mod stack;
mod tools;

use std::process::ExitCode;

use clap::Parser;

// Under these names for all modules.
use api::{self as cluster, wait};
use stock::{build, minor, screen};

use cli::{Cli, Command};
use components::snapshots::Pace;
use measures::Extent;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        None => outside::run(&cli.run),
        Some(Command::Run { options }) => outside::run(&options),
        Some(Command::Build { servers }) => outside::build(&servers),
        Some(Command::Up { velero, enable_csi, plugin }) => outside::up(velero, enable_csi, &plugin),
        Some(Command::Demo { velero, round, verbose }) => outside::demo(velero, round, verbose),
        Some(Command::Measure { velero, claims, deletions, pace }) => {
            let paces = pace.map_or_else(|| vec![Pace::Lifted, Pace::Default], |pace| vec![pace]);
            outside::measure(velero, &paces, &Extent { claims, deletions })
        }
        Some(Command::Golden { check }) => outside::golden(check),
        Some(Command::Sanity) => outside::sanity(),
        Some(Command::Inside { job }) => inside::run(&job),
        Some(Command::List) => {
            for scenario in scenarios::ALL {
                screen::print(&format!("{:<26} {}", scenario.name, scenario.shows));
            }
            Ok(ExitCode::SUCCESS)
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}
