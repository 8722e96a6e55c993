//! The deletion of a backup.

use velero_plugin::{BackupPhase, Kind};

use super::action::ResolveError;
use super::{Profile, Server, StageError};
use crate::archive::Archive;
use crate::client::DeleteItemAction;
use crate::go::json;
use crate::log::Level;
use crate::model::Backup;
use crate::phase;
use crate::select::ResolvedSelection;
use crate::session::Session;

/// What became of a deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deletion {
    /// The errors of the request; none when the backup is gone.
    pub errors: Vec<String>,
    /// Errors of delete actions, which released servers only log.
    pub logged: Vec<String>,
}

impl Server {
    /// Deletes a backup: the delete actions on what is in its archive, its files, the Backup itself.
    ///
    /// # Errors
    ///
    /// When the cluster can't take the new state.
    pub async fn delete(&self, backup: &mut Backup) -> Result<Deletion, StageError> {
        let is_tracked = self.tracked.lock().await.contains_key(backup.name());
        if is_tracked && (phase::is_waiting(backup.phase()) || backup.phase().is_finalizing()) {
            return Ok(Deletion {
                errors: vec!["backup is still in progress".to_owned()],
                ..Deletion::default()
            });
        }
        backup.set_phase(BackupPhase::Deleting);
        self.record(backup).await?;
        let mut deletion = Deletion::default();
        let session = self.session().hurried();
        let acted = self.delete_items(backup, &session, &mut deletion).await;
        session.end().await;
        if let Err(error) = acted {
            deletion.errors.push(format!("error invoking delete item actions: {error}"));
        }
        // With an error nothing else is touched, and the backup stays in the phase Deleting.
        if deletion.errors.is_empty() {
            match self.parts.store.delete(backup.name()).await {
                Ok(()) => self.parts.cluster.forget(backup.namespace(), backup.name()).await?,
                Err(error) => deletion.errors.push(error.to_string()),
            }
        }
        self.tracked.lock().await.remove(backup.name());
        Ok(deletion)
    }

    async fn delete_items(
        &self,
        backup: &Backup,
        session: &Session,
        deletion: &mut Deletion,
    ) -> Result<(), StageError> {
        let mut actions = Vec::new();
        for entry in self.parts.registry.of_kind(Kind::DeleteItemAction) {
            actions.push(DeleteItemAction(self.plugin(session, entry).await?));
        }
        // Without a delete action the archive is never loaded; a missing one is no error.
        if actions.is_empty() {
            return Ok(());
        }
        let Some(contents) = self.parts.store.contents(backup.name()).await? else { return Ok(()) };
        let discovery = self.parts.cluster.discover().await?;
        let mut resolved = Vec::new();
        for action in actions {
            let selection = action.applies_to().await.map_err(ResolveError::from)?;
            resolved.push((action, ResolvedSelection::new(&selection, &discovery)?));
        }
        let archive = Archive::read(&contents)?;
        let mut failed = Vec::new();
        for item in archive.items() {
            let wanted = |selection: &ResolvedSelection| {
                selection.matches_place(&item.group_resource, &item.namespace)
            };
            let candidates: Vec<_> = resolved.iter().filter(|(_, selection)| wanted(selection)).collect();
            if candidates.is_empty() {
                continue;
            }
            let text = archive.item(&item).unwrap_or_default();
            let object = json::object(text).map_err(crate::client::CallError::from)?;
            for (action, selection) in candidates {
                if !selection.matches_labels(&object) {
                    continue;
                }
                if let Err(error) = action.execute(&object, backup.object()).await {
                    let text = format!(
                        "error executing DeleteItemAction for {} {}: {error}",
                        item.group_resource, item.name
                    );
                    session.journal().host(Level::Error, &text);
                    failed.push(text);
                }
            }
        }
        match self.parts.profile {
            Profile::Released => deletion.logged = failed,
            Profile::Coming => deletion.errors = failed,
        }
        Ok(())
    }
}
