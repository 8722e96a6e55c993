//! Claims at backup: takes the snapshot of the claim's volume and has it archived with the claim.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::OnceCell;
use velero_plugin::backup::{BackupItemActionV2, Outcome};
use velero_plugin::{Backup, Context as _, Error, Item, ResourceIdentifier, ResourceSelector, Result, label};

use super::group::Group;
use super::groups::{Groups, Member};
use super::retained::{self, RETAIN};
use super::wait::{Cut, Word, until_cut, until_ready};
use super::{claim, create, discard_after};
use crate::claim_size::raised_request;
use crate::class_choice::{Choice, SNAPSHOT_KEYS};
use crate::cluster::events::Events;
use crate::cluster::resource::{CLASSES, SNAPSHOT_GROUP, SNAPSHOTS, STORAGE_CLASSES};
use crate::cluster::{ApiError, Cluster, PATIENCE, Query};
use crate::environment::Environment;
use crate::events::{About, Reason};
use crate::object::{Content, name, storage_class, text};
use crate::pair::Pair;
use crate::policy::{Decision, Told};
use crate::readiness::DEFAULT_TIMEOUT;
use crate::{keys, ownership, quantity};

/// How long a snapshot that is cut is waited for where Velero's own action tracks it: that writes down the sizes when all items
/// are archived, and the last one's would be 0. No longer, since hooks may hold the application meanwhile.
const SETTLES: Duration = Duration::from_secs(10);

/// The action on claims.
#[derive(Debug)]
pub struct ClaimBackup {
    environment: Arc<Environment>,
    cluster: Cluster,
    events: Events,
    /// A process lives as long as one backup, so the classes are those of its beginning.
    classes: OnceCell<Vec<Value>>,
    groups: Groups,
    /// Whether the last snapshot was cut before the eyes of this process, so that a snapshot controller is at work.
    has_controller: AtomicBool,
}

impl ClaimBackup {
    /// The action in `environment`.
    pub fn new(environment: Arc<Environment>) -> Self {
        // Once per backup: the processes that poll never make this action.
        tracing::info!("csi-actions {}", environment.settings.mode.meaning());
        let cluster = environment.cluster.patient(PATIENCE);
        let events = Events::of(&environment);
        let groups = Groups::new(cluster.clone(), environment.cluster.clone());
        Self {
            environment,
            cluster,
            events,
            classes: OnceCell::new(),
            groups,
            has_controller: AtomicBool::new(false),
        }
    }

    /// Takes the snapshot of a claim whose volume is of a CSI driver; what was created for a snapshot that fails is
    /// removed again.
    async fn take(&self, item: &Item, volume: &Value, driver: &str, backup: &Backup) -> Result<Cut> {
        let claim = item.object();
        let capacity = claim::capacity(volume, claim);
        // Alongside Velero's own actions, which would take the members apart before they are ready, each is cut by itself.
        if !self.environment.is_alongside()
            && let Some(group) = Group::of(claim, backup)
        {
            return self.groups.take(&group, Member { claim, driver, capacity, backup }).await;
        }
        let class = self.class(claim, driver, backup).await?;
        let is_held = self.has_controller.load(Relaxed);
        let order = create::Order { backup, claim, class: &class, capacity, is_held };
        let snapshot = create::snapshot(&self.cluster, order).await?;
        let patience = backup.csi_snapshot_timeout().unwrap_or(DEFAULT_TIMEOUT);
        let word = if self.environment.is_alongside() { Word::Both } else { Word::Content };
        let is_new = snapshot["status"].is_null();
        let cut = until_cut(&self.environment.cluster, Pair::snapshot(), &snapshot, word, patience).await;
        self.has_controller.store(cut.is_ok() && (is_new || is_held), Relaxed);
        match cut {
            Ok(cut) if self.environment.is_alongside() => {
                Ok(until_ready(&self.environment.cluster, cut, SETTLES).await)
            }
            Ok(cut) => Ok(cut),
            Err(error) => {
                let error = Error::from(error).context(format_args!("VolumeSnapshot {}", name(&snapshot)));
                Err(discard_after(error, &self.cluster, Pair::snapshot(), &snapshot).await)
            }
        }
    }

    /// Tells on the claim what became of its snapshot. The backup does not wait for it.
    fn tell(&self, item: &Item, taken: &Result<Cut>, backup: &Backup) {
        let about = About::claim(item.namespace(), item.name(), item.uid().unwrap_or_default());
        let (reason, what) = match taken {
            Ok(cut) => {
                let (content, snapshot) = (Content(&cut.content), name(&cut.snapshot));
                let handle = content.handle().unwrap_or_default();
                let what =
                    format!("{} has cut snapshot {handle} (VolumeSnapshot {snapshot})", content.driver());
                (Reason::SnapshotCreated, what)
            }
            Err(error) => (Reason::SnapshotFailed, error.to_string()),
        };
        self.events.write_beside(about, reason, format!("backup {}: {what}", backup.name()));
    }

    async fn class(&self, claim: &Value, driver: &str, backup: &Backup) -> Result<String> {
        let list = || async { self.cluster.list(CLASSES, &Query::default()).await };
        let classes = self.classes.get_or_try_init(list).await?;
        let mut choice = Choice { keys: &SNAPSHOT_KEYS, classes, driver, provisioner: None, claim, backup };
        let provisioner = if choice.depends_on_provisioner() { self.provisioner(claim).await? } else { None };
        choice.provisioner = provisioner.as_deref();
        Ok(choice.make()?.to_owned())
    }

    /// The provisioner of the claim's storage class, where both are there.
    async fn provisioner(&self, claim: &Value) -> Result<Option<String>, ApiError> {
        let Some(class) = storage_class(claim) else { return Ok(None) };
        let class = self.cluster.find(STORAGE_CLASSES, "", class).await?;
        Ok(class.and_then(|class| text(&class, &["provisioner"]).map(str::to_owned)))
    }

    /// Whether an action before this one has taken a snapshot of the claim for this backup already. The annotation alone
    /// proves nothing: a restored claim carries that of the backup it comes from.
    async fn is_taken(&self, item: &Item, backup: &Backup) -> Result<bool, ApiError> {
        let Some(snapshot) = item.annotation(keys::VOLUME_SNAPSHOT_NAME) else { return Ok(false) };
        let found = self.cluster.find(SNAPSHOTS, item.namespace(), snapshot).await?;
        Ok(found.is_some_and(|found| ownership::is_taken_for(&found, backup)))
    }

    /// The claim as it is archived, and the snapshot with it.
    fn archived(item: &Item, cut: &Cut, policy: Option<&str>, backup: &Backup) -> Result<Outcome> {
        let snapshot = name(&cut.snapshot);
        let content = Content(&cut.content);
        let raised = raised_request(item.object(), content.restore_size());
        let size = content.restore_size().map(quantity::format);
        // What a restore needs to know where the snapshot's own objects are not in the archive, or are filtered out.
        let of_snapshot = [
            (keys::CLAIM_SNAPSHOT, Some(snapshot)),
            (keys::CLAIM_DRIVER, Some(content.driver())),
            (keys::CLAIM_HANDLE, content.reported_handle()),
            (keys::CLAIM_CLASS, content.class()),
            (keys::CLAIM_SIZE, size.as_deref()),
            (keys::CLAIM_RECLAIM_POLICY, policy),
        ];
        let changed = item.edited(|document| {
            for (key, value) in of_snapshot {
                match value {
                    Some(value) => document.set(&["metadata", "annotations", key], value)?,
                    // One of an earlier backup may be there.
                    None => _ = document.remove(&["metadata", "annotations", key]),
                }
            }
            document.set(&["metadata", "annotations", keys::VOLUME_SNAPSHOT_NAME], snapshot)?;
            document.set(&["metadata", "annotations", keys::MUST_INCLUDE], "true")?;
            document.set(&["metadata", "labels", keys::VOLUME_SNAPSHOT_NAME], snapshot)?;
            document.set(&["metadata", "labels", keys::BACKUP_NAME], label::valid_value(backup.name()))?;
            match raised {
                Some(size) => document.set(&["spec", "resources", "requests", "storage"], size),
                None => Ok(()),
            }
        })?;
        let snapshot = ResourceIdentifier::new(SNAPSHOT_GROUP, SNAPSHOTS.plural, item.namespace(), snapshot)?;
        Ok(Outcome::changed(changed).with_additional_items([snapshot]))
    }
}

#[async_trait]
impl BackupItemActionV2 for ClaimBackup {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::resources(["persistentvolumeclaims"])
    }

    async fn execute(&self, item: Item, backup: Backup) -> Result<Outcome> {
        let claim = format!("PersistentVolumeClaim {}/{}", item.namespace(), item.name());
        let volume = match self.environment.decisions.of(item.object(), &backup).await.context(&claim)? {
            Decision::Take(volume) => volume,
            Decision::Leave { why, told } => {
                match told {
                    Told::Quietly => tracing::debug!("{claim}: no snapshot: {why}"),
                    Told::Plainly => tracing::info!("{claim}: no snapshot: {why}"),
                    Told::AsWarning => tracing::warn!("{claim}: no snapshot: {why}"),
                }
                // Velero's marker for volumes without a driver means something on its own action only, and would be restored.
                return Ok(Outcome::unchanged());
            }
        };
        if self.is_taken(&item, &backup).await.context(&claim)? {
            tracing::info!("{claim}: another action has taken its snapshot for this backup");
            return Ok(Outcome::unchanged());
        }
        let driver = text(&volume, &["spec", "csi", "driver"]).unwrap_or_default();
        let taken = self.take(&item, &volume, driver, &backup).await;
        self.tell(&item, &taken, &backup);
        let cut = taken.context(&claim)?;
        tracing::info!(
            handle = Content(&cut.content).handle(),
            "{claim}: snapshot {} is cut by {driver}",
            name(&cut.snapshot)
        );
        let rewritten = retained::is_rewritten(&self.environment, &volume, item.object(), &backup).await;
        // The policies were read for the decision, so this asks nothing that can fail.
        let policy = rewritten.unwrap_or(false).then_some(RETAIN);
        Self::archived(&item, &cut, policy, &backup)
    }
}
