//! The same on a real server, which the program `stock` runs.

use std::os::unix::process::CommandExt as _;

use anyhow::{Error, anyhow};

use crate::cli::Cli;

/// Becomes `cargo stock demo`. Comes back only when cargo can't be started.
pub(crate) fn become_it(cli: &Cli) -> Error {
    let round = cli.round().as_secs().to_string();
    let mut arguments = vec!["run", "--quiet", "--package", "stock", "--", "demo"];
    arguments.extend(["--velero", cli.minor.as_str(), "--round", &round]);
    if cli.verbose {
        arguments.push("--verbose");
    }
    let error = programs::cargo(&arguments).exec();
    anyhow!("can't start cargo, which builds and runs the stock server: {error}")
}
