//! Why a stage of a backup as a whole failed.

use crate::archive::ArchiveError;
use crate::client::CallError;
use crate::cluster::ClusterError;
use crate::select::LabelError;
use crate::store::StoreError;

use super::filters::FilterError;

/// Why a stage failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each says what it is in its text")]
pub enum StageError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Labels(#[from] LabelError),
    #[error(transparent)]
    Filters(#[from] FilterError),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error("write the archive: {0}")]
    Write(#[from] std::io::Error),
    #[error("backup already exists in object storage")]
    Exists,
    #[error("error checking if backup already exists in object storage: {0}")]
    ExistenceCheck(#[source] StoreError),
    #[error("the backup has no contents in object storage: not found")]
    NoContents,
}
