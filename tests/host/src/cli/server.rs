//! What every command asks about the server that it plays.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use velero_host::event::Observer;
use velero_host::minor::Minor;
use velero_host::session::{Journal, Launch, Processes, Start};

/// The server that is played.
#[derive(Debug, clap::Args)]
pub(crate) struct Server {
    /// The server's minor release: 1.14 to 1.18.
    #[arg(long = "velero", default_value = "1.18", value_name = "RELEASE")]
    pub(crate) minor: Minor,
    /// An argument of the server after `velero server`, such as --server-arg=--features=EnableCSI; can be given
    /// more than once.
    #[arg(long = "server-arg", value_name = "ARGUMENT", allow_hyphen_values = true)]
    arguments: Vec<String>,
    /// A variable of the server's environment, NAME=VALUE; can be given more than once.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    environment: Vec<(String, String)>,
    /// Show more of what the plugin logs: all levels.
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| format!("{text:?} is not of the form NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

impl Server {
    /// How its plugins are started, and the log that they write to.
    pub(crate) fn start(&self, observer: Arc<dyn Observer>) -> Result<(Arc<dyn Start>, Arc<Journal>)> {
        let launch = Launch {
            minor: self.minor,
            server_arguments: self.arguments.clone(),
            environment: self.environment.clone(),
        };
        launch.level().context("--server-arg")?;
        Ok((Arc::new(Processes(launch)), Journal::new(observer)))
    }
}
