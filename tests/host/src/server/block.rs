//! Item blocks: an item with all that the item block actions say belongs to it.

use std::collections::{BTreeMap, BTreeSet};

use super::action::Resolved;
use super::collect::{Collected, name, namespace};
use crate::client::{ItemBlockAction, ResourceIdentifier};
use crate::cluster::Cluster;
use crate::discovery::Discovery;
use crate::log::Level;
use crate::model::Backup;
use crate::session::Journal;

/// Makes blocks of what was collected.
pub(crate) struct Blocks<'a> {
    pub(crate) backup: &'a Backup,
    pub(crate) cluster: &'a dyn Cluster,
    pub(crate) discovery: &'a Discovery,
    pub(crate) actions: &'a [Resolved<ItemBlockAction>],
    pub(crate) journal: &'a Journal,
}

impl Blocks<'_> {
    /// The block that begins with `first`; what of it was collected is taken out of `rest`.
    pub(crate) async fn block(
        &self,
        first: Collected,
        rest: &mut BTreeMap<ResourceIdentifier, Collected>,
    ) -> Vec<Collected> {
        let mut known: BTreeSet<ResourceIdentifier> = [first.identifier()].into();
        let mut block = vec![first];
        let mut next = 0;
        while next < block.len() {
            let item = block[next].clone();
            next += 1;
            for related in self.related(&item).await {
                if !known.insert(related.clone()) {
                    continue;
                }
                if let Some(collected) = rest.remove(&related) {
                    block.push(collected);
                } else if let Some(found) = self.fetch(&related).await {
                    block.push(found);
                }
            }
        }
        block
    }

    async fn related(&self, item: &Collected) -> Vec<ResourceIdentifier> {
        let mut related = Vec::new();
        let group_resource = item.resource.group_resource();
        for Resolved { action, selection } in self.actions {
            let fits = selection.matches_place(&group_resource, namespace(&item.object))
                && selection.matches_labels(&item.object);
            if !fits {
                continue;
            }
            match action.get_related_items(&item.object, self.backup.object()).await {
                Ok(items) => related.extend(items),
                Err(error) => {
                    let fields = [
                        ("name", name(&item.object)),
                        ("resource", &group_resource),
                        ("namespace", namespace(&item.object)),
                        ("error", &error.to_string()),
                    ];
                    self.journal.host_with(Level::Error, "Error getting related items", &fields);
                }
            }
        }
        related
    }

    /// A related item that the spec did not name.
    async fn fetch(&self, related: &ResourceIdentifier) -> Option<Collected> {
        let resource = self.discovery.resolve(&related.group_resource())?.clone();
        match self.cluster.get(&resource, &related.namespace, &related.name).await {
            Ok(Some(object)) => Some(Collected { resource, object }),
            Ok(None) => {
                self.journal.host_with(
                    Level::Warn,
                    "Related item was not found in Kubernetes API, can't back it up",
                    &[("name", &related.name), ("namespace", &related.namespace)],
                );
                None
            }
            Err(error) => {
                let fields = [("name", related.name.as_str()), ("error", &error.to_string())];
                self.journal.host_with(Level::Error, "Error getting related item", &fields);
                None
            }
        }
    }
}
