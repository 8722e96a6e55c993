//! Claims that are cut at one moment.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::world::{CLAIMS, DRIVER, GROUP_CONTENTS, GROUP_LABEL, GROUPS, NAMESPACE, SAFE, SNAPSHOTS, World};

const CLASS: &str = "group";
/// The value of the label.
const VALUE: &str = "db";

/// A group of claims, and a class for it.
#[derive(Debug)]
pub(crate) struct Group {
    members: usize,
}

impl Group {
    /// Makes a group of the claims.
    pub(crate) fn of(world: &World, claims: &[&str]) -> Result<Self> {
        world.cluster.apply(
            json!({"apiVersion": "groupsnapshot.storage.k8s.io/v1", "kind": "VolumeGroupSnapshotClass",
            "metadata": {"name": CLASS}, "driver": DRIVER, "deletionPolicy": "Delete"}),
        )?;
        for claim in claims {
            let label = json!({"metadata": {"labels": {GROUP_LABEL: VALUE}}});
            world.cluster.patch(CLAIMS, NAMESPACE, claim, &label)?;
        }
        Ok(Self { members: claims.len() })
    }

    /// Has it cut under this name; the group and its content.
    pub(crate) async fn cut(&self, world: &World, name: &str, labels: &Value) -> Result<(Value, Value)> {
        world.cluster.apply(
            json!({"apiVersion": "groupsnapshot.storage.k8s.io/v1", "kind": "VolumeGroupSnapshot",
            "metadata": {"namespace": NAMESPACE, "name": name, "labels": labels},
            "spec": {"volumeGroupSnapshotClassName": CLASS,
                "source": {"selector": {"matchLabels": {GROUP_LABEL: VALUE}}}}}),
        )?;
        let is_cut = |group: Option<&Value>| {
            let members = group.map(|group| Self::members(world, group).map_or(0, |members| members.len()));
            group.is_some_and(|group| group["status"]["readyToUse"] == true) && members == Some(self.members)
        };
        let group = world.cluster.wait(GROUPS, NAMESPACE, name, SAFE, is_cut).await?.context("the group")?;
        let content = group["status"]["boundVolumeGroupSnapshotContentName"].as_str().unwrap_or_default();
        let content = world.cluster.get(GROUP_CONTENTS, "", content)?.context("the content of the group")?;
        Ok((group, content))
    }

    /// The snapshots that were cut with `group`.
    pub(crate) fn members(world: &World, group: &Value) -> Result<Vec<Value>> {
        let mut snapshots = world.cluster.list(SNAPSHOTS, NAMESPACE)?;
        snapshots
            .retain(|snapshot| snapshot["metadata"]["ownerReferences"][0]["uid"] == group["metadata"]["uid"]);
        Ok(snapshots)
    }
}
