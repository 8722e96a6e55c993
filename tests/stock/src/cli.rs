//! The command line.

use clap::{Parser, Subcommand, ValueEnum};

use crate::components::snapshots::Pace;
use crate::minor::Minor;

/// Runs the plugins on unmodified Velero servers, with a real Kubernetes API and the real CSI sidecars.
#[derive(Debug, Parser)]
#[command(name = "cargo stock", bin_name = "cargo stock")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Build what a run needs, and start nothing.
    Build {
        #[command(flatten)]
        servers: Servers,
    },
    /// Run scenarios and print a table of what came out. This is the default.
    Run {
        #[command(flatten)]
        options: RunOptions,
    },
    /// Start a stack with a server and keep it until Ctrl-C.
    Up {
        /// The server's minor release.
        #[arg(long, value_enum, default_value = "1.18")]
        velero: Minor,
        /// Start the server with EnableCSI: the built-in CSI actions take part.
        #[arg(long)]
        enable_csi: bool,
        /// A plugin binary to load besides csi-actions; can be given more than once.
        #[arg(long, value_name = "FILE")]
        plugin: Vec<std::path::PathBuf>,
    },
    /// Show a CSI backup from its start to its deletion: what `cargo demo --stock` runs.
    Demo {
        /// The server's minor release.
        #[arg(long, value_enum, default_value = "1.18")]
        velero: Minor,
        /// Seconds between two of the server's rounds over the operations. Its own default is ten.
        #[arg(long, default_value = "2", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
        round: u64,
        /// Show what the plugin logs.
        #[arg(long, short)]
        verbose: bool,
    },
    /// Measure csi-actions beside Velero's own CSI actions, and print tables.
    Measure {
        /// The server's minor release.
        #[arg(long, value_enum, default_value = "1.18")]
        velero: Minor,
        /// The claims of the backup; 0 leaves this part out.
        #[arg(long, default_value = "10", value_name = "NUMBER")]
        claims: usize,
        /// Snapshots that each deletes on a storage that is slow and sometimes refuses; 0 leaves this part out.
        #[arg(long, default_value = "40", value_name = "NUMBER")]
        deletions: usize,
        /// Only with the sidecars and the snapshot controller at 100 requests a second, or only at their default of 5.
        #[arg(long, value_enum, value_name = "PACE")]
        pace: Option<Pace>,
    },
    /// Make the files anew that the tests of velero-host compare with, from a real server of the newest release.
    Golden {
        /// Write nothing: compare with the files that are there. The exit code is 1 where more differs than times and
        /// identifiers.
        #[arg(long)]
        check: bool,
    },
    /// List the scenarios.
    List,
    /// Run the CSI conformance suite on the driver of the tests.
    Sanity,
    /// Run one stack in this process; what `run` and `up` start in a sandbox.
    #[command(hide = true)]
    Inside {
        /// The job, a JSON file.
        job: std::path::PathBuf,
    },
}

/// Which servers.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Servers {
    /// Minor releases to run on; can be given more than once.
    #[arg(long, value_enum, default_value = "1.18")]
    pub(crate) velero: Vec<Choice>,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunOptions {
    /// Scenarios to run; all when none is named.
    pub(crate) scenarios: Vec<String>,
    #[command(flatten)]
    pub(crate) servers: Servers,
    /// Keep the folder with logs, certificates and snapshots of storage. It is kept anyway when something failed.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Skip servers that were not built before, and say so.
    #[arg(long)]
    pub(crate) cached_only: bool,
    /// Stacks of each server to run side by side, each with its share of the scenarios, which mostly wait.
    #[arg(long, default_value = "1", value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(crate) stacks: u8,
    /// Use free ports on loopback even where namespaces are allowed.
    #[arg(long)]
    pub(crate) loopback: bool,
}

/// One minor release or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    One(Minor),
    All,
}

impl ValueEnum for Choice {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [Choice; Minor::ALL.len() + 1] = {
            let mut all = [Choice::All; Minor::ALL.len() + 1];
            let mut index = 0;
            while index < Minor::ALL.len() {
                all[index] = Choice::One(Minor::ALL[index]);
                index += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(match self {
            Self::One(minor) => clap::builder::PossibleValue::new(minor.as_str()),
            Self::All => clap::builder::PossibleValue::new("all"),
        })
    }
}

impl Servers {
    /// The chosen releases, newest first since that is what most people run, each once.
    pub(crate) fn minors(&self) -> Vec<Minor> {
        let chosen =
            |minor: &Minor| self.velero.iter().any(|c| matches!(c, Choice::All) || *c == Choice::One(*minor));
        Minor::ALL.into_iter().rev().filter(chosen).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn releases_are_chosen_newest_first_and_once() {
        for (arguments, minors) in [
            (&["stock"][..], &["1.18"][..]),
            (&["stock", "--velero", "1.14", "--velero", "1.16", "--velero", "1.14"], &["1.16", "1.14"]),
            (&["stock", "--velero", "all"], &["1.18", "1.17", "1.16", "1.15", "1.14"]),
        ] {
            let cli = Cli::try_parse_from(arguments).expect("parses");
            let chosen: Vec<_> = cli.run.servers.minors().iter().map(|minor| minor.as_str()).collect();
            assert_eq!(chosen, minors, "{arguments:?}");
        }
    }
}
