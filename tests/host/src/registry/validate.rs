//! The rules by which a server takes what its plugins list, or does not start.

use velero_plugin::{Kind, NameError, PluginName};

use crate::minor::Minor;

/// One registered plugin.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Entry {
    /// What is executed when the plugin is needed; the plugin's own word.
    pub command: String,
    /// Its kind.
    #[serde(serialize_with = "kind_name")]
    pub kind: Kind,
    /// Its name.
    pub name: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn kind_name<S: serde::Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.as_str())
}

/// Why the server does not start. The first words are the server's own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each says what it is in its text")]
pub enum Refusal {
    #[error("invalid plugin kind: {kind}: a server {minor} that is told of it does not start")]
    Kind { kind: String, minor: Minor },
    #[error("invalid plugin name {name:?}: {reason}")]
    Name { name: String, reason: NameError },
    #[error(
        "unable to register plugin (kind={kind}, name={name}, command={command}) because another plugin is already registered for this kind and name (command={other})"
    )]
    Duplicate { kind: Kind, name: String, command: String, other: String },
}

/// What the server takes without a word, and the author should know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each says what it is in its text")]
pub enum Note {
    #[error(
        "{name} is registered in both versions of its kind: it runs twice for each item, both times as version 2"
    )]
    BothVersions { name: String },
    #[error("{name}: {reason}")]
    Name { name: String, reason: NameError },
    #[error(
        "{name} says that its command is {command:?}; it was started as {started:?}, and the server executes the former"
    )]
    Command { name: String, command: String, started: String },
}

/// The plugins of a server, in the order in which they came; that is also the order in which actions run.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    minor: Minor,
    entries: Vec<Entry>,
    notes: Vec<Note>,
}

impl Registry {
    /// An empty one of a server of this release.
    pub fn new(minor: Minor) -> Self {
        Self { minor, entries: Vec::new(), notes: Vec::new() }
    }

    /// Takes what the plugin that was started as `started` listed.
    ///
    /// # Errors
    ///
    /// When the server would not start.
    pub fn register(&mut self, started: &str, command: &str, kind: &str, name: &str) -> Result<(), Refusal> {
        let unknown = || Refusal::Kind { kind: kind.to_owned(), minor: self.minor };
        let kind: Kind = kind.parse().map_err(|_| unknown())?;
        if !self.minor.knows(kind) {
            return Err(unknown());
        }
        match PluginName::new(name) {
            Ok(_) => {}
            Err(reason @ (NameError::Form | NameError::Domain)) => {
                return Err(Refusal::Name { name: name.to_owned(), reason });
            }
            // Our own crate refuses these names; a server takes them.
            Err(reason) => self.notes.push(Note::Name { name: name.to_owned(), reason }),
        }
        if let Some(other) = self.find(kind, name) {
            let (name, command, other) = (name.to_owned(), command.to_owned(), other.command.clone());
            return Err(Refusal::Duplicate { kind, name, command, other });
        }
        if kind.other_version().is_some_and(|other| self.find(other, name).is_some()) {
            self.notes.push(Note::BothVersions { name: name.to_owned() });
        }
        if command != started {
            let (name, command) = (name.to_owned(), command.to_owned());
            self.notes.push(Note::Command { name, command, started: started.to_owned() });
        }
        self.entries.push(Entry { command: command.to_owned(), kind, name: name.to_owned() });
        Ok(())
    }

    /// All that is registered.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What an author should know.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The plugins of a kind as the server lists them for its work: version 1 also counts as version 2.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| {
            entry.kind == kind || (is_second(kind) && kind.other_version() == Some(entry.kind))
        })
    }

    /// The plugin that serves `name`: version 2 before version 1, and a name without a slash is Velero's own.
    pub fn find_for_use(&self, kind: Kind, name: &str) -> Option<&Entry> {
        let full = if name.contains('/') { name.to_owned() } else { format!("velero.io/{name}") };
        self.find(kind, &full).or_else(|| {
            kind.other_version().filter(|_| is_second(kind)).and_then(|first| self.find(first, &full))
        })
    }

    fn find(&self, kind: Kind, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.kind == kind && entry.name == name)
    }
}

fn is_second(kind: Kind) -> bool {
    matches!(kind, Kind::BackupItemActionV2 | Kind::RestoreItemActionV2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registered(minor: Minor, plugins: &[(&str, &str)]) -> Result<Registry, Refusal> {
        let mut registry = Registry::new(minor);
        for (kind, name) in plugins {
            registry.register("/plugins/p", "/plugins/p", kind, name)?;
        }
        Ok(registry)
    }

    #[test]
    fn names_by_the_servers_rule() {
        let long = format!("{}/x", "a".repeat(253));
        let fine = [
            "velero.io/aws",
            "with-dashes.in.name/dashes-here",
            "prefix/Uppercase_Is_OK_123",
            "1.2.3.4/5678",
            "a/b c",
            long.as_str(),
        ];
        for name in fine {
            assert!(registered(Minor::V1_18, &[("ObjectStore", name)]).is_ok(), "{name}");
        }
        let too_long = format!("{}/x", "a".repeat(254));
        let bad = [
            "",
            "single",
            "/",
            "//",
            "///",
            "a/",
            "/a",
            "a/b/c",
            "Upper/a",
            "a b/c",
            "a_b/c",
            too_long.as_str(),
        ];
        for name in bad {
            let error = registered(Minor::V1_18, &[("ObjectStore", name)]).unwrap_err();
            assert!(error.to_string().starts_with("invalid plugin name"), "{name}: {error}");
        }
    }

    #[test]
    fn kinds_by_release() {
        let table = [
            (Minor::V1_14, "ItemBlockAction", false),
            (Minor::V1_15, "ItemBlockAction", true),
            (Minor::V1_18, "VolumeSnapshotterV2", false),
            (Minor::V1_18, "PluginLister", false),
            (Minor::V1_14, "RestoreItemActionV2", true),
        ];
        for (minor, kind, taken) in table {
            assert_eq!(registered(minor, &[(kind, "example.io/a")]).is_ok(), taken, "{minor} {kind}");
        }
    }

    #[test]
    fn a_duplicate_stops_the_server_and_a_second_version_runs_twice() {
        let twice = [("DeleteItemAction", "example.io/a"), ("DeleteItemAction", "example.io/a")];
        let error = registered(Minor::V1_18, &twice).unwrap_err().to_string();
        assert!(
            error.starts_with("unable to register plugin (kind=DeleteItemAction, name=example.io/a"),
            "{error}"
        );
        let both = [("BackupItemAction", "example.io/a"), ("BackupItemActionV2", "example.io/a")];
        let registry = registered(Minor::V1_18, &both).unwrap();
        assert_eq!(registry.notes(), [Note::BothVersions { name: "example.io/a".to_owned() }]);
        assert_eq!(registry.of_kind(Kind::BackupItemActionV2).count(), 2);
        let used = registry.find_for_use(Kind::BackupItemActionV2, "example.io/a").unwrap();
        assert_eq!(used.kind, Kind::BackupItemActionV2);
    }

    #[test]
    fn version_1_is_found_as_version_2_and_a_bare_name_is_veleros_own() {
        let plugins = [("RestoreItemAction", "velero.io/pod"), ("BackupItemActionV2", "example.io/b")];
        let registry = registered(Minor::V1_18, &plugins).unwrap();
        assert_eq!(registry.find_for_use(Kind::RestoreItemActionV2, "pod").unwrap().name, "velero.io/pod");
        assert!(registry.find_for_use(Kind::BackupItemAction, "example.io/b").is_none());
    }
}
