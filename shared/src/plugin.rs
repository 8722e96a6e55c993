//! The builder of a plugin: registers actions by name and serves them.

use std::any::{Any, type_name};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use crate::backup::{BackupItemAction, BackupItemActionV2, DeleteItemAction, ItemBlockAction};
use crate::kind::{Handlers, Kind, KindService};
use crate::name::PluginName;
use crate::restore::{RestoreItemAction, RestoreItemActionV2};
use crate::storage::{ObjectStore, VolumeSnapshotter, VolumeSnapshotterV2};

/// Why a plugin can't be served. With it Velero would not start, or would run an action twice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistrationError {
    /// One name twice within a kind.
    #[error("{kind} {name} is registered twice: give each its own name")]
    Duplicate {
        /// The kind.
        kind: Kind,
        /// The name.
        name: PluginName,
    },
    /// One name in both versions of a kind.
    #[error(
        "{name} is registered as {kind} and in that kind's other version: Velero would run one of them twice and the other never; keep one"
    )]
    BothVersions {
        /// The kind registered last.
        kind: Kind,
        /// The name.
        name: PluginName,
    },
    /// Nothing is registered.
    #[error("nothing is registered: add an action before run()")]
    Nothing,
}

/// What a plugin does for a person who starts it.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) run: fn(Vec<OsString>) -> ExitCode,
}

/// A plugin's binary: what it is called, and the actions in it.
///
/// Actions are made when Velero first calls them, not before: a process often lives for one call to one of them.
#[must_use = "a plugin does nothing until it is run"]
pub struct Plugin {
    name: &'static str,
    version: &'static str,
    revision: Option<&'static str>,
    log_targets: Vec<String>,
    list_volume_snapshotter_v2: bool,
    commands: Vec<Command>,
    claimed: BTreeSet<(Kind, PluginName)>,
    errors: Vec<RegistrationError>,
    services: BTreeMap<Kind, Box<dyn KindService>>,
}

/// [`Plugin::new`] with the name and version of the crate it stands in, and the revision in the environment variable
/// `VELERO_PLUGIN_REVISION` of the build.
#[macro_export]
macro_rules! plugin {
    () => {
        $crate::Plugin::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .revision(option_env!("VELERO_PLUGIN_REVISION"))
    };
}

/// A method of the builder that registers one kind.
macro_rules! registers {
    ($(#[$doc:meta])* $method:ident, $kind:ident) => {
        $(#[$doc])*
        pub fn $method<A: $kind>(
            mut self,
            name: PluginName,
            make: impl Fn() -> A + Send + Sync + 'static,
        ) -> Self {
            if self.claim(Kind::$kind, &name) {
                let new = || Box::new(Handlers::<dyn $kind>::new(Kind::$kind)) as Box<dyn KindService>;
                let service: &mut dyn Any = self.services.entry(Kind::$kind).or_insert_with(new).as_mut();
                if let Some(handlers) = service.downcast_mut::<Handlers<dyn $kind>>() {
                    handlers.insert(name, type_name::<A>(), Box::new(move || Arc::new(make())));
                }
            }
            self
        }
    };
}

impl Plugin {
    /// A plugin called `name` (its crate's name) of `version`. [`plugin!`](crate::plugin!) fills both in.
    pub fn new(name: &'static str, version: &'static str) -> Self {
        Self {
            name,
            version,
            revision: None,
            log_targets: vec!["velero_plugin".to_owned(), name.replace('-', "_")],
            list_volume_snapshotter_v2: false,
            commands: Vec::new(),
            claimed: BTreeSet::new(),
            errors: Vec::new(),
            services: BTreeMap::new(),
        }
    }

    /// The source revision that the binary was built from, for `--version` and the log.
    pub fn revision(mut self, revision: Option<&'static str>) -> Self {
        self.revision = revision;
        self
    }

    /// Another crate whose log levels count as the plugin's own; see [`log`](crate::log).
    pub fn logs_of(mut self, krate: &str) -> Self {
        self.log_targets.push(krate.replace('-', "_"));
        self
    }

    registers!(
        /// Registers a [`BackupItemAction`]. New plugins register a [`BackupItemActionV2`].
        backup_item_action, BackupItemAction
    );
    registers!(
        /// Registers a [`BackupItemActionV2`]. Needs Velero 1.11.
        backup_item_action_v2, BackupItemActionV2
    );
    registers!(
        /// Registers a [`RestoreItemAction`]. New plugins register a [`RestoreItemActionV2`].
        restore_item_action, RestoreItemAction
    );
    registers!(
        /// Registers a [`RestoreItemActionV2`]. Needs Velero 1.11.
        restore_item_action_v2, RestoreItemActionV2
    );
    registers!(
        /// Registers a [`DeleteItemAction`].
        delete_item_action, DeleteItemAction
    );
    registers!(
        /// Registers an [`ItemBlockAction`]. Needs Velero 1.15; it is not listed to a server whose arguments look older,
        /// since such a one would not start.
        item_block_action, ItemBlockAction
    );
    registers!(
        /// Registers an [`ObjectStore`]; its name is the `provider` of a BackupStorageLocation.
        object_store, ObjectStore
    );
    registers!(
        /// Registers a [`VolumeSnapshotter`]; its name is the `provider` of a VolumeSnapshotLocation.
        volume_snapshotter, VolumeSnapshotter
    );
    registers!(
        /// Registers a [`VolumeSnapshotterV2`], which is served but not listed: no release of Velero knows the kind, and a
        /// server that is told of it does not start. See
        /// [`list_volume_snapshotter_v2`](Self::list_volume_snapshotter_v2).
        volume_snapshotter_v2, VolumeSnapshotterV2
    );

    /// Whether to list `VolumeSnapshotterV2` to the server. Off unless said otherwise.
    pub fn list_volume_snapshotter_v2(mut self, list: bool) -> Self {
        self.list_volume_snapshotter_v2 = list;
        self
    }

    /// A command for people: started by hand as `PROGRAM name …` the program calls `run` with the words that follow, and ends
    /// with its code. `about` is what `--help` says of it.
    ///
    /// A host never starts a plugin so, and nothing is done for a command in a process of the host's.
    pub fn command(
        mut self,
        name: &'static str,
        about: &'static str,
        run: fn(Vec<OsString>) -> ExitCode,
    ) -> Self {
        self.commands.push(Command { name, about, run });
        self
    }

    /// Serves until the host ends the process. What `main` returns.
    ///
    /// Started by hand it runs a [`command`](Self::command), answers `--version`, `--list` and `--help`, and says what it is.
    pub fn run(self) -> ExitCode {
        crate::process::run(self)
    }

    /// Whether [`run`](Self::run) would serve; for a plugin's own test.
    ///
    /// # Errors
    ///
    /// The first thing that was registered wrongly.
    pub fn check(&self) -> Result<(), RegistrationError> {
        match self.errors.first() {
            Some(error) => Err(error.clone()),
            None if self.claimed.is_empty() => Err(RegistrationError::Nothing),
            None => Ok(()),
        }
    }

    /// Whether `name` may be registered; the reason against it is kept for [`run`](Self::run).
    fn claim(&mut self, kind: Kind, name: &PluginName) -> bool {
        let other = kind.other_version().map(|other| (other, name.clone()));
        let error = if self.claimed.contains(&(kind, name.clone())) {
            RegistrationError::Duplicate { kind, name: name.clone() }
        } else if other.is_some_and(|other| self.claimed.contains(&other)) {
            RegistrationError::BothVersions { kind, name: name.clone() }
        } else {
            self.claimed.insert((kind, name.clone()));
            return true;
        };
        self.errors.push(error);
        false
    }

    /// The registered plugins, kinds in the order of a Go plugin and names sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = (Kind, &PluginName)> {
        self.claimed.iter().map(|(kind, name)| (*kind, name))
    }

    pub(crate) fn commands(&self) -> &[Command] {
        &self.commands
    }

    pub(crate) fn lists_volume_snapshotter_v2(&self) -> bool {
        self.list_volume_snapshotter_v2
    }

    pub(crate) fn log_targets(&self) -> Vec<String> {
        self.log_targets.clone()
    }

    pub(crate) fn into_services(self) -> impl Iterator<Item = (Kind, Box<dyn KindService>)> {
        self.services.into_iter()
    }

    /// `name version (revision)`, with a newline.
    pub(crate) fn version_line(&self) -> String {
        match self.revision {
            Some(revision) => format!("{} {} ({revision})\n", self.name, self.version),
            None => format!("{} {}\n", self.name, self.version),
        }
    }

    /// A line for each registered plugin: kind, name, and which items it applies to.
    pub(crate) fn listing(&self) -> String {
        let mut text = String::new();
        for (kind, name) in self.names() {
            let selector = self.services.get(&kind).and_then(|service| service.selector(name));
            let selector = selector.map(|selector| format!("  applies to {selector}")).unwrap_or_default();
            let _ = writeln!(text, "{kind:<20}  {name}{selector}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Item, ResourceSelector, Result, backup, name};

    struct Idle;

    #[crate::async_trait]
    impl BackupItemAction for Idle {
        fn applies_to(&self) -> ResourceSelector {
            ResourceSelector::resources(["pods"])
        }

        async fn execute(&self, _: Item, _: crate::Backup) -> Result<backup::Changes> {
            Ok(backup::Changes::unchanged())
        }
    }

    #[crate::async_trait]
    impl BackupItemActionV2 for Idle {
        fn applies_to(&self) -> ResourceSelector {
            ResourceSelector::resources(["pods"])
        }

        async fn execute(&self, _: Item, _: crate::Backup) -> Result<backup::Outcome> {
            Ok(backup::Outcome::unchanged())
        }
    }

    #[crate::async_trait]
    impl DeleteItemAction for Idle {
        fn applies_to(&self) -> ResourceSelector {
            ResourceSelector::everything()
        }

        async fn execute(&self, _: Item, _: crate::Backup) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_would_stop_or_mislead_a_server_is_refused() {
        let twice = plugin!()
            .backup_item_action(name!("a.io/x"), || Idle)
            .backup_item_action(name!("a.io/x"), || Idle);
        assert!(matches!(twice.check(), Err(RegistrationError::Duplicate { .. })));
        let both = plugin!()
            .backup_item_action(name!("a.io/x"), || Idle)
            .backup_item_action_v2(name!("a.io/x"), || Idle);
        assert!(matches!(both.check(), Err(RegistrationError::BothVersions { .. })));
        assert_eq!(plugin!().check(), Err(RegistrationError::Nothing));
    }

    #[test]
    fn one_name_may_serve_several_kinds() {
        let plugin = plugin!()
            .delete_item_action(name!("a.io/x"), || Idle)
            .backup_item_action_v2(name!("a.io/x"), || Idle)
            .backup_item_action_v2(name!("a.io/a"), || Idle);
        assert_eq!(plugin.check(), Ok(()));
        assert_eq!(
            plugin.listing(),
            "BackupItemActionV2    a.io/a  applies to pods\n\
             BackupItemActionV2    a.io/x  applies to pods\n\
             DeleteItemAction      a.io/x  applies to everything\n"
        );
    }
}
