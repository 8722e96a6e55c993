//! `velero-host list`: would a server start with these plugins?

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use velero_host::registry::{list, scan};

use super::print::Printer;
use super::server::Server;

/// What to list.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Plugin binaries, or folders of them like the server's /plugins.
    #[arg(required = true, value_name = "PLUGIN")]
    plugins: Vec<PathBuf>,
    /// JSON instead of a table.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: Server,
}

/// Lists; the exit code is 1 when the server would not start.
pub(crate) async fn run(options: Options) -> Result<ExitCode> {
    let mut commands = Vec::new();
    for path in &options.plugins {
        let found = if path.is_dir() { scan(path).context("read the folder")? } else { vec![path.clone()] };
        commands.extend(found.iter().map(|path| path.to_string_lossy().into_owned()));
    }
    let (start, journal) = options.server.start(Arc::new(Printer::new(options.server.verbose)))?;
    let registry = match list(&commands, options.server.minor, &start, &journal).await {
        Ok(registry) => registry,
        Err(error) => {
            eprintln!("velero server {} would not start: {error}", options.server.minor);
            return Ok(ExitCode::FAILURE);
        }
    };
    if options.json {
        println!("{}", serde_json::to_string_pretty(registry.entries())?);
    } else {
        let width = registry.entries().iter().map(|entry| entry.name.len()).max().unwrap_or_default();
        for entry in registry.entries() {
            println!("{:<21} {:<width$} {}", entry.kind, entry.name, entry.command);
        }
    }
    for note in registry.notes() {
        eprintln!("note: {note}");
    }
    let faults = journal.summary().faults;
    for fault in &faults {
        eprintln!("fault: {fault}");
    }
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
