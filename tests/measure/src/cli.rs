//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::programs::Build;
use crate::run::Extent;
use crate::subject::Given;

/// Measures plugins of Velero side by side, in one run on one machine: ours, an empty program, Velero's own
/// plugins, and any other.
#[derive(Debug, Parser)]
#[command(name = "cargo measure", bin_name = "cargo measure")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) run: Run,
    /// Take our programs as they were last built, and build none.
    #[arg(long, global = true)]
    as_built: bool,
}

impl Cli {
    pub(crate) fn build(&self) -> Build {
        if self.as_built { Build::Before } else { Build::Now }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Holds the instructions of a start and the sizes of our programs against the budget that is checked in.
    Guard {
        /// Write what is measured into the budget.
        #[arg(long)]
        record: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Another plugin, in any language; may be repeated. Arguments follow a colon.
    #[arg(long = "plugin", value_name = "PATH[:ARGUMENTS]")]
    pub(crate) plugins: Vec<Given>,
    /// Starts of each program.
    #[arg(long, default_value_t = 100, value_parser = at_least_one)]
    starts: usize,
    /// Calls of Execute of each action, in each of three passes.
    #[arg(long, default_value_t = 2000, value_parser = at_least_one)]
    calls: usize,
    /// Operations in the round of polls.
    #[arg(long, default_value_t = 1000, value_parser = at_least_one)]
    operations: usize,
    /// Write all figures into this file, too; times in nanoseconds, sizes in bytes.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl Run {
    pub(crate) fn extent(&self) -> Extent {
        Extent { starts: self.starts, calls: self.calls, operations: self.operations }
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
        assert!(Cli::try_parse_from(["measure", "--starts", "0"]).is_err());
        assert_eq!(Cli::try_parse_from(["measure"]).unwrap().run.extent().starts, 100);
    }
}
