//! The item-block action: a pod belongs with the claim of its name.

use velero_plugin::backup::ItemBlockAction;
use velero_plugin::{Backup, Item, ResourceIdentifier, ResourceSelector, Result, async_trait};

use crate::order;

pub(crate) struct Related;

#[async_trait]
impl ItemBlockAction for Related {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::resources(["pods"])
    }

    async fn related_items(&self, item: Item, _: Backup) -> Result<Vec<ResourceIdentifier>> {
        order::obey(&item).await?;
        Ok(vec![ResourceIdentifier::new("", "persistentvolumeclaims", item.namespace(), item.name())?])
    }
}
