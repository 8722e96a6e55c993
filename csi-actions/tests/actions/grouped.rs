//! Groups of snapshots as a test makes them by hand, and what is left of them.

use cluster::simulator::State;
use serde_json::{Value, json};

use crate::bed::{Bed, CLAIMS, CONTENTS, DRIVER, SNAPSHOTS, backup, name};

pub(crate) const GROUPS: &str = "volumegroupsnapshots.groupsnapshot.storage.k8s.io";
pub(crate) const GROUP_CONTENTS: &str = "volumegroupsnapshotcontents.groupsnapshot.storage.k8s.io";
/// Velero's default for `volumeGroupSnapshotLabelKey`.
pub(crate) const LABEL: &str = "velero.io/volume-group";

impl Bed {
    /// A class for groups of the driver, with Velero's label.
    pub(crate) fn group_class(&self, name: &str, labels: &Value) {
        self.cluster
            .apply(
                json!({"apiVersion": "groupsnapshot.storage.k8s.io/v1", "kind": "VolumeGroupSnapshotClass",
                "metadata": {"name": name, "labels": labels}, "driver": DRIVER, "deletionPolicy": "Delete"}),
            )
            .unwrap();
    }

    /// A bound claim in `app` with the label of `group`.
    pub(crate) async fn grouped_claim(&self, name: &str, group: &str) -> Value {
        self.claim(name).await;
        self.cluster.patch(CLAIMS, "app", name, &json!({"metadata": {"labels": {LABEL: group}}})).unwrap()
    }

    /// The contents of a group of these claims as Velero's own actions archive them for the backup `b1`: nothing of it is
    /// in the cluster, and no content knows the others.
    pub(crate) async fn archived_group(&self, claims: &[&str]) -> Vec<Value> {
        self.group_class("group", &json!({}));
        for claim in claims {
            self.grouped_claim(claim, "db").await;
        }
        self.cluster
            .apply(json!({"apiVersion": "groupsnapshot.storage.k8s.io/v1", "kind": "VolumeGroupSnapshot",
                "metadata": {"namespace": "app", "name": "g"},
                "spec": {"volumeGroupSnapshotClassName": "group", "source": {"selector": {"matchLabels": {LABEL: "db"}}}}}))
            .unwrap();
        let ready = |object: &Value| object["status"]["readyToUse"] == true;
        let group = self.seen(GROUPS, "app", "g", ready).await;
        let mut contents = Vec::new();
        for snapshot in self.list(SNAPSHOTS) {
            let snapshot = self.seen(SNAPSHOTS, "app", name(&snapshot), ready).await;
            let content = snapshot["status"]["boundVolumeSnapshotContentName"].as_str().unwrap();
            let mut content = self.seen(CONTENTS, "", content, ready).await;
            content["metadata"]["labels"]["velero.io/backup-name"] = "b1".into();
            contents.push(content);
        }
        let content = group["status"]["boundVolumeGroupSnapshotContentName"].as_str().unwrap();
        self.cluster
            .patch(GROUP_CONTENTS, "", content, &json!({"spec": {"deletionPolicy": "Retain"}}))
            .unwrap();
        self.cluster.delete(GROUPS, "app", "g").unwrap();
        self.cluster.delete(GROUP_CONTENTS, "", content).unwrap();
        self.no_group_objects().await;
        assert_eq!((contents.len(), self.in_storage()), (claims.len(), claims.len()));
        contents
    }

    /// Waits until the cluster holds no object of a group, of its members or of their contents.
    pub(crate) async fn no_group_objects(&self) {
        self.until("no object of a group", |bed| {
            [GROUPS, GROUP_CONTENTS, SNAPSHOTS, CONTENTS].iter().all(|resource| bed.list(resource).is_empty())
        })
        .await;
    }

    /// Groups and snapshots in the storage.
    pub(crate) fn stored(&self) -> (usize, usize) {
        self.driver().read(|state: &State| (state.groups.len(), state.snapshots.len()))
    }
}

/// A backup on a server that names the label, with claims of one group.
pub(crate) async fn grouped(bed: &Bed, claims: &[&str]) -> (Value, Vec<Value>) {
    bed.group_class("group", &json!({"velero.io/csi-volumegroupsnapshot-class": "true"}));
    let mut bound = Vec::new();
    for claim in claims {
        bound.push(bed.grouped_claim(claim, "db").await);
    }
    (of_groups("b1"), bound)
}

/// A backup of this name on such a server.
pub(crate) fn of_groups(name: &str) -> Value {
    let mut backup = backup(name);
    backup["spec"]["volumeGroupSnapshotLabelKey"] = LABEL.into();
    backup
}

/// The contents with the members written on them, as our backup does it.
pub(crate) fn with_members(mut contents: Vec<Value>) -> Vec<Value> {
    let members: Vec<Value> =
        contents.iter().map(|content| content["status"]["snapshotHandle"].clone()).collect();
    for content in &mut contents {
        content["metadata"]["annotations"]["csi-actions.velero-rs.io/group-members"] =
            json!(members).to_string().into();
    }
    contents
}
