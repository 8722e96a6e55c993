//! Claims at restore: each is made from its snapshot, and not before a volume can be made from that.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use serde_json::Value;
use velero_plugin::restore::{Outcome, RestoreInput, RestoreItemActionV2};
use velero_plugin::{
    Context as _, Error, Item, OperationId, Progress, ResourceIdentifier, ResourceSelector, Restore, Result,
};

use super::claim::{Plan, fill, is_reserved, plan, release};
use super::classes::Classes;
use super::content::ForSnapshot;
use super::group::{self, StubError};
use super::keep::{self, RETAIN};
use super::present::{self, Present};
use super::ready::{Decision, decide};
use super::stored::{StoredSnapshot, needed_size, reclaim_policy};
use super::waits::{Awaited, Waits};
use super::{PATIENCE, is_claim_there};
use crate::claim_size::raised_request;
use crate::cluster::Cluster;
use crate::cluster::events::Events;
use crate::cluster::resource::{CONTENTS, DRIVERS, SNAPSHOT_GROUP, SNAPSHOTS, STORAGE_CLASSES, VOLUMES};
use crate::discard::nudge;
use crate::environment::Environment;
use crate::events::{About, Reason};
use crate::names;
use crate::object::{Content, name, namespace, text, uid};

/// The action on claims.
#[derive(Debug)]
pub struct ClaimRestore {
    environment: Arc<Environment>,
    cluster: Cluster,
    classes: Classes,
    events: Events,
    waits: Waits,
}

impl ClaimRestore {
    /// The action in `environment`.
    pub fn new(environment: Arc<Environment>) -> Self {
        let cluster = environment.cluster.patient(PATIENCE);
        let (classes, events) = (Classes::of(cluster.clone()), Events::of(&environment));
        Self { environment, classes, cluster, events, waits: Waits::default() }
    }

    async fn restored(&self, input: &RestoreInput) -> Result<Outcome> {
        let RestoreInput { item, from_backup, restore } = input;
        let claim = format!("PersistentVolumeClaim {}/{}", item.namespace(), item.name());
        let archived = match plan(from_backup.object(), restore) {
            Plan::Leave(why) => {
                tracing::debug!("{claim}: restored as it is: {why}");
                return Ok(Outcome::unchanged());
            }
            Plan::Empty => {
                tracing::info!("{claim}: restored without its data, since restorePVs is false");
                return Ok(Outcome::changed(item.edited(|document| release(document, item.object()))?));
            }
            Plan::FromSnapshot(archived) => archived,
        };
        if is_claim_there(&self.cluster, restore, item.namespace(), item.name()).await? {
            tracing::info!("{claim}: left as it is, since it exists in the cluster");
            return Ok(Outcome::unchanged());
        }
        let namespace = restore.target_namespace(item.namespace());
        let name = names::restored(restore.uid(), archived);
        let snapshot = ForSnapshot { namespace, name: &name };
        let of_claim = StoredSnapshot::of_claim(from_backup.object());
        let present =
            present::ensure(&self.cluster, &self.classes, restore, snapshot, archived, of_claim).await?;
        self.check(item, &present).await?;
        self.check_reserved(from_backup, namespace).await?;
        let size = needed_size(from_backup.object(), present.snapshot.as_ref(), present.content.as_ref());
        let changed = item.edited(|document| {
            release(document, item.object())?;
            fill(document, &name, raised_request(item.object(), size))
        })?;
        let (awaited, additional) = if present.is_made {
            tracing::info!("{claim}: made VolumeSnapshot {namespace}/{name}, which the restore left out");
            (Awaited::Made(namespace.to_owned(), name), None)
        } else {
            let archived_snapshot =
                ResourceIdentifier::new(SNAPSHOT_GROUP, SNAPSHOTS.plural, item.namespace(), archived)?;
            (Awaited::Archived(archived.to_owned()), Some(archived_snapshot))
        };
        let driver = present.content.as_ref().map(|content| Content(content).driver()).unwrap_or_default();
        let limit = self.waits.begin(awaited, driver, self.environment.settings.restore_wait);
        let outcome = Outcome::changed(changed)
            .with_additional_items(additional)
            .wait_for_additional_items(Some(limit));
        Ok(match reclaim_policy(from_backup.object()) {
            Some(RETAIN) => outcome.with_operation(keep::operation(restore, item.namespace(), item.name())?),
            _ => outcome,
        })
    }

    /// Whatever is known by now to keep the claim Pending for ever: then it had better not be made, so that it can be
    /// restored once the cause is mended.
    async fn check(&self, item: &Item, present: &Present) -> Result<()> {
        let Some(content) = &present.content else { return Ok(()) };
        if let Decision::Failed(reason) = decide(present.snapshot.as_ref(), Some(content)) {
            self.tell(present.snapshot.as_ref(), &reason).await;
            return Err(Error::new(reason));
        }
        let driver = Content(content).driver();
        let Some(class) = text(item.object(), &["spec", "storageClassName"]) else { return Ok(()) };
        let Some(found) = self.cluster.find(STORAGE_CLASSES, "", class).await? else {
            tracing::info!("StorageClass {class} does not exist: the claim is Pending until it does");
            return Ok(());
        };
        let provisioner = text(&found, &["provisioner"]).unwrap_or_default();
        // A provisioner of another name may be a wrapper of the same driver, unless it is a driver itself.
        if provisioner != driver && self.cluster.find(DRIVERS, "", provisioner).await?.is_some() {
            return Err(Error::new(format!(
                "its StorageClass {class} is of driver {provisioner:?}, which can't read a snapshot of driver {driver:?}: \
                 restore it with a class of the latter"
            )));
        }
        Ok(())
    }

    /// A volume that is reserved for the claim would be bound to it at once, whatever the claim's source.
    async fn check_reserved(&self, archived: &Item, namespace: &str) -> Result<()> {
        let Some(volume) = archived.text_at(&["spec", "volumeName"]) else { return Ok(()) };
        let found = self.cluster.find(VOLUMES, "", volume).await?;
        if found.is_some_and(|found| is_reserved(&found, namespace, archived.name())) {
            return Err(Error::new(format!(
                "PersistentVolume {volume} is reserved for it and would be taken in place of the snapshot, with the data of \
                 today: delete that object, or take the claim out of its claimRef, and restore the claim again"
            )));
        }
        Ok(())
    }

    async fn are_ready(&self, items: &[ResourceIdentifier], restore: &Restore) -> Result<bool> {
        let snapshots: Vec<&ResourceIdentifier> =
            items.iter().filter(|item| item.resource() == SNAPSHOTS.plural).collect();
        if snapshots.is_empty() {
            return self.is_awaited_ready(restore).await;
        }
        for snapshot in snapshots {
            let namespace = restore.target_namespace(snapshot.namespace());
            let name = names::restored(restore.uid(), snapshot.name());
            if !self.is_ready(namespace, &name, restore).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// For a call that names no snapshot: Velero names only what it restored itself.
    async fn is_awaited_ready(&self, restore: &Restore) -> Result<bool> {
        match self.waits.awaited() {
            Some(Awaited::Made(namespace, name)) => self.is_ready(&namespace, &name, restore).await,
            Some(Awaited::Archived(snapshot)) => Err(Error::new(format!(
                "VolumeSnapshot {snapshot} was not restored, so the claim stays Pending: it is not in the archive, or the \
                 restore's includedResources or excludedResources leave out volumesnapshots"
            ))),
            None => {
                tracing::info!(
                    "nothing tells which snapshot to wait for, so the claim is restored without a wait"
                );
                Ok(true)
            }
        }
    }

    /// Whether a volume can be made from the restored snapshot.
    async fn is_ready(&self, namespace: &str, name: &str, restore: &Restore) -> Result<bool> {
        let what = format!("VolumeSnapshot {namespace}/{name}");
        match self.look(namespace, name, restore).await {
            Ok((Decision::Ready, _)) => {
                tracing::info!("{what} is ready to be restored from");
                Ok(true)
            }
            Ok((Decision::NotYet(why), _)) => {
                self.waits.tell(format!("{what}: {why}"));
                Ok(false)
            }
            Ok((Decision::Failed(reason), snapshot)) => {
                self.tell(snapshot.as_ref(), &reason).await;
                Err(Error::new(format!("{what}: {reason}")))
            }
            Err(StubError::Api(error)) if error.ends_a_wait() => Err(Error::from(error).context(what)),
            Err(error) => {
                self.waits.tell(format!("{what}: {error}"));
                Ok(false)
            }
        }
    }

    /// Tells on the restored snapshot why no volume can be made from it: the claim may not be there yet.
    async fn tell(&self, snapshot: Option<&Value>, reason: &str) {
        if let Some(snapshot) = snapshot {
            let about =
                About::snapshot(namespace(snapshot), name(snapshot), uid(snapshot).unwrap_or_default());
            self.events.write(about, Reason::RestoreFailed, reason.to_owned()).await;
        }
    }

    async fn look(
        &self,
        namespace: &str,
        name: &str,
        restore: &Restore,
    ) -> Result<(Decision, Option<Value>), StubError> {
        // Velero asks again in a second, so nothing is tried twice here.
        let cluster = &self.environment.cluster;
        let snapshot = cluster.find(SNAPSHOTS, namespace, name).await?;
        // Both have the name, whoever made them.
        let content = cluster.find(CONTENTS, "", name).await?;
        let decision = decide(snapshot.as_ref(), content.as_ref());
        if let (Decision::NotYet(_), Some(content)) = (&decision, &content)
            && self.waits.is_touch_due(Instant::now())
        {
            nudge(cluster, CONTENTS, content).await;
        }
        if let (Decision::NotYet(_), Some(snapshot), Some(content)) = (&decision, &snapshot, &content)
            && let Some(group) = group::missing(content)
        {
            group::make_stub(cluster, restore, snapshot, content, group).await?;
        }
        Ok((decision, snapshot))
    }
}

#[async_trait]
impl RestoreItemActionV2 for ClaimRestore {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::resources(["persistentvolumeclaims"])
    }

    async fn execute(&self, input: RestoreInput) -> Result<Outcome> {
        self.waits.next_claim();
        if self.environment.is_alongside() && !self.environment.server.release().await.names_by_restore() {
            return Ok(Outcome::unchanged());
        }
        let claim = format!("PersistentVolumeClaim {}/{}", input.item.namespace(), input.item.name());
        self.restored(&input).await.context(claim)
    }

    async fn are_additional_items_ready(
        &self,
        items: Vec<ResourceIdentifier>,
        restore: Restore,
    ) -> Result<bool> {
        let ready = self.are_ready(&items, &restore).await;
        if !matches!(ready, Ok(false)) {
            self.waits.end();
        }
        ready
    }

    async fn progress(&self, operation: OperationId, _: Restore) -> Result<Progress> {
        keep::progress(&self.cluster, &operation).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::Release;
    use crate::settings::Settings;
    use velero_plugin::HostArgs;

    #[tokio::test]
    async fn c41_an_empty_list_that_nothing_is_known_of_is_ready() {
        let arguments = HostArgs::default();
        let settings = Settings::read(&arguments, |_| None).0;
        let environment =
            Environment::new(settings, Cluster::of_server(arguments), Release::From1_18_1.into());
        let action = ClaimRestore::new(Arc::new(environment));
        let restore = Restore::from(Value::Null);
        assert!(action.are_additional_items_ready(Vec::new(), restore).await.unwrap());
    }
}
