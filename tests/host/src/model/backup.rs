//! A Backup object: what a user asked for, and what became of it.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use velero_plugin::{BackupPhase, duration};

use super::order::Ordered;
use crate::archive::FORMAT;
use crate::cluster::ServerVersion;
use crate::go::duration as go_duration;
use crate::go::json as go;
use crate::go::time::Time;
use crate::minor::Minor;
use crate::operation::Outcome;

/// How long an operation may take where the backup does not say.
const ITEM_OPERATION_TIMEOUT: Duration = Duration::from_hours(4);

/// Why an object is no backup that can be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BackupError {
    /// Without a name there is no place to store it.
    #[error("the backup has no metadata.name")]
    NoName,
}

/// A `velero.io/v1` Backup. The object is what plugins get, so nothing of it is lost.
#[derive(Debug, Clone, PartialEq)]
pub struct Backup {
    object: Value,
}

impl Backup {
    /// Takes what a user wrote, in the namespace `velero` where it names none. A UID is made where there is none.
    ///
    /// # Errors
    ///
    /// When it has no name.
    pub fn new(mut object: Value, uid: &str) -> Result<Self, BackupError> {
        if object.pointer("/metadata/name").and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(BackupError::NoName);
        }
        object["apiVersion"] = json!("velero.io/v1");
        object["kind"] = json!("Backup");
        for (field, default) in [("namespace", "velero"), ("uid", uid)] {
            let field = &mut object["metadata"][field];
            if field.is_null() {
                *field = json!(default);
            }
        }
        Ok(Self { object })
    }

    /// Of the metadata file in a store.
    ///
    /// # Errors
    ///
    /// When it is no JSON.
    pub fn of_file(text: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(Self { object: serde_json::from_slice(text)? })
    }

    /// The whole object.
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// As `velero-backup.json` holds it.
    pub fn metadata_file(&self) -> Vec<u8> {
        go::indented(&Ordered::backup(&self.object))
    }

    fn text(&self, pointer: &str) -> &str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// `metadata.namespace`.
    pub fn namespace(&self) -> &str {
        self.text("/metadata/namespace")
    }

    /// `metadata.uid`.
    pub fn uid(&self) -> &str {
        self.text("/metadata/uid")
    }

    /// A list of texts in the spec; empty where there is none.
    pub(crate) fn list(&self, field: &str) -> Vec<String> {
        let list = self.object["spec"][field].as_array();
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// A field of the spec; `None` where it is absent or null.
    pub(crate) fn spec(&self, field: &str) -> Option<&Value> {
        self.object.pointer("/spec")?.get(field).filter(|value| !value.is_null())
    }

    /// `status.phase`.
    pub fn phase(&self) -> BackupPhase {
        BackupPhase::from_name(self.text("/status/phase"))
    }

    /// A number of the status; 0 where it is absent.
    pub fn count(&self, field: &str) -> u64 {
        self.object["status"][field].as_u64().unwrap_or_default()
    }

    /// How long an operation may take.
    pub fn item_operation_timeout(&self) -> Duration {
        let given = duration::parse(self.text("/spec/itemOperationTimeout"));
        given.filter(|given| !given.is_zero()).unwrap_or(ITEM_OPERATION_TIMEOUT)
    }

    /// `status.startTimestamp` and `status.completionTimestamp`.
    pub fn times(&self) -> [Option<Timestamp>; 2] {
        ["/status/startTimestamp", "/status/completionTimestamp"]
            .map(|pointer| self.text(pointer).parse().ok())
    }

    /// Adds to a list of exclusions, and takes what is excluded from the list of inclusions.
    pub(crate) fn exclude(&mut self, includes: &str, excludes: &str, added: &[&str]) {
        let mut kept_out = self.list(excludes);
        for one in added {
            if !kept_out.iter().any(|known| known == one) {
                kept_out.push((*one).to_owned());
            }
        }
        let spec = &mut self.object["spec"];
        if let Some(included) = spec.get_mut(includes).and_then(Value::as_array_mut) {
            included.retain(|one| !kept_out.iter().any(|excluded| one == excluded));
        }
        spec[excludes] = json!(kept_out);
    }

    pub(crate) fn set_phase(&mut self, phase: BackupPhase) {
        self.set_status("phase", json!(phase.as_str()));
    }

    /// Sets a field of the status; a count of 0 is left out, as the server's types leave it out.
    pub(crate) fn set_status(&mut self, field: &str, value: Value) {
        let status = &mut self.object["status"];
        if !status.is_object() {
            *status = Value::Object(Map::new());
        }
        if let Some(status) = status.as_object_mut() {
            if value == json!(0) || value.is_null() {
                status.remove(field);
            } else {
                status.insert(field.to_owned(), value);
            }
        }
    }

    /// Fills in what a server of this release fills in before it starts.
    pub(crate) fn begin(
        &mut self,
        now: Timestamp,
        minor: Minor,
        cluster: &ServerVersion,
        resource_timeout: Duration,
    ) {
        let spec = &mut self.object["spec"];
        for (field, default) in [
            ("metadata", json!({})),
            ("hooks", json!({})),
            ("includedNamespaces", json!(["*"])),
            ("ttl", json!("720h0m0s")),
            ("csiSnapshotTimeout", json!("10m0s")),
            ("itemOperationTimeout", json!("4h0m0s")),
            ("storageLocation", json!("default")),
            ("defaultVolumesToFsBackup", json!(false)),
            ("snapshotMoveData", json!(false)),
        ] {
            if spec[field].is_null() {
                spec[field] = default;
            }
        }
        if minor >= Minor::V1_17 && spec["volumeGroupSnapshotLabelKey"].is_null() {
            spec["volumeGroupSnapshotLabelKey"] = json!("velero.io/volume-group");
        }
        let annotations = &mut self.object["metadata"]["annotations"];
        annotations["velero.io/resource-timeout"] = json!(go_duration::text(resource_timeout));
        annotations["velero.io/source-cluster-k8s-gitversion"] = json!(cluster.git_version);
        annotations["velero.io/source-cluster-k8s-major-version"] = json!(cluster.major);
        annotations["velero.io/source-cluster-k8s-minor-version"] = json!(cluster.minor);
        let ttl = duration::parse(self.text("/spec/ttl")).unwrap_or_default();
        let location = json!(self.text("/spec/storageLocation"));
        self.object["metadata"]["labels"]["velero.io/storage-location"] = location;
        self.set_status("version", json!(1));
        self.set_status("formatVersion", json!(FORMAT));
        self.set_status("expiration", json!(Time::of(now + ttl)));
        self.set_status("startTimestamp", json!(Time::of(now)));
        self.set_status("hookStatus", json!({}));
        self.set_phase(BackupPhase::InProgress);
    }

    pub(crate) fn complete(&mut self, phase: BackupPhase, now: Timestamp) {
        self.set_phase(phase);
        self.set_status("completionTimestamp", json!(Time::of(now)));
    }

    /// The backup as a whole failed.
    pub(crate) fn fail(&mut self, reason: &str, now: Timestamp) {
        self.complete(BackupPhase::Failed, now);
        self.set_status("failureReason", json!(reason));
    }

    pub(crate) fn count_operations(&mut self, outcome: &Outcome) {
        self.set_status("backupItemOperationsCompleted", json!(outcome.completed));
        self.set_status("backupItemOperationsFailed", json!(outcome.failed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_filled_in_at_the_start() {
        let mut backup =
            Backup::new(json!({"metadata": {"name": "b"}, "spec": {"ttl": "1h"}}), "uid-1").unwrap();
        assert_eq!(
            (backup.namespace(), backup.uid(), backup.phase()),
            ("velero", "uid-1", BackupPhase::Unknown)
        );
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        backup.begin(now, Minor::V1_18, &ServerVersion::default(), Duration::from_secs(20));
        assert_eq!(backup.object()["metadata"]["annotations"]["velero.io/resource-timeout"], "20s");
        assert_eq!(backup.phase(), BackupPhase::InProgress);
        assert_eq!(backup.object()["status"]["expiration"], "2027-01-15T09:00:00Z");
        assert_eq!(backup.object()["spec"]["includedNamespaces"], json!(["*"]));
        assert_eq!(backup.item_operation_timeout(), Duration::from_hours(4));
        assert_eq!(Backup::new(json!({}), "u"), Err(BackupError::NoName));
    }

    #[test]
    fn counts_of_nothing_are_left_out() {
        let mut backup = Backup::new(json!({"metadata": {"name": "b"}}), "u").unwrap();
        backup.set_status("errors", json!(2));
        assert_eq!(backup.count("errors"), 2);
        backup.set_status("errors", json!(0));
        assert_eq!(backup.object()["status"], json!({}));
    }
}
