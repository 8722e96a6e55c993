//! The command `velero-host`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

mod cli;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    cli::run(cli::Cli::parse())
}
