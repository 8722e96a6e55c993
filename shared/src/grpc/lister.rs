//! PluginLister: what the binary offers. Velero asks once, when the server starts.

use async_trait::async_trait;
use tonic::{Request, Response, Status};

use crate::generated::generated as wire;
use crate::kind::Kind;
use crate::process::HostArgs;

/// Restricts the kinds that are listed, as a comma-separated list: a server does not start with a plugin that lists a
/// kind it doesn't know.
const KINDS_VARIABLE: &str = "VELERO_PLUGIN_KINDS";

/// Which kinds a host may be told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListedKinds {
    only: Option<Vec<Kind>>,
    snapshotter_v2: bool,
    item_blocks: bool,
}

impl ListedKinds {
    /// By the host's arguments, the plugin's own choice and the environment's.
    pub(super) fn new(args: &HostArgs, snapshotter_v2: bool) -> Self {
        Self::with(args, snapshotter_v2, std::env::var(KINDS_VARIABLE).ok().as_deref())
    }

    fn with(args: &HostArgs, snapshotter_v2: bool, only: Option<&str>) -> Self {
        let only = only.map(|kinds| kinds.split(',').filter_map(|kind| kind.trim().parse().ok()).collect());
        Self { only, snapshotter_v2, item_blocks: !args.before_1_15() }
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

    #[test]
    fn kinds_that_would_stop_a_server_are_not_listed_to_it() {
        let args = |words: &str| HostArgs::new(words.split(' ').map(std::ffi::OsString::from));
        let old = ListedKinds::with(&args("--log-level info --features EnableCSI"), false, None);
        assert!(!old.contains(Kind::ItemBlockAction) && old.contains(Kind::BackupItemActionV2));
        let new = ListedKinds::with(&args("--features=EnableCSI --log-level=info"), false, None);
        assert!(new.contains(Kind::ItemBlockAction) && !new.contains(Kind::VolumeSnapshotterV2));
        let with_v2 = ListedKinds::with(&args("--log-level=info"), true, None);
        assert!(with_v2.contains(Kind::VolumeSnapshotterV2));
    }

    #[test]
    fn the_environment_restricts_the_kinds() {
        let kinds =
            ListedKinds::with(&HostArgs::default(), false, Some("BackupItemAction, Odd,ItemBlockAction"));
        assert!(kinds.contains(Kind::BackupItemAction) && kinds.contains(Kind::ItemBlockAction));
        assert!(!kinds.contains(Kind::DeleteItemAction));
    }
}
