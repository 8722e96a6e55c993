//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use programs::screen::Screen;
use velero_host::minor::Minor;

/// Shows a CSI backup from its start to its deletion, through the real plugin process: on a cluster and a storage in the
/// demo's own process, where nothing else is asked for.
#[derive(Clone, Debug, Parser)]
#[command(name = "cargo demo", bin_name = "cargo demo")]
pub(crate) struct Cli {
    /// On an unmodified Velero server, Kubernetes API and CSI sidecars. Needs Go and Python.
    #[arg(long, conflicts_with_all = ["cluster", "plugin"])]
    pub(crate) stock: bool,
    /// On a cluster of yours and its CSI driver, in a namespace that is made for it and removed again.
    #[arg(long, value_name = "KUBECONFIG")]
    pub(crate) cluster: Option<PathBuf>,
    /// The storage class to use there; else the default, or the only one that can be snapshotted.
    #[arg(long, value_name = "NAME", requires = "cluster")]
    pub(crate) storage_class: Option<String>,
    /// The snapshot class to use there; else the one that the plugin chooses.
    #[arg(long, value_name = "NAME", requires = "cluster")]
    pub(crate) snapshot_class: Option<String>,
    /// The size of each of the three volumes there.
    #[arg(long, value_name = "QUANTITY", default_value = "1Gi", requires = "cluster")]
    pub(crate) size: String,
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
            None => programs::binary(
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

    #[test]
    fn options_of_one_way_are_refused_on_another() {
        for (arguments, words) in [
            (&["--stock", "--cluster", "k"][..], "cannot be used with"),
            (&["--stock", "--plugin", "p"], "cannot be used with"),
            (&["--storage-class", "fast"], "--cluster"),
        ] {
            let error = Cli::try_parse_from([&["demo"], arguments].concat()).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        Cli::try_parse_from(["demo"]).unwrap();
    }
}
