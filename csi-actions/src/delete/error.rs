//! Why a snapshot may still be in the storage.

use velero_plugin::Backup;

use crate::cluster::ApiError;
use crate::events::About;

/// Velero logs the text and deletes the backup all the same, so it says all that a person needs to delete by hand.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeleteError {
    #[error(
        "{target} is still in the storage: {error} (tried for {elapsed}); delete it there by its handle, or delete the \
         backup again"
    )]
    Api { target: String, error: ApiError, elapsed: String },
    #[error("{target} is deleted, but a content that points at it is left: {error}; delete it by hand")]
    Left { target: String, error: ApiError },
    #[error("{target} is still in the storage: driver after {elapsed} on content {content}: {message}")]
    Refused { target: String, content: String, message: String, elapsed: String, about: Box<About> },
    #[error(
        "{target} stays in the storage: {missing} in this cluster; delete it there by its handle, or delete the backup \
         where the driver runs"
    )]
    NoDriver { target: String, missing: &'static str },
    #[error(
        "{target} stays in the storage: {theirs} is of the same group and not of this backup, and a driver deletes a group \
         as a whole only; delete the group there by its handle once nobody needs {theirs}"
    )]
    Shared { target: String, theirs: String },
    #[error(
        "{target} is still in the storage: content {content} has the name of the temporary content for its deletion, but \
         {what}; delete that content by hand, then delete the backup again"
    )]
    Taken { target: String, content: String, what: &'static str },
    #[error(
        "{target} may still be in the storage: others have been changing its contents for {elapsed}; delete the backup \
         again"
    )]
    Contended { target: String, elapsed: String },
}

impl DeleteError {
    /// Where a user can see it: the content that stays, else the backup, whose Events outlive it.
    pub(super) fn about(&self, backup: &Backup) -> About {
        match self {
            Self::Refused { about, .. } => (**about).clone(),
            _ => About::backup(backup),
        }
    }
}
