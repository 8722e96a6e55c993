//! PluginLister: what the binary offers. Velero asks once, when the server starts.

use async_trait::async_trait;
use tonic::{Request, Response, Status};

use crate::generated::generated as wire;
use crate::kind::Kind;
use crate::process::HostArgs;

/// Restricts the kinds that are listed, as a comma-separated list: a server does not start with a plugin that lists a
/// kind it doesn't know. Empty means no restriction.
const KINDS_VARIABLE: &str = "VELERO_PLUGIN_KINDS";

/// A restriction that would switch the plugin off by mistake: a server that runs without it makes backups that lack
/// what it would have done, and says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{KINDS_VARIABLE} is {value:?}, which leaves nothing of this plugin: {unknown:?} is no kind; use kinds such as \
     BackupItemActionV2, separated by commas, or unset the variable"
)]
pub(crate) struct NothingListed {
    value: String,
    unknown: Vec<String>,
}

/// Which kinds a host may be told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedKinds {
    only: Option<Vec<Kind>>,
    snapshotter_v2: bool,
    item_blocks: bool,
}

impl ListedKinds {
    /// By the host's arguments and the plugin's own choice.
    pub(crate) fn new(args: &HostArgs, snapshotter_v2: bool) -> Self {
        Self { only: None, snapshotter_v2, item_blocks: !args.before_1_15() }
    }

    /// Restricted by the environment. `registered` are the kinds that the plugin has something of.
    ///
    /// A word that is no kind is passed over, since a later plugin beside this one may know it, unless nothing is left.
    pub(crate) fn restricted(self, registered: impl Iterator<Item = Kind>) -> Result<Self, NothingListed> {
        match std::env::var(KINDS_VARIABLE) {
            Ok(value) => self.restricted_to(&value, registered),
            Err(_) => Ok(self),
        }
    }

    fn restricted_to(
        self,
        value: &str,
        mut registered: impl Iterator<Item = Kind>,
    ) -> Result<Self, NothingListed> {
        let words: Vec<&str> = value.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
        if words.is_empty() {
            return Ok(self);
        }
        let only: Vec<Kind> = words.iter().filter_map(|word| word.parse().ok()).collect();
        let unknown: Vec<String> =
            words.iter().filter(|word| word.parse::<Kind>().is_err()).map(ToString::to_string).collect();
        if !unknown.is_empty() && !registered.any(|kind| only.contains(&kind)) {
            return Err(NothingListed { value: value.to_owned(), unknown });
        }
        Ok(Self { only: Some(only), ..self })
    }

    fn contains(&self, kind: Kind) -> bool {
        match &self.only {
            // Who names the kinds knows the server.
            Some(only) => only.contains(&kind),
            None => match kind {
                Kind::VolumeSnapshotterV2 => self.snapshotter_v2,
                Kind::ItemBlockAction => self.item_blocks,
                _ => true,
            },
        }
    }
}

/// The registered plugins in the order of a Go plugin.
pub(super) struct Lister {
    pub(super) command: String,
    pub(super) plugins: Vec<(Kind, String)>,
    pub(super) kinds: ListedKinds,
}

#[async_trait]
impl wire::plugin_lister_server::PluginLister for Lister {
    async fn list_plugins(
        &self,
        _: Request<wire::Empty>,
    ) -> Result<Response<wire::ListPluginsResponse>, Status> {
        let listed = self.plugins.iter().filter(|(kind, _)| self.kinds.contains(*kind));
        let plugins = listed.map(|(kind, name)| wire::PluginIdentifier {
            // What the host executes from now on; another spelling would be another process.
            command: self.command.clone(),
            kind: kind.to_string(),
            name: name.clone(),
        });
        Ok(Response::new(wire::ListPluginsResponse { plugins: plugins.collect() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(words: &str) -> ListedKinds {
        ListedKinds::new(&HostArgs::new(words.split(' ').map(std::ffi::OsString::from)), false)
    }

    #[test]
    fn kinds_that_would_stop_a_server_are_not_listed_to_it() {
        let old = listed("--log-level info --features EnableCSI");
        assert!(!old.contains(Kind::ItemBlockAction) && old.contains(Kind::BackupItemActionV2));
        let new = listed("--features=EnableCSI --log-level=info");
        assert!(new.contains(Kind::ItemBlockAction) && !new.contains(Kind::VolumeSnapshotterV2));
        let with_v2 = ListedKinds::new(&HostArgs::default(), true);
        assert!(with_v2.contains(Kind::VolumeSnapshotterV2));
    }

    #[test]
    fn the_environment_restricts_the_kinds() {
        let registered = [Kind::BackupItemAction, Kind::DeleteItemAction].into_iter();
        let kinds = listed("").restricted_to("BackupItemAction, Odd,ItemBlockAction", registered).unwrap();
        assert!(kinds.contains(Kind::BackupItemAction) && kinds.contains(Kind::ItemBlockAction));
        assert!(!kinds.contains(Kind::DeleteItemAction));
    }

    #[test]
    fn a_restriction_switches_a_plugin_off_only_if_it_says_so() {
        let restricted = |value| listed("").restricted_to(value, [Kind::BackupItemActionV2].into_iter());
        for value in ["", " ", ","] {
            assert_eq!(restricted(value), Ok(listed("")), "{value:?}");
        }
        // A whole server may be kept to kinds that this plugin has nothing of.
        assert!(!restricted("ObjectStore").unwrap().contains(Kind::BackupItemActionV2));
        for value in ["BackupItemActionv2", "BackupItemActionV2;DeleteItemAction", "all"] {
            let error = restricted(value).unwrap_err().to_string();
            assert!(error.contains(value) && error.contains("VELERO_PLUGIN_KINDS"), "{error}");
        }
    }
}
