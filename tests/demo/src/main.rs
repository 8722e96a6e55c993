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
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::Parser as _;
use demo::show::Show;
use tempfile::TempDir;

use story::Means;

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
    let show = Arc::new(Show::new(cli.verbose));
    let folder = TempDir::with_prefix("velero-demo-").context("make a folder for the run")?;
    let means = Means { cli, plugin: &plugin, folder: folder.path(), show: &show };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        if let Some(kubeconfig) = &cli.cluster {
            return given::tell(means, kubeconfig).await;
        }
        tokio::select! {
            told = embedded::tell(means) => told,
            // What runs is killed, and the folder removed, when what holds them is dropped.
            _ = tokio::signal::ctrl_c() => Ok(ExitCode::from(interrupt::EXIT_CODE)),
        }
    })
}
