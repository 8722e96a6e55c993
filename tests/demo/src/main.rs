//! `cargo demo`: a namespace with volumes is backed up, finalized and deleted by the real plugin process.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod classes;
mod cli;
mod embedded;
mod given;
mod interrupt;
mod stock;
mod story;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    run(&cli).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}

fn run(cli: &cli::Cli) -> Result<ExitCode> {
    if cli.stock {
        return Err(stock::become_it(cli));
    }
    // The plugin is built before anything runs.
    let plugin = cli.plugin()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        if let Some(kubeconfig) = &cli.cluster {
            return given::tell(cli, kubeconfig, &plugin).await;
        }
        tokio::select! {
            told = embedded::tell(cli, &plugin) => told,
            // What runs is killed, and the folder removed, when what holds them is dropped.
            _ = tokio::signal::ctrl_c() => Ok(ExitCode::from(interrupt::EXIT_CODE)),
        }
    })
}
