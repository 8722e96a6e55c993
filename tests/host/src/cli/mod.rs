//! The command line.

mod call;
mod list;
mod print;
mod server;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Plays the Velero server towards a plugin, in any language.
#[derive(Debug, Parser)]
#[command(name = "velero-host")]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Ask plugins what they are, and tell whether a server would start with them.
    List(list::Options),
    /// Call one method of a plugin: the reply as JSON on standard output, the plugin's log on standard error.
    Call(Box<call::Options>),
}

/// Runs the command. The exit code is 1 when the plugin failed and 2 when it could not be tried.
pub(crate) fn run(cli: Cli) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: start a runtime: {error}");
            return ExitCode::from(2);
        }
    };
    let done = runtime.block_on(async {
        let work = async {
            match cli.command {
                Command::List(options) => list::run(options).await,
                Command::Call(options) => call::run(*options).await,
            }
        };
        tokio::select! {
            done = work => done,
            // The plugins are killed when what holds them is dropped.
            _ = tokio::signal::ctrl_c() => Ok(ExitCode::from(130)),
        }
    });
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}
