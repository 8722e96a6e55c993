//! The contents of a backup's files.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use crate::go::json;
use crate::go::time::Time;
use crate::operation::Operation;
use crate::session::Results;

/// All that is stored when a backup leaves the phase `InProgress`.
#[derive(Debug, Clone)]
pub struct BackupFiles {
    /// `velero-backup.json`.
    pub metadata: Vec<u8>,
    /// The tarball.
    pub contents: Vec<u8>,
    /// The log's text.
    pub log: String,
    /// Asynchronous operations.
    pub operations: Vec<Operation>,
    /// By kind, as in `v1/Pod`, the names of what was backed up.
    pub resources: BTreeMap<String, BTreeSet<String>>,
    /// Messages at error level.
    pub errors: Results,
    /// Messages at warning level.
    pub warnings: Results,
    /// How volumes were backed up.
    pub volumes: Vec<VolumeInfo>,
}

/// How a volume was backed up, as far as this host knows of it: volumes that nothing took a snapshot of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "Velero's own words")]
pub struct VolumeInfo {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pvc_name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pvc_namespace: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pv_name: String,
    pub snapshot_data_moved: bool,
    pub preserve_local_snapshot: bool,
    pub skipped: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub skipped_reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_timestamp: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pv_info: Option<VolumeKept>,
}

/// What is kept of a persistent volume for the end of a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeKept {
    /// As in `Delete`.
    pub reclaim_policy: String,
    /// `null` for none.
    pub labels: Option<BTreeMap<String, String>>,
}

impl BackupFiles {
    /// The results file: warnings after errors.
    pub(crate) fn results(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct File<'a> {
            errors: &'a Results,
            warnings: &'a Results,
        }
        json::line(&File { errors: &self.errors, warnings: &self.warnings })
    }
}

/// The list of resources in its file's form: names sorted, objects of namespaces as `namespace/name`.
pub fn resource_list(resources: &BTreeMap<String, BTreeSet<String>>) -> Vec<u8> {
    json::line(resources)
}

/// Compresses into one gzip member.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // A vector takes everything.
    let written = encoder.write_all(bytes);
    debug_assert!(written.is_ok());
    encoder.finish().unwrap_or_default()
}

/// The contents of a gzipped file.
///
/// # Errors
///
/// When it is none, or ends early.
pub fn gunzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_resources_is_sorted() {
        let mut resources: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (kind, name) in
            [("v1/Pod", "b/x"), ("v1/Pod", "a/y"), ("apps/v1/Deployment", "a/d"), ("v1/Pod", "b/x")]
        {
            resources.entry(kind.to_owned()).or_default().insert(name.to_owned());
        }
        let text = String::from_utf8(resource_list(&resources)).unwrap();
        assert_eq!(text, "{\"apps/v1/Deployment\":[\"a/d\"],\"v1/Pod\":[\"a/y\",\"b/x\"]}\n");
    }

    #[test]
    fn gzip_and_back() {
        assert_eq!(gunzip(&gzip(b"text")).unwrap(), b"text");
        assert!(gunzip(b"text").is_err());
    }
}
