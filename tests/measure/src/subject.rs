//! What is measured: a program, how it is started, and what can be asked of it.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, ensure};

/// Why a program is in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The floor of those that are linked like it.
    Empty,
    /// What this workspace ships; measured against the floor `0` by name.
    Ours { floor: &'static str },
    /// What ours are compared with.
    Peer,
    /// What the user named.
    Given,
}

/// An action that Execute is called on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The one of this name, with items of this kind.
    Named(&'static str, Item),
    /// The first that applies to pods.
    OnPods,
}

/// What the action is called with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Pod,
    Content,
}

/// The action and the operation ids of a round of polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polled {
    /// Operations on a content: `_/<content>/<time>`.
    Contents(&'static str),
    /// Operations on a snapshot: `<namespace>/<snapshot>/<time>`.
    Snapshots(&'static str),
}

/// One program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// The file, or why there is none.
    pub(crate) program: Result<PathBuf, String>,
    /// What the server hands on of its own arguments.
    pub(crate) arguments: Vec<String>,
    /// Whether the program is Velero itself, which is started with `run-plugins`.
    pub(crate) built_in: bool,
    pub(crate) execute: Vec<Action>,
    pub(crate) polled: Option<Polled>,
}

impl Subject {
    pub(crate) fn new(name: impl Into<String>, role: Role, program: Result<PathBuf, String>) -> Self {
        Self {
            name: name.into(),
            role,
            program,
            arguments: vec!["--log-level".to_owned(), "info".to_owned()],
            built_in: false,
            execute: Vec::new(),
            polled: None,
        }
    }

    /// Whether it speaks the protocol beyond the handshake.
    pub(crate) fn is_plugin(&self) -> bool {
        self.role != Role::Empty
    }

    /// The command line after the program, as the server would make it.
    pub(crate) fn command_line(&self) -> Vec<&str> {
        let run = self.built_in.then_some("run-plugins");
        run.into_iter().chain(self.arguments.iter().map(String::as_str)).collect()
    }
}

/// A plugin that the user names: `PATH`, or `PATH:ARGUMENTS` to start it with others than `--log-level info`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    path: PathBuf,
    arguments: Option<Vec<String>>,
}

impl FromStr for Given {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        // A path may have a colon in it.
        let (path, arguments) = match text.split_once(':') {
            Some((path, arguments)) if !Path::new(text).is_file() => (path, Some(arguments)),
            _ => (text, None),
        };
        ensure!(Path::new(path).is_file(), "there is no file {path}");
        let path = Path::new(path).canonicalize().with_context(|| format!("cannot find {path}"))?;
        let arguments = arguments.map(|text| text.split_whitespace().map(str::to_owned).collect());
        Ok(Self { path, arguments })
    }
}

impl From<Given> for Subject {
    fn from(given: Given) -> Self {
        let name = given.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut subject = Self::new(name, Role::Given, Ok(given.path));
        subject.arguments = given.arguments.unwrap_or(subject.arguments);
        subject.execute = vec![Action::OnPods];
        subject
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_plugin_may_come_with_arguments() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("plugin");
        let colon = folder.path().join("a:b");
        for path in [&plain, &colon] {
            std::fs::write(path, "").unwrap();
        }
        let parse = |text: String| text.parse::<Given>().map(Subject::from);
        let default = ["--log-level", "info"];
        let table: [(String, &[&str]); 4] = [
            (format!("{}", plain.display()), &default),
            (format!("{}:--log-level debug", plain.display()), &["--log-level", "debug"]),
            (format!("{}:", plain.display()), &[]),
            (format!("{}", colon.display()), &default),
        ];
        for (text, arguments) in table {
            assert_eq!(parse(text.clone()).unwrap().command_line(), arguments, "{text}");
        }
        assert!(parse("/nowhere:--x".to_owned()).unwrap_err().to_string().contains("/nowhere"));
    }

    #[test]
    fn velero_itself_is_started_with_run_plugins() {
        let mut velero = Subject::new("velero", Role::Peer, Ok("/velero".into()));
        velero.built_in = true;
        assert_eq!(velero.command_line(), ["run-plugins", "--log-level", "info"]);
    }
}
