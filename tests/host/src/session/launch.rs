//! What a server hands to a plugin at its start.

use tokio::process::Command;

use crate::log::{Level, LogReader};
use crate::minor::Minor;

/// How plugins are started.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// The server's release.
    pub minor: Minor,
    /// The server's arguments after `velero server`. Older servers make their plugins' arguments of two of them.
    pub server_arguments: Vec<String>,
    /// What the server's environment holds beside that of this process.
    pub environment: Vec<(String, String)>,
}

/// An argument of the server that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--log-level of the server's arguments: {0}")]
pub struct Unusable(String);

impl Launch {
    /// The value of the server's flag `name`; the last one wins.
    fn flag(&self, name: &str) -> Option<&str> {
        let mut found = None;
        let mut arguments = self.server_arguments.iter();
        while let Some(argument) = arguments.next() {
            let Some(rest) = argument.strip_prefix(name) else { continue };
            if let Some(value) = rest.strip_prefix('=') {
                found = Some(value);
            } else if rest.is_empty() {
                found = arguments.next().map(String::as_str);
            }
        }
        found
    }

    /// The server's log level, by default info.
    ///
    /// # Errors
    ///
    /// When the server would not know it.
    pub fn level(&self) -> Result<Level, Unusable> {
        let parse =
            |word: &str| word.parse().map_err(|error: crate::log::UnknownLevel| Unusable(error.to_string()));
        self.flag("--log-level").map_or(Ok(Level::Info), parse)
    }

    /// Whether the server has the feature.
    pub fn has_feature(&self, feature: &str) -> bool {
        self.flag("--features").is_some_and(|features| features.split(',').any(|one| one == feature))
    }

    /// The arguments that a plugin gets.
    pub fn arguments(&self) -> Vec<String> {
        if self.minor.passes_server_arguments() {
            return self.server_arguments.clone();
        }
        let mut arguments =
            vec!["--log-level".to_owned(), self.flag("--log-level").unwrap_or("info").to_owned()];
        if let Some(features) = self.flag("--features").filter(|features| !features.is_empty()) {
            arguments.extend(["--features".to_owned(), features.to_owned()]);
        }
        arguments
    }

    /// The command that starts `binary`.
    pub fn command(&self, binary: &str) -> Command {
        let mut command = Command::new(binary);
        command.args(self.arguments()).envs(self.environment.iter().map(|(key, value)| (key, value)));
        command
    }

    pub(crate) fn log_reader(&self) -> LogReader {
        LogReader::new(self.minor, self.level().unwrap_or(Level::Info))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(minor: Minor, arguments: &[&str]) -> Launch {
        let server_arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Launch { minor, server_arguments, ..Launch::default() }
    }

    #[test]
    fn arguments_by_release() {
        let server = ["--log-level=debug", "--features", "EnableCSI", "--namespace=velero"];
        let table: [(Minor, &[&str], &[&str]); 4] = [
            (Minor::V1_14, &server, &["--log-level", "debug", "--features", "EnableCSI"]),
            (Minor::V1_14, &[], &["--log-level", "info"]),
            (Minor::V1_15, &server, &server),
            (Minor::V1_18, &[], &[]),
        ];
        for (minor, arguments, given) in table {
            assert_eq!(launch(minor, arguments).arguments(), given, "{minor} {arguments:?}");
        }
    }

    #[test]
    fn the_last_flag_wins() {
        let launch =
            launch(Minor::V1_18, &["--log-level", "error", "--log-level=warning", "--features=A,EnableCSI"]);
        assert_eq!(launch.level(), Ok(Level::Warn));
        assert!(launch.has_feature("EnableCSI") && !launch.has_feature("CSI"));
    }
}
