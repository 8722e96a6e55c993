//! The Backup that a server works on.

mod backup;
mod order;

pub use backup::{Backup, BackupError};
