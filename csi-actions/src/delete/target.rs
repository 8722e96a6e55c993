//! What an archived content says must be deleted from the storage, and the content through which that is done.

use serde_json::{Map, Value, json};
use velero_plugin::Backup;

use super::passage::Passage;
use crate::cluster::resource::{CONTENTS, Resource};
use crate::object::{self, Content, annotation};
use crate::{keys, labels, names};

/// A snapshot in the storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// The driver.
    pub driver: String,
    /// Its handle for the snapshot.
    pub handle: String,
    /// The group that it was cut with: then the driver deletes the group alone.
    pub group: Option<String>,
    /// The bytes that its deletion gives back at most, as far as they are known.
    pub size: Option<u64>,
    annotations: Map<String, Value>,
    managed_by: Option<String>,
    volume_mode: Option<Value>,
}

impl Target {
    /// What an archived content points at; `None` where it never had a handle.
    pub(super) fn of(archived: &Value) -> Option<Self> {
        let content = Content(archived);
        let secret = [keys::DELETION_SECRET_NAME, keys::DELETION_SECRET_NAMESPACE];
        let annotations = secret.into_iter().filter_map(|key| {
            let value = annotation(archived, key)?;
            Some((key.to_owned(), value.into()))
        });
        Some(Self {
            driver: content.driver().to_owned(),
            handle: content.handle()?.to_owned(),
            group: content.group_handle().map(str::to_owned),
            size: content.restore_size(),
            annotations: annotations.collect(),
            managed_by: object::label(archived, keys::MANAGED_BY).map(str::to_owned),
            volume_mode: archived.pointer("/spec/sourceVolumeMode").filter(|mode| !mode.is_null()).cloned(),
        })
    }

    /// Whether a live content points at the same snapshot.
    pub(super) fn is_pointed_at_by(&self, content: &Value) -> bool {
        let content = Content(content);
        content.driver() == self.driver && content.handle() == Some(&self.handle)
    }
}

impl Passage for Target {
    fn resource(&self) -> Resource {
        CONTENTS
    }

    fn finalizer(&self) -> &'static str {
        keys::CONTENT_FINALIZER
    }

    fn temporary_name(&self) -> String {
        names::temporary_content(&self.driver, &[&self.handle])
    }

    fn can_go_through(&self, content: &Value) -> Result<(), &'static str> {
        let view = Content(content);
        let source = object::text(content, &["spec", "source", "snapshotHandle"]);
        if view.driver() != self.driver || source != Some(&self.handle) {
            return Err("it is of another driver or snapshot");
        }
        // The handle in the status is the one that the sidecar deletes.
        if view.reported_handle().is_some_and(|reported| reported != self.handle) {
            return Err("its status has another handle");
        }
        if view.bound_uid().is_some() {
            return Err("it is bound to a VolumeSnapshot");
        }
        Ok(())
    }

    fn temporary_content(&self, backup: &Backup) -> Value {
        let name = self.temporary_name();
        let mut labels = labels::of_backup(backup);
        if let Some(node) = &self.managed_by {
            labels.insert(keys::MANAGED_BY.to_owned(), node.as_str().into());
        }
        let mut content = json!({
            "apiVersion": format!("{}/{}", CONTENTS.group, CONTENTS.version),
            "kind": "VolumeSnapshotContent",
            "metadata": {
                "name": name,
                "labels": labels,
                "annotations": self.annotations,
                "finalizers": [keys::CONTENT_FINALIZER],
            },
            "spec": {
                "driver": self.driver,
                "deletionPolicy": "Delete",
                "source": {"snapshotHandle": self.handle},
                // A snapshot that never exists: the content stays unbound, so that the sidecar alone looks after it.
                "volumeSnapshotRef": {
                    "apiVersion": format!("{}/{}", CONTENTS.group, CONTENTS.version),
                    "kind": "VolumeSnapshot",
                    "namespace": backup.namespace(),
                    "name": name,
                },
            },
        });
        if let Some(mode) = &self.volume_mode {
            content["spec"]["sourceVolumeMode"] = mode.clone();
        }
        content
    }

    fn missing_status(&self, content: &Value) -> Option<Value> {
        let is_known = Content(content).reported_handle().is_some();
        (!is_known).then(|| json!({"snapshotHandle": self.handle}))
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "snapshot {:?} of driver {:?}", self.handle, self.driver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archived() -> Value {
        json!({
            "kind": "VolumeSnapshotContent",
            "metadata": {"name": "snapcontent-aa", "uid": "u1", "labels": {"velero.io/backup-name": "b1"},
                "annotations": {"snapshot.storage.kubernetes.io/deletion-secret-name": "s",
                    "snapshot.storage.kubernetes.io/deletion-secret-namespace": "sec", "other": "x"},
                "finalizers": ["left.over/finalizer"]},
            "spec": {"driver": "d.csi", "deletionPolicy": "Retain", "source": {"volumeHandle": "vol-1"},
                "volumeSnapshotClassName": "k", "sourceVolumeMode": "Block",
                "volumeSnapshotRef": {"name": "velero-p-x", "namespace": "app", "uid": "vs1"}},
            "status": {"snapshotHandle": "snap-1", "readyToUse": true, "restoreSize": 1_073_741_824},
        })
    }

    fn backup() -> Backup {
        Backup::from(json!({"metadata": {"name": "b1", "uid": "bu", "namespace": "velero"}}))
    }

    #[test]
    fn c34_c36_the_temporary_content_has_the_handle_the_secret_and_a_finalizer_and_nothing_of_the_old_binding()
     {
        let content = Target::of(&archived()).unwrap().temporary_content(&backup());
        assert_eq!(content["metadata"]["finalizers"], json!([keys::CONTENT_FINALIZER]));
        assert_eq!(
            content["metadata"]["annotations"],
            json!({
            "snapshot.storage.kubernetes.io/deletion-secret-name": "s",
            "snapshot.storage.kubernetes.io/deletion-secret-namespace": "sec"})
        );
        assert_eq!(content["spec"]["source"], json!({"snapshotHandle": "snap-1"}));
        assert_eq!(content["spec"]["deletionPolicy"], "Delete");
        assert_eq!(content["spec"]["sourceVolumeMode"], "Block");
        assert_eq!(content["spec"]["volumeSnapshotRef"]["uid"], Value::Null);
        assert_eq!(content["spec"]["volumeSnapshotClassName"], Value::Null);
        assert_eq!(content["status"], Value::Null);
    }

    #[test]
    fn a_driver_that_runs_per_node_is_still_addressed() {
        let mut archived = archived();
        archived["metadata"]["labels"][keys::MANAGED_BY] = "node-1".into();
        let content = Target::of(&archived).unwrap().temporary_content(&backup());
        assert_eq!(content["metadata"]["labels"][keys::MANAGED_BY], "node-1");
    }

    #[test]
    fn i03_a_content_of_another_name_points_at_the_same_snapshot() {
        let target = Target::of(&archived()).unwrap();
        let by_source = json!({"spec": {"driver": "d.csi", "source": {"snapshotHandle": "snap-1"}}});
        assert!(target.is_pointed_at_by(&by_source));
        assert!(
            !target.is_pointed_at_by(
                &json!({"spec": {"driver": "e.csi", "source": {"snapshotHandle": "snap-1"}}})
            )
        );
        assert!(
            !target.is_pointed_at_by(
                &json!({"spec": {"driver": "d.csi"}, "status": {"snapshotHandle": "snap-2"}})
            )
        );
    }

    #[test]
    fn a_content_of_the_temporary_name_serves_only_if_it_leads_to_this_very_snapshot() {
        let target = Target::of(&archived()).unwrap();
        let made = target.temporary_content(&backup());
        assert_eq!(target.can_go_through(&made), Ok(()));
        let changed = |pointer: &str, value: &str| {
            let mut content = made.clone();
            content["status"] = json!({"snapshotHandle": "snap-1"});
            content["spec"]["volumeSnapshotRef"]["uid"] = Value::Null;
            *content.pointer_mut(pointer).unwrap() = value.into();
            target.can_go_through(&content)
        };
        assert!(changed("/spec/driver", "e.csi").unwrap_err().contains("another driver"));
        assert!(changed("/spec/source/snapshotHandle", "snap-2").unwrap_err().contains("snapshot"));
        assert!(changed("/status/snapshotHandle", "snap-2").unwrap_err().contains("status"));
        assert!(changed("/spec/volumeSnapshotRef/uid", "u").unwrap_err().contains("bound"));
    }

    #[test]
    fn c24_a_content_without_a_handle_or_status_points_at_nothing() {
        let mut archived = archived();
        archived["status"] = Value::Null;
        assert_eq!(Target::of(&archived), None);
        assert_eq!(Target::of(&json!({})), None);
    }
}
