//! What the tests of a plugin's process share: a specimen plugin to start, and the eyes of a host to see it with.
//!
//! | module | what it knows |
//! |---|---|
//! | [`specimen`] | starts the specimen's process as a host does, collects its log, ends it |
//! | [`item`] | Kubernetes objects whose annotations order the specimen's behaviour |
//! | [`raw`] | HTTP/2 without a gRPC library, to see the very headers |
//!
//! The chapters are the files in `tests/`; which of them shows which pitfall stands in the README.

pub mod item;
pub mod raw;
pub mod specimen;

pub use specimen::{Ended, Specimen, Start};

/// The specimen's plugins, one name for each kind.
pub mod names {
    #![allow(missing_docs, reason = "each says what it is")]
    pub const BACKUP_V1: &str = "specimen.example/backup-v1";
    pub const BACKUP: &str = "specimen.example/backup";
    pub const RESTORE_V1: &str = "specimen.example/restore-v1";
    pub const RESTORE: &str = "specimen.example/restore";
    pub const DELETE: &str = "specimen.example/delete";
    pub const RELATED: &str = "specimen.example/related";
    pub const OBJECTS: &str = "specimen.example/objects";
    pub const VOLUMES: &str = "specimen.example/volumes";
    pub const VOLUMES_V2: &str = "specimen.example/volumes-v2";
    /// A backup action whose maker panics the first time; registered on demand, see [`REGISTERS`](super::REGISTERS).
    pub const UNMAKEABLE: &str = "specimen.example/unmakeable";
}

/// The folder in which the specimen keeps what must outlive its process.
pub const FOLDER: &str = "SPECIMEN_FOLDER";
/// Makes the specimen register one name twice (`twice`), one name in both versions (`both`), nothing (`nothing`), one backup
/// action alone (`alone`), or an action whose maker panics the first time (`unmakeable`).
pub const REGISTERS: &str = "SPECIMEN_REGISTERS";
