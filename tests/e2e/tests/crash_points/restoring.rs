//! A restore as Velero carries it out: contents, snapshots, volumes, then claims; additional items before the item that names
//! them; and the wait. What fails costs its item, and the restore goes on.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use velero_host::archive::{Archive, StoredItem};
use velero_host::client::restore_item_action::Executed;
use velero_host::client::{Plugin, ResourceIdentifier, RestoreItemAction};
use velero_host::session::Session;
use velero_plugin::Kind;
use velero_plugin::testing::to_be_restored;

use crate::world::{CLAIMS, CONTENTS, NAMESPACE, SAFE, SNAPSHOTS, VOLUMES, World, name};

const CLASSES: &str = "volumesnapshotclasses.snapshot.storage.k8s.io";
/// In Velero's order.
const ORDER: [&str; 5] = [CLASSES, CONTENTS, SNAPSHOTS, VOLUMES, CLAIMS];
/// Velero asks every second.
const POLL: Duration = Duration::from_millis(20);

/// What a restore came to.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    pub(crate) errors: Vec<String>,
    /// The action and the id of each operation.
    pub(crate) operations: Vec<(String, String)>,
}

/// A restore `name` of the backup `b1` into another namespace.
pub(crate) fn restore_into(name: &str, namespace: &str) -> Value {
    json!({"apiVersion": "velero.io/v1", "kind": "Restore",
        "metadata": {"namespace": "velero", "name": name, "uid": format!("uid-of-{name}")},
        "spec": {"backupName": "b1", "namespaceMapping": {NAMESPACE: namespace}}})
}

/// Restores what is in the archive.
pub(crate) async fn run(world: &World, archive: &Archive, restore: &Value) -> Result<Restored> {
    let session = world.session();
    let restoring = Restoring {
        world,
        archive,
        restore,
        actions: actions(world, &session).await?,
        handled: BTreeMap::new(),
        restored: Restored::default(),
    };
    let restored = restoring.run().await;
    session.end().await;
    restored
}

/// One round over the operations in a new process; those that are open, and errors of the others.
pub(crate) async fn round(
    world: &World,
    restore: &Value,
    operations: &[(String, String)],
) -> Result<(Vec<(String, String)>, Vec<String>)> {
    let session = world.session();
    let (mut open, mut errors) = (Vec::new(), Vec::new());
    for (action, id) in operations {
        match action_of(world, &session, action).await?.progress(id, restore).await {
            Ok(progress) if !progress.completed => open.push((action.clone(), id.clone())),
            Ok(progress) if progress.err.is_empty() => {}
            Ok(progress) => errors.push(progress.err),
            Err(error) => errors.push(error.to_string()),
        }
    }
    session.end().await;
    Ok((open, errors))
}

async fn action_of(world: &World, session: &Session, name: &str) -> Result<RestoreItemAction> {
    let entry = world.registry.find_for_use(Kind::RestoreItemActionV2, name).context("the action")?;
    Ok(RestoreItemAction::V2(Plugin::new(name, session.process(&entry.command).await?)))
}

async fn actions(world: &World, session: &Session) -> Result<BTreeMap<String, RestoreItemAction>> {
    let mut actions = BTreeMap::new();
    for entry in world.registry.of_kind(Kind::RestoreItemActionV2) {
        let action = action_of(world, session, &entry.name).await?;
        for resource in action.applies_to().await?.included_resources {
            actions.insert(resource, action.clone());
        }
    }
    Ok(actions)
}

struct Restoring<'a> {
    world: &'a World,
    archive: &'a Archive,
    restore: &'a Value,
    actions: BTreeMap<String, RestoreItemAction>,
    /// Whether an item that was handled exists.
    handled: BTreeMap<StoredItem, bool>,
    restored: Restored,
}

impl Restoring<'_> {
    async fn run(mut self) -> Result<Restored> {
        for resource in ORDER {
            for item in self.archive.items().into_iter().filter(|item| item.group_resource == resource) {
                self.item(item).await?;
            }
        }
        Ok(self.restored)
    }

    /// Restores one item; whether it exists afterwards.
    async fn item(&mut self, item: StoredItem) -> Result<bool> {
        if let Some(exists) = self.handled.get(&item) {
            return Ok(*exists);
        }
        let exists = self.prepare(&item).await?;
        self.handled.insert(item, exists);
        Ok(exists)
    }

    async fn prepare(&mut self, item: &StoredItem) -> Result<bool> {
        let text = self.archive.item(item).context("an item of the archive")?;
        let archived: Value = serde_json::from_slice(text)?;
        let resource = item.group_resource.as_str();
        // Only a volume that is to be kept is restored as it was.
        if resource == VOLUMES && archived["spec"]["persistentVolumeReclaimPolicy"] != "Retain" {
            return Ok(false);
        }
        // Velero's own action, which runs before ours, brings the claim's volume.
        if resource == CLAIMS
            && let Some(volume) = archived["spec"]["volumeName"].as_str()
        {
            let volume = identifier(VOLUMES, "", volume);
            Box::pin(self.additional(vec![volume])).await?;
        }
        let came = to_be_restored(&archived);
        let Some(action) = self.actions.get(resource).cloned() else { return self.create(item, came) };
        let executed = match action.execute(&came, &archived, self.restore).await {
            Ok(executed) => executed,
            Err(error) => {
                self.restored.errors.push(format!("error preparing {resource} {}: {error}", item.name));
                return Ok(false);
            }
        };
        let Executed { item: changed, additional_items, skip_restore, operation_id, .. } = executed;
        if !operation_id.is_empty() {
            self.restored.operations.push((action.plugin().name().to_owned(), operation_id));
        }
        if skip_restore {
            return Ok(false);
        }
        let kept = Box::pin(self.additional(additional_items)).await?;
        if executed.wait_for_additional_items {
            self.wait(&action, &kept).await?;
        }
        self.create(item, changed)
    }

    async fn additional(&mut self, items: Vec<ResourceIdentifier>) -> Result<Vec<ResourceIdentifier>> {
        let mut kept = Vec::new();
        for id in items {
            let stored = StoredItem {
                group_resource: id.group_resource(),
                namespace: id.namespace.clone(),
                name: id.name.clone(),
            };
            // One that is not in the archive is a warning.
            if self.archive.item(&stored).is_some() && self.item(stored).await? {
                kept.push(id);
            }
        }
        Ok(kept)
    }

    /// What ends the wait otherwise than well is an error, and the item is restored all the same.
    async fn wait(&mut self, action: &RestoreItemAction, kept: &[ResourceIdentifier]) -> Result<()> {
        let asked = tokio::time::timeout(SAFE, async {
            while !action.are_additional_items_ready(kept, self.restore).await? {
                tokio::time::sleep(POLL).await;
            }
            anyhow::Ok(())
        });
        if let Err(error) = asked.await.context("additional items are never ready")? {
            let error = format!("error verifying additional items are ready to use: {error}");
            self.restored.errors.push(error);
        }
        Ok(())
    }

    /// Creates the object unless one is there; whether one is then.
    fn create(&mut self, item: &StoredItem, mut object: Value) -> Result<bool> {
        let cluster = &self.world.cluster;
        let target = if item.namespace.is_empty() { "" } else { self.target() };
        if !target.is_empty() {
            cluster.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": target}}))?;
            object["metadata"]["namespace"] = target.into();
        }
        if cluster.get(&item.group_resource, target, name(&object))?.is_some() {
            return Ok(true);
        }
        object["metadata"]["labels"]["velero.io/backup-name"] = self.restore["spec"]["backupName"].clone();
        object["metadata"]["labels"]["velero.io/restore-name"] = self.restore["metadata"]["name"].clone();
        if item.group_resource == VOLUMES {
            // The claim that the volume was bound to may have it again.
            let reference = object["spec"]["claimRef"].as_object_mut().context("a volume without a claim")?;
            reference.retain(|field, _| field != "uid" && field != "resourceVersion");
            reference.insert("namespace".to_owned(), self.target().into());
        }
        if let Err(error) = cluster.apply(object) {
            self.restored
                .errors
                .push(format!("error restoring {} {}: {error}", item.group_resource, item.name));
            return Ok(false);
        }
        Ok(true)
    }

    fn target(&self) -> &str {
        self.restore["spec"]["namespaceMapping"][NAMESPACE].as_str().unwrap_or(NAMESPACE)
    }
}

fn identifier(resource: &str, namespace: &str, name: &str) -> ResourceIdentifier {
    ResourceIdentifier {
        group: String::new(),
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}
