//! The end of a backup: items that its operations named are read again.

use std::collections::BTreeMap;

use super::action::resolve_backup_actions;
use super::item::{ItemPass, Passed};
use super::{Server, StageError};
use crate::archive::Archive;
use crate::client::ResourceIdentifier;
use crate::log::Level;
use crate::model::Backup;
use crate::operation::Operation;
use crate::phase;
use crate::session::Session;

impl Server {
    /// Finalizes a backup; one in another phase stays as it is. Errors of items show in the server's log alone.
    ///
    /// # Errors
    ///
    /// When the pass as a whole failed; a real server tries again for ever.
    pub async fn finalize(&self, backup: &mut Backup) -> Result<(), StageError> {
        let Some(last) = phase::after_finalize(backup.phase()) else { return Ok(()) };
        let operations = self.parts.store.operations(backup.name()).await?;
        let mut contents = None;
        // Without operations no plugin is started.
        if !operations.is_empty() {
            let session = self.session();
            let rebuilt = self.rebuild(backup, &operations, &session).await;
            session.end().await;
            contents = Some(rebuilt?);
        }
        backup.complete(last, self.now());
        self.parts.store.put_metadata(backup).await?;
        if let Some(contents) = contents {
            self.parts.store.put_contents(backup.name(), contents).await?;
        }
        self.record(backup).await
    }

    /// The archive with the items as they are now.
    async fn rebuild(
        &self,
        backup: &Backup,
        operations: &[Operation],
        session: &Session,
    ) -> Result<Vec<u8>, StageError> {
        let journal = session.journal();
        let stored = self.parts.store.contents(backup.name()).await?.ok_or(StageError::NoContents)?;
        let archive = Archive::read(&stored)?;
        let cluster = &*self.parts.cluster;
        let discovery = cluster.discover().await?;
        let actions = resolve_backup_actions(self.backup_actions(session).await?, &discovery).await?;
        let mut pass = ItemPass {
            backup,
            cluster,
            discovery: &discovery,
            filters: None,
            actions: &actions,
            journal,
            minor: self.parts.minor,
            enable_csi: self.parts.enable_csi,
            now: &*self.parts.now,
            passed: Passed::default(),
        };
        let mut updates = BTreeMap::new();
        for item in post_operation_items(operations) {
            // By the exact name alone: a short name or a kind is passed over without a word.
            let Some(resource) = discovery.exact(&item.group, &item.resource) else { continue };
            let object = match cluster.get(resource, &item.namespace, &item.name).await {
                Ok(Some(object)) => object,
                Ok(None) => {
                    let fields = [("name", item.name.as_str()), ("error", "not found")];
                    journal.host_with(Level::Error, "Error getting item", &fields);
                    continue;
                }
                Err(error) => {
                    let fields = [("name", item.name.as_str()), ("error", &error.to_string())];
                    journal.host_with(Level::Error, "Error getting item", &fields);
                    continue;
                }
            };
            match pass.item(object, resource, true).await {
                Ok((true, files)) => updates.extend(files),
                Ok((false, _)) => {}
                Err(error) => {
                    let fields = [("name", item.name.as_str()), ("error", &error.to_string())];
                    journal.host_with(Level::Error, "Error finalizing item", &fields);
                }
            }
        }
        let volumes = self.parts.store.volumes(backup.name()).await?;
        self.parts.store.put_volumes(backup.name(), &volumes).await?;
        Ok(archive.rewritten(updates, self.now())?)
    }
}

/// The items of all operations, also of failed ones, each resource's together.
fn post_operation_items(operations: &[Operation]) -> Vec<&ResourceIdentifier> {
    operations.iter().flat_map(|operation| operation.spec.post_operation_items.iter().flatten()).collect()
}
