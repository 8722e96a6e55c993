//! The smallest useful plugin: stamps each backed-up pod with the backup it is in.

use std::process::ExitCode;

use velero_plugin::backup::{BackupItemActionV2, Outcome};
use velero_plugin::{Backup, Item, ResourceSelector, Result, async_trait, name, plugin};

struct Stamp;

#[async_trait]
impl BackupItemActionV2 for Stamp {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::resources(["pods"])
    }

    async fn execute(&self, item: Item, backup: Backup) -> Result<Outcome> {
        tracing::info!(pod = item.name(), "stamping");
        let stamped =
            item.edited(|pod| pod.set(&["metadata", "annotations", "example.io/in-backup"], backup.name()))?;
        Ok(Outcome::changed(stamped))
    }
}

fn main() -> ExitCode {
    plugin!().logs_of("hello").backup_item_action_v2(name!("example.io/stamp"), || Stamp).run()
}
