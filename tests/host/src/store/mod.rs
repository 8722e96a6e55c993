//! Backups in object storage: where each file lies, what is in it, and in which order files are written.

mod backup_store;
mod files;
mod layout;

pub use backup_store::{BackupStore, StoreError};
pub use files::{BackupFiles, VolumeInfo, VolumeKept, gunzip, gzip, resource_list};
pub use layout::{BackupFile, Layout};
