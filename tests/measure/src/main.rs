//! Measures plugins side by side: start-up, memory, sizes, and calls through Velero's own client.

mod cli;
mod client;
mod guard;
mod interrupt;
mod item;
mod machine;
mod procfs;
mod programs;
mod report;
mod round;
mod run;
mod size;
mod start;
mod statistics;
mod subject;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser as _;
use stock::build::Cache;
use stock::screen::Screen;
use tokio::runtime::Runtime;

use cli::{Cli, Command};
use client::Client;
use programs::Build;
use subject::Subject;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = Runtime::new().context("cannot start the runtime").and_then(|runtime| {
        runtime.spawn(interrupt::watch());
        match &cli.command {
            None => measure(&cli.run, cli.build(), &runtime),
            Some(Command::Guard { record }) => guard::run(*record, cli.build()),
        }
    });
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}

fn measure(options: &cli::Run, build: Build, runtime: &Runtime) -> Result<ExitCode> {
    let (cache, screen) = (Cache::from_environment()?, Screen::new());
    let mut subjects = programs::subjects(&cache, &screen, build)?;
    subjects.extend(options.plugins.iter().cloned().map(Subject::from));
    let client = programs::velero_client(&cache, &screen)?.map(Client);
    let report = run::run(&subjects, &client, options.extent(), runtime.handle(), |what| {
        screen.line("measure", what);
    })?;
    report::print(&report);
    if let Some(path) = &options.json {
        let json = serde_json::to_vec_pretty(&report)?;
        std::fs::write(path, json).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
