//! What the actions write where a user looks: Events on claims, snapshots, contents and backups.
//!
//! | reason | on | says |
//! |---|---|---|
//! | `VeleroSnapshotCreated` | the claim | the storage has cut its snapshot for a backup |
//! | `VeleroSnapshotFailed` | the claim | there is no snapshot of it in a backup, and why |
//! | `VeleroSnapshotDeletionPending` | the content that stays | the driver has not finished the deletion |
//! | `VeleroSnapshotDeletionFailed` | the content that stays; the backup where none does | the snapshot is still in the storage |
//! | `VeleroSnapshotRestoreFailed` | the restored snapshot | no volume can be made from it |
//!
//! They are of core/v1 and not of events.k8s.io/v1: both are stored alike and `kubectl describe` shows either, but the older
//! one is in the rules of every role that lets a controller write Events, and does not refuse a long text.

use std::time::SystemTime;

use serde_json::{Value, json};
use velero_plugin::Backup;

use crate::cluster::resource::{GROUP_CONTENTS, Resource};
use crate::object::{Snapshot, label, name, namespace, uid};
use crate::operation::rfc3339;
use crate::{keys, names};

/// Who says it.
const COMPONENT: &str = "csi-actions.velero-rs.io";
/// The namespace of the Events of objects that have none.
const OF_CLUSTER_SCOPED: &str = "default";
/// The longest text that the API takes in its newer form, in bytes.
const LONGEST: usize = 1024;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The storage has cut a snapshot.
    SnapshotCreated,
    /// There is no snapshot, or none that can be restored from.
    SnapshotFailed,
    /// A snapshot that was to be deleted may still be in the storage; its driver goes on.
    DeletionPending,
    /// A snapshot that was to be deleted is still in the storage.
    DeletionFailed,
    /// No volume can be made from a restored snapshot.
    RestoreFailed,
}

impl Reason {
    fn as_str(self) -> &'static str {
        match self {
            Self::SnapshotCreated => "VeleroSnapshotCreated",
            Self::SnapshotFailed => "VeleroSnapshotFailed",
            Self::DeletionPending => "VeleroSnapshotDeletionPending",
            Self::DeletionFailed => "VeleroSnapshotDeletionFailed",
            Self::RestoreFailed => "VeleroSnapshotRestoreFailed",
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::SnapshotCreated => "Normal",
            Self::SnapshotFailed | Self::DeletionPending | Self::DeletionFailed | Self::RestoreFailed => {
                "Warning"
            }
        }
    }
}

/// The object that an Event is on. Without its UID `kubectl describe` would not show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    api_version: String,
    kind: &'static str,
    namespace: String,
    name: String,
    uid: String,
}

impl About {
    /// A claim.
    pub fn claim(namespace: &str, name: &str, uid: &str) -> Self {
        Self::new("v1", "PersistentVolumeClaim", [namespace, name, uid])
    }

    /// A snapshot.
    pub fn snapshot(namespace: &str, name: &str, uid: &str) -> Self {
        Self::new("snapshot.storage.k8s.io/v1", "VolumeSnapshot", [namespace, name, uid])
    }

    /// A content, of a snapshot or of a group.
    pub fn content(resource: Resource, content: &Value) -> Self {
        let kind = if resource.plural == GROUP_CONTENTS.plural {
            "VolumeGroupSnapshotContent"
        } else {
            "VolumeSnapshotContent"
        };
        let api_version = format!("{}/{}", resource.group, resource.version);
        Self::new(&api_version, kind, ["", name(content), uid(content).unwrap_or_default()])
    }

    /// The claim that `snapshot` was taken of.
    pub fn claim_of(snapshot: &Value) -> Option<Self> {
        let uid = label(snapshot, keys::PVC_UID)?;
        Some(Self::claim(namespace(snapshot), Snapshot(snapshot).claim()?, uid))
    }

    /// A backup.
    pub fn backup(backup: &Backup) -> Self {
        Self::new("velero.io/v1", "Backup", [backup.namespace(), backup.name(), backup.uid()])
    }

    fn new(api_version: &str, kind: &'static str, parts: [&str; 3]) -> Self {
        let [namespace, name, uid] = parts.map(str::to_owned);
        Self { api_version: api_version.to_owned(), kind, namespace, name, uid }
    }

    /// An Event on it. Its name follows from what it says, so that the same news is written once.
    pub fn event(&self, reason: Reason, message: &str, now: SystemTime) -> Value {
        let Self { api_version, kind, namespace, name, uid } = self;
        let mut involved = json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid});
        if !namespace.is_empty() {
            involved["namespace"] = namespace.as_str().into();
        }
        let (message, now) = (cut(message), rfc3339(now));
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": names::event(name, uid, reason.as_str(), message),
                "namespace": if namespace.is_empty() { OF_CLUSTER_SCOPED } else { namespace },
            },
            "involvedObject": involved,
            "reason": reason.as_str(),
            "type": reason.kind(),
            "message": message,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        })
    }
}

fn cut(message: &str) -> &str {
    &message[..message.floor_char_boundary(LONGEST)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::resource::CONTENTS;
    use std::time::{Duration, UNIX_EPOCH};

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn an_event_says_what_kubectl_describe_shows_and_finds_its_object_by() {
        let event = About::claim("app", "data", "c-uid").event(Reason::SnapshotFailed, "no room", at(0));
        let expected = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": event["metadata"]["name"], "namespace": "app"},
            "involvedObject": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "app", "name": "data",
                "uid": "c-uid"},
            "reason": "VeleroSnapshotFailed", "type": "Warning", "message": "no room",
            "source": {"component": "csi-actions.velero-rs.io"}, "reportingComponent": "csi-actions.velero-rs.io",
            "firstTimestamp": "1970-01-01T00:00:00Z", "lastTimestamp": "1970-01-01T00:00:00Z", "count": 1,
        });
        assert_eq!(event, expected);
    }

    #[test]
    fn an_event_lives_where_the_api_server_takes_it() {
        let namespace =
            |about: About| about.event(Reason::DeletionPending, "m", at(0))["metadata"]["namespace"].clone();
        assert_eq!(namespace(About::snapshot("app", "s", "u")), "app");
        assert_eq!(
            namespace(About::content(CONTENTS, &json!({"metadata": {"name": "c", "uid": "u"}}))),
            "default"
        );
        let backup = Backup::from(json!({"metadata": {"namespace": "velero", "name": "b1", "uid": "u"}}));
        assert_eq!(namespace(About::backup(&backup)), "velero");
        let of_content = About::content(CONTENTS, &json!({"metadata": {"name": "c", "uid": "u"}})).event(
            Reason::DeletionPending,
            "m",
            at(0),
        );
        assert_eq!(of_content["involvedObject"]["namespace"], Value::Null);
    }

    #[test]
    fn the_same_news_has_one_name_at_any_time_and_other_news_another() {
        let name = |about: &About, reason, message: &str, now| {
            about.event(reason, message, at(now))["metadata"]["name"].as_str().unwrap().to_owned()
        };
        let about = About::claim("app", "data", "c-uid");
        let first = name(&about, Reason::SnapshotCreated, "backup b1", 0);
        assert!(first.starts_with("data."), "{first}");
        assert_eq!(first, name(&about, Reason::SnapshotCreated, "backup b1", 9));
        assert_ne!(first, name(&about, Reason::SnapshotCreated, "backup b2", 0));
        assert_ne!(first, name(&about, Reason::SnapshotFailed, "backup b1", 0));
        assert_ne!(
            first,
            name(&About::claim("app", "data", "other"), Reason::SnapshotCreated, "backup b1", 0)
        );
        let long = About::claim("app", &"x".repeat(253), "u");
        assert!(name(&long, Reason::SnapshotCreated, "m", 0).len() <= 253);
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let event = About::content(CONTENTS, &json!({"metadata": {"name": "c", "uid": "u"}})).event(
            Reason::DeletionFailed,
            &"ä".repeat(2000),
            at(0),
        );
        let message = event["message"].as_str().unwrap();
        assert!(message.len() <= 1024 && message.len() > 1000, "{}", message.len());
    }
}
