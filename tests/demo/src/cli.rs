//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use stock::build::cargo;
use stock::screen::Screen;
use velero_host::minor::Minor;

/// Shows a CSI backup from its start to its deletion, through the real plugin process.
#[derive(Debug, Parser)]
#[command(name = "cargo demo", bin_name = "cargo demo")]
pub(crate) struct Cli {
    /// A built csi-actions binary; by default it is built now.
    #[arg(long, value_name = "FILE")]
    plugin: Option<PathBuf>,
    /// The Velero release to play.
    #[arg(long = "velero", default_value = "1.18", value_name = "RELEASE")]
    pub(crate) minor: Minor,
    /// Seconds between two rounds over the operations. Velero takes ten.
    #[arg(long, default_value = "2", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    round: u64,
    /// Show what the plugin logs.
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

impl Cli {
    /// The plugin's binary, in release mode.
    pub(crate) fn plugin(&self) -> Result<PathBuf> {
        match &self.plugin {
            Some(path) => Ok(path.canonicalize()?),
            None => cargo::binary(
                "csi-actions",
                &["build", "--release", "--package", "csi-actions"],
                &Screen::new(),
            ),
        }
    }

    pub(crate) fn round(&self) -> Duration {
        Duration::from_secs(self.round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }
}
