//! Snapshot contents at backup: starts the operation that waits until the snapshot can be restored from, and has the Secret
//! archived that deletes it.

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use velero_plugin::backup::{BackupItemActionV2, Outcome};
use velero_plugin::{Backup, Item, OperationId, Progress, ResourceSelector, Result};

use super::tracking::{Tracking, begin};
use super::with_secrets;
use crate::environment::Environment;
use crate::object::{Content, annotation};
use crate::operation::Operation;
use crate::secrets::SecretRef;
use crate::settings::{ArchiveLabel, OperationOn};
use crate::{keys, labels, ownership, secrets};

/// The action on contents.
#[derive(Debug)]
pub struct ContentBackup {
    environment: Arc<Environment>,
    tracking: Tracking,
}

impl ContentBackup {
    /// The action in `environment`.
    pub fn new(environment: Arc<Environment>) -> Self {
        Self { tracking: Tracking::new(Arc::clone(&environment)), environment }
    }

    /// The content as it is archived; the `secret` of its deletion goes with it.
    fn archived(&self, item: &Item, secret: Option<SecretRef<'_>>, backup: &Backup) -> Result<Outcome> {
        // Velero's own delete action would try to delete a member of a group alone, which no driver does, and on servers from 1.16 to
        // 1.18.0 waits ten minutes for each member after the group is gone.
        let content = item.object();
        let is_member =
            annotation(content, keys::GROUP_MEMBERS).is_some() || Content(content).group_handle().is_some();
        let is_ours = is_member || self.environment.settings.archive_label == ArchiveLabel::Own;
        // Alongside it is Velero's own action that keeps the books.
        if !is_ours || self.environment.is_alongside() {
            return with_secrets(item, secret);
        }
        let relabelled = item.edited(|document| labels::archive_as_ours(document, backup))?;
        match secret {
            Some(secret) => with_secrets(&relabelled, [secret]),
            None => Ok(Outcome::changed(relabelled)),
        }
    }
}

#[async_trait]
impl BackupItemActionV2 for ContentBackup {
    fn applies_to(&self) -> ResourceSelector {
        ResourceSelector::resources(["volumesnapshotcontents.snapshot.storage.k8s.io"])
    }

    async fn execute(&self, item: Item, backup: Backup) -> Result<Outcome> {
        if !ownership::is_of_backup(item.object(), &backup) {
            tracing::debug!(
                content = item.name(),
                "the content is not of this backup, so it is archived as it is"
            );
            return Ok(Outcome::unchanged());
        }
        let is_finalizing = backup.phase().is_finalizing();
        let secret = if is_finalizing { None } else { secrets::of_content(item.object()) };
        let outcome = self.archived(&item, secret, &backup)?;
        if is_finalizing || !self.tracking.starts_on(OperationOn::Contents) {
            return Ok(outcome);
        }
        let operation = Operation::on_content(item.name(), SystemTime::now());
        begin(outcome, &operation, item.name(), Content(item.object()).snapshot())
    }

    async fn progress(&self, operation: OperationId, backup: Backup) -> Result<Progress> {
        self.tracking.progress(&operation, &backup).await
    }

    async fn cancel(&self, operation: OperationId, backup: Backup) -> Result<()> {
        self.tracking.cancel(&operation, &backup).await
    }
}
