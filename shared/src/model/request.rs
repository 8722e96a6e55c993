//! The backup or restore that a call belongs to, as the server holds it at that moment.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

/// `status.phase` of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "Velero's own words")]
pub enum BackupPhase {
    New,
    Queued,
    ReadyToStart,
    FailedValidation,
    InProgress,
    WaitingForPluginOperations,
    WaitingForPluginOperationsPartiallyFailed,
    Finalizing,
    FinalizingPartiallyFailed,
    Completed,
    PartiallyFailed,
    Failed,
    Deleting,
    /// A phase that this build does not know, or none.
    Unknown,
}

impl BackupPhase {
    const KNOWN: [(&'static str, Self); 13] = [
        ("New", Self::New),
        ("Queued", Self::Queued),
        ("ReadyToStart", Self::ReadyToStart),
        ("FailedValidation", Self::FailedValidation),
        ("InProgress", Self::InProgress),
        ("WaitingForPluginOperations", Self::WaitingForPluginOperations),
        ("WaitingForPluginOperationsPartiallyFailed", Self::WaitingForPluginOperationsPartiallyFailed),
        ("Finalizing", Self::Finalizing),
        ("FinalizingPartiallyFailed", Self::FinalizingPartiallyFailed),
        ("Completed", Self::Completed),
        ("PartiallyFailed", Self::PartiallyFailed),
        ("Failed", Self::Failed),
        ("Deleting", Self::Deleting),
    ];

    /// The phase of Velero's name for it.
    pub fn from_name(name: &str) -> Self {
        Self::KNOWN.iter().find(|(known, _)| *known == name).map_or(Self::Unknown, |(_, phase)| *phase)
    }

    /// Velero's name for the phase, "" for an unknown one.
    pub fn as_str(self) -> &'static str {
        Self::KNOWN.iter().find(|(_, phase)| *phase == self).map_or("", |(name, _)| *name)
    }

    /// Whether the backup is being finalized: items are read again after their operations, and no new operation
    /// may start.
    pub fn is_finalizing(self) -> bool {
        matches!(self, Self::Finalizing | Self::FinalizingPartiallyFailed)
    }
}

/// Fields that a backup and a restore share. Everything is optional on the wire, and nothing here fails: which fields
/// the server fills differs between its releases and even between its calls.
macro_rules! request {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name {
            object: Value,
        }

        impl $name {
            pub(crate) fn parse(text: &Bytes) -> Result<Self, serde_json::Error> {
                // Velero's own clients send nothing only in tests; other hosts may.
                let object = if text.is_empty() { Value::Null } else { serde_json::from_slice(text)? };
                Ok(Self { object })
            }

            /// The whole object, to read fields that have no accessor here.
            pub fn object(&self) -> &Value {
                &self.object
            }

            /// The field at `path`; `None` where a part is absent. `null` reads as absent.
            pub fn get(&self, path: &[&str]) -> Option<&Value> {
                path.iter().try_fold(&self.object, |value, part| value.get(part)).filter(|value| !value.is_null())
            }

            fn text_at(&self, path: &[&str]) -> Option<&str> {
                self.get(path)?.as_str()
            }

            /// `metadata.name`.
            pub fn name(&self) -> &str {
                self.text_at(&["metadata", "name"]).unwrap_or_default()
            }

            /// `metadata.namespace`: the namespace of the Velero server.
            pub fn namespace(&self) -> &str {
                self.text_at(&["metadata", "namespace"]).unwrap_or_default()
            }

            /// `metadata.uid`: tells this object from an earlier one of its name.
            pub fn uid(&self) -> &str {
                self.text_at(&["metadata", "uid"]).unwrap_or_default()
            }

            /// The value of a label.
            pub fn label(&self, key: &str) -> Option<&str> {
                self.text_at(&["metadata", "labels", key])
            }

            /// The value of an annotation.
            pub fn annotation(&self, key: &str) -> Option<&str> {
                self.text_at(&["metadata", "annotations", key])
            }

            /// `spec.itemOperationTimeout`; `None` where it is absent, zero or no duration.
            pub fn item_operation_timeout(&self) -> Option<Duration> {
                self.duration_at(&["spec", "itemOperationTimeout"])
            }

            fn duration_at(&self, path: &[&str]) -> Option<Duration> {
                self.text_at(path).and_then(crate::duration::parse).filter(|duration| !duration.is_zero())
            }
        }

        impl From<Value> for $name {
            /// From a value, for a plugin's own tests.
            fn from(object: Value) -> Self {
                Self { object }
            }
        }
    };
}

request! {
    /// A `velero.io/v1` Backup.
    Backup
}

impl Backup {
    /// `status.phase`.
    pub fn phase(&self) -> BackupPhase {
        self.text_at(&["status", "phase"]).map_or(BackupPhase::Unknown, BackupPhase::from_name)
    }

    /// `spec.csiSnapshotTimeout`; `None` where it is absent, zero or no duration.
    pub fn csi_snapshot_timeout(&self) -> Option<Duration> {
        self.duration_at(&["spec", "csiSnapshotTimeout"])
    }

    /// `spec.snapshotVolumes`; absent means "where there is a snapshotter".
    pub fn snapshot_volumes(&self) -> Option<bool> {
        self.get(&["spec", "snapshotVolumes"])?.as_bool()
    }

    /// `spec.snapshotMoveData`: a data mover takes the snapshots.
    pub fn snapshot_move_data(&self) -> bool {
        self.get(&["spec", "snapshotMoveData"]).and_then(Value::as_bool).unwrap_or(false)
    }
}

request! {
    /// A `velero.io/v1` Restore.
    Restore
}

impl Restore {
    /// `spec.backupName`.
    pub fn backup_name(&self) -> &str {
        self.text_at(&["spec", "backupName"]).unwrap_or_default()
    }

    /// `spec.restorePVs`; `None` behaves as true.
    pub fn restore_pvs(&self) -> Option<bool> {
        self.get(&["spec", "restorePVs"])?.as_bool()
    }

    /// The namespace that `original` is restored into, by `spec.namespaceMapping`. Velero hands original namespaces to
    /// restore actions, so a look-up in the cluster goes through this.
    pub fn target_namespace<'a>(&'a self, original: &'a str) -> &'a str {
        self.text_at(&["spec", "namespaceMapping", original]).unwrap_or(original)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_bare_or_odd_backup_is_readable() {
        for text in ["", "{}", "null", r#"{"metadata":null,"status":{}}"#, r#"{"spec":{"ttl":5}}"#] {
            let backup = Backup::parse(&Bytes::from_static(text.as_bytes())).unwrap();
            assert_eq!((backup.name(), backup.phase()), ("", BackupPhase::Unknown));
            assert_eq!(backup.item_operation_timeout(), None);
        }
    }

    #[test]
    fn zero_durations_mean_not_set() {
        let backup =
            Backup::from(json!({"spec": {"itemOperationTimeout": "4h0m0s", "csiSnapshotTimeout": "0s"}}));
        assert_eq!(backup.item_operation_timeout(), Some(Duration::from_hours(4)));
        assert_eq!(backup.csi_snapshot_timeout(), None);
    }

    #[test]
    fn phases_of_finalizing() {
        for (phase, finalizing) in
            [("Finalizing", true), ("FinalizingPartiallyFailed", true), ("InProgress", false), ("Odd", false)]
        {
            let backup = Backup::from(json!({"status": {"phase": phase}}));
            assert_eq!(backup.phase().is_finalizing(), finalizing, "{phase}");
        }
    }

    #[test]
    fn unmapped_namespaces_stay() {
        let restore = Restore::from(json!({"spec": {"namespaceMapping": {"a": "a-copy"}}}));
        assert_eq!(restore.target_namespace("a"), "a-copy");
        assert_eq!(restore.target_namespace("b"), "b");
        assert_eq!(restore.restore_pvs(), None);
    }
}
