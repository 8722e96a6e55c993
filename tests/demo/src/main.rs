//! `cargo demo`: a namespace with volumes is backed up, finalized and deleted by the real plugin process, against a
//! cluster and a storage that live in this process.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

mod checks;
mod cli;
mod report;
mod scene;
mod show;
mod story;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let told = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Into::into);
    let told = told.and_then(|runtime| {
        // The plugin is built before anything runs.
        let plugin = cli.plugin()?;
        runtime.block_on(async {
            tokio::select! {
                told = story::tell(&cli, &plugin) => told,
                // What runs is killed, and the folder removed, when what holds them is dropped.
                _ = tokio::signal::ctrl_c() => Ok(ExitCode::from(130)),
            }
        })
    });
    told.unwrap_or_else(|error: anyhow::Error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}
