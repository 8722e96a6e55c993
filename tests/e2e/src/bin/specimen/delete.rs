//! The delete action: removes the snapshot that has the item's name from the folder, if it is there.

use velero_plugin::backup::DeleteItemAction;
use velero_plugin::{Backup, Item, ResourceSelector, Result, async_trait};

use crate::{folder, order};

pub(crate) struct Delete;

#[async_trait]
impl DeleteItemAction for Delete {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::resources(["pods"])
    }

    async fn execute(&self, item: Item, _: Backup) -> Result<()> {
        order::obey(&item).await?;
        folder::remove(&format!("snapshot-{}", item.name()))
    }
}
