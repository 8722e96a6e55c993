//! Snapshots in the same cluster and storage that are not the backup's, each close to being mistaken for it.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::group::Group;
use crate::world::{
    CLASS, CONTENTS, DRIVER, GROUP_CONTENTS, GROUPS, NAMESPACE, SAFE, SNAPSHOTS, World, name,
};

/// A user's own snapshot of the same claim.
const OWN: &str = "my-own";
/// One that an earlier backup of the same name left in the cluster.
const EARLIER: &str = "velero-data-earlier";
/// What a restore made, with all labels that the archive had; it points at the user's snapshot.
const RESTORED: &str = "restored-earlier";

/// A group that an earlier backup of the same name left in the cluster.
const EARLIER_GROUP: &str = "velero-db-earlier";
/// What a restore made for that group, with all labels that a backup gives.
const STUB: &str = "restored-group";

/// What was there before the first backup.
#[derive(Debug)]
pub(crate) struct Foreign {
    /// Handles in the storage.
    pub(crate) handles: BTreeSet<String>,
    objects: Vec<(&'static str, &'static str, String, Value)>,
}

impl Foreign {
    /// Makes them of the claim, with labels of a backup `name` of this `uid`.
    pub(crate) async fn make(world: &World, claim: &str, backup: &str, uid: &str) -> Result<Self> {
        let taken = |snapshot: &str, labels: Value| {
            json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
                "metadata": {"namespace": NAMESPACE, "name": snapshot, "labels": labels},
                "spec": {"source": {"persistentVolumeClaimName": claim}, "volumeSnapshotClassName": CLASS}})
        };
        let earlier = json!({"velero.io/backup-name": backup, "velero.io/backup-uid": "uid-of-earlier"});
        world.cluster.apply(taken(OWN, json!({"velero.io/backup-name": backup})))?;
        world.cluster.apply(taken(EARLIER, earlier))?;
        let own = ready(world, OWN).await?;
        let content = bound(&own);
        let handle =
            world.cluster.get(CONTENTS, "", &content)?.context("the content")?["status"]["snapshotHandle"]
                .clone();
        let labels = json!({"velero.io/backup-name": backup, "velero.io/backup-uid": uid, "velero.io/restore-name": "r0"});
        world.cluster.apply(
            json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
            "metadata": {"name": RESTORED, "labels": labels},
            "spec": {"driver": DRIVER, "deletionPolicy": "Retain", "source": {"snapshotHandle": handle},
                "volumeSnapshotRef": {"namespace": NAMESPACE, "name": RESTORED}}}),
        )?;
        world.cluster.apply(json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
            "metadata": {"namespace": NAMESPACE, "name": RESTORED, "labels": labels},
            "spec": {"source": {"volumeSnapshotContentName": RESTORED}}}))?;
        let mut foreign = Self { handles: BTreeSet::new(), objects: Vec::new() };
        for snapshot in [OWN, EARLIER, RESTORED] {
            let content = bound(&ready(world, snapshot).await?);
            foreign.keep(world, CONTENTS, "", &content).await?;
            foreign.keep(world, SNAPSHOTS, NAMESPACE, snapshot).await?;
        }
        foreign.handles = world.stored();
        Ok(foreign)
    }

    /// And a group of the claims of `group`.
    pub(crate) async fn and_group(
        mut self,
        world: &World,
        group: &Group,
        backup: &str,
        uid: &str,
    ) -> Result<Self> {
        let before = world.stored();
        let earlier = json!({"velero.io/backup-name": backup, "velero.io/backup-uid": "uid-of-earlier"});
        let (cut, content) = group.cut(world, EARLIER_GROUP, &earlier).await?;
        let labels = json!({"velero.io/backup-name": backup, "velero.io/backup-uid": uid, "velero.io/restore-name": "r0"});
        let handles = json!({"volumeGroupSnapshotHandle": content["status"]["volumeGroupSnapshotHandle"],
            "volumeSnapshotHandles": world.stored().difference(&before).collect::<Vec<_>>()});
        world.cluster.apply(
            json!({"apiVersion": "groupsnapshot.storage.k8s.io/v1", "kind": "VolumeGroupSnapshotContent",
            "metadata": {"name": STUB, "labels": labels},
            "spec": {"driver": DRIVER, "deletionPolicy": "Retain", "source": {"groupSnapshotHandles": handles},
                "volumeGroupSnapshotRef": {"namespace": NAMESPACE, "name": STUB}}}),
        )?;
        let known = |stub: Option<&Value>| stub.is_some_and(|stub| stub["status"].is_object());
        world.cluster.wait(GROUP_CONTENTS, "", STUB, SAFE, known).await?.context("the stub")?;
        for snapshot in Group::members(world, &cut)? {
            let snapshot = ready(world, name(&snapshot)).await?;
            self.keep(world, CONTENTS, "", &bound(&snapshot)).await?;
            self.keep(world, SNAPSHOTS, NAMESPACE, name(&snapshot)).await?;
        }
        self.keep(world, GROUPS, NAMESPACE, EARLIER_GROUP).await?;
        self.keep(world, GROUP_CONTENTS, "", name(&content)).await?;
        self.keep(world, GROUP_CONTENTS, "", STUB).await?;
        self.handles = world.stored();
        Ok(self)
    }

    /// Notes an object as it is when the controllers have nothing more to write into it.
    async fn keep(
        &mut self,
        world: &World,
        resource: &'static str,
        namespace: &'static str,
        name: &str,
    ) -> Result<()> {
        let settled = |object: Option<&Value>| object.is_some_and(is_settled);
        let object = world.cluster.wait(resource, namespace, name, SAFE, settled).await?;
        let object = object.with_context(|| format!("{resource} {name}"))?;
        self.objects.push((resource, namespace, name.to_owned(), essence(&object)));
        Ok(())
    }

    /// They are as they were.
    pub(crate) fn is_untouched(&self, world: &World) -> Result<()> {
        for (resource, namespace, name, before) in &self.objects {
            let now = world.cluster.get(resource, namespace, name)?;
            let now = now.as_ref().map(essence).unwrap_or_default();
            ensure!(now == *before, "foreign {resource} {name} was {before} and is {now}");
        }
        let stored = world.stored();
        ensure!(
            self.handles.is_subset(&stored),
            "foreign snapshots are lost: {:?} of {stored:?}",
            self.handles
        );
        Ok(())
    }

    /// Names of the objects of a resource.
    pub(crate) fn names(&self, resource: &str) -> BTreeSet<String> {
        let of_resource = self.objects.iter().filter(|(each, ..)| *each == resource);
        of_resource.map(|(_, _, name, _)| name.clone()).collect()
    }
}

async fn ready(world: &World, snapshot: &str) -> Result<Value> {
    let is_ready =
        |object: Option<&Value>| object.is_some_and(|object| object["status"]["readyToUse"] == true);
    let seen = world.cluster.wait(SNAPSHOTS, NAMESPACE, snapshot, SAFE, is_ready).await?;
    seen.context("the snapshot")
}

fn bound(snapshot: &Value) -> String {
    snapshot["status"]["boundVolumeSnapshotContentName"].as_str().unwrap_or_default().to_owned()
}

/// It has the finalizer that the controllers give it, in whatever order they come by: the last of what [`essence`] keeps.
fn is_settled(object: &Value) -> bool {
    let spec = &object["spec"];
    let referrer = ["volumeSnapshotRef", "volumeGroupSnapshotRef"].map(|field| &spec[field]);
    // A content that nothing is bound to gets none.
    if referrer.iter().any(|referrer| referrer.is_object() && referrer["uid"].is_null()) {
        return true;
    }
    // The controller binds those that it makes a content for: not one that is given a retained content, nor a member of a group.
    let given = !spec["source"]["volumeSnapshotContentName"].is_null();
    let is_member = !object["metadata"]["ownerReferences"].is_null();
    let expected = if given || is_member { "-as-source-protection" } else { "-bound-protection" };
    let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    finalizers.filter_map(Value::as_str).any(|finalizer| finalizer.ends_with(expected))
}

/// What must not change. The controllers' own annotations come and go.
fn essence(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    let ours: Vec<_> = annotations.filter(|(key, _)| key.starts_with("csi-actions.velero-rs.io/")).collect();
    json!({"uid": metadata["uid"], "labels": metadata["labels"], "annotations": ours,
        "finalizers": metadata["finalizers"], "deletionTimestamp": metadata["deletionTimestamp"], "spec": object["spec"],
        "handle": object["status"]["snapshotHandle"], "name": name(object)})
}
