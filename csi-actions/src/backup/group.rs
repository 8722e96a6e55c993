//! Which group a claim belongs to, and whether the storage can cut that.

use serde_json::{Value, json};
use velero_plugin::Backup;

use crate::group_api::GroupApi;
use crate::object::{label, name, namespace, text};
use crate::{keys, labels, names};

/// In the spec of a backup: the label by which claims belong to groups.
pub(crate) const LABEL_KEY: &str = "volumeGroupSnapshotLabelKey";

/// A group of claims: those of one namespace that carry one value of the label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    namespace: String,
    key: String,
    value: String,
    /// Tells this group of this backup from all others.
    pub id: String,
}

/// Why the storage can't cut a group. The snapshot controller takes all claims that carry the label, so one that can't be
/// taken keeps the others from it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GroupError {
    #[error(
        "its group {group} can't be cut: claim {claim} is of it and is bound to no volume; bind that claim, or take its \
         label {key} away"
    )]
    Unbound { group: String, claim: String, key: String },
    #[error(
        "its group {group} can't be cut: the volume of claim {claim} is of {driver}, that of this one of CSI driver {ours:?}; \
         take the label {key} away from one of them"
    )]
    OtherDriver { group: String, claim: String, driver: String, ours: String, key: String },
    #[error("its group {group} was cut without it: was the claim made, or labelled, since?")]
    NotCut { group: String },
}

impl Group {
    /// The group of `claim` in `backup`: servers since 1.17 name a label, and the claim carries it.
    pub(crate) fn of(claim: &Value, backup: &Backup) -> Option<Self> {
        let key = backup.get(&["spec", LABEL_KEY])?.as_str().filter(|key| !key.is_empty())?;
        let value = label(claim, key)?;
        Some(Self {
            namespace: namespace(claim).to_owned(),
            key: key.to_owned(),
            value: value.to_owned(),
            id: names::group_id(backup.uid(), namespace(claim), key, value),
        })
    }

    /// The namespace of its claims.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A selector of its claims.
    pub(super) fn of_claims(&self) -> String {
        format!("{}={}", self.key, self.value)
    }

    /// A selector of what has it cut.
    pub(super) fn of_groups(&self) -> String {
        format!("{}={}", keys::GROUP, self.id)
    }

    /// The `VolumeGroupSnapshot` that has it cut. `attempt` counts from 0.
    pub(super) fn snapshot(&self, api: GroupApi, backup: &Backup, class: &str, attempt: u32) -> Value {
        // Not the label of the claims: deployment tools know objects by such labels, and prune those that they don't.
        let mut labels = labels::of_backup(backup);
        labels.insert(keys::GROUP.to_owned(), self.id.as_str().into());
        json!({
            "apiVersion": api.api_version(),
            "kind": "VolumeGroupSnapshot",
            "metadata": {
                "namespace": self.namespace,
                "name": names::group(&self.value, &self.id, attempt),
                "labels": labels,
            },
            "spec": {
                "volumeGroupSnapshotClassName": class,
                "source": {"selector": {"matchLabels": {&self.key: self.value}}},
            },
        })
    }

    /// The volume of a claim of the group.
    pub(crate) fn volume_of<'a>(&self, claim: &'a Value) -> Result<&'a str, GroupError> {
        let phase = text(claim, &["status", "phase"]);
        text(claim, &["spec", "volumeName"]).filter(|_| phase == Some("Bound")).ok_or_else(|| {
            GroupError::Unbound {
                group: self.to_string(),
                claim: name(claim).to_owned(),
                key: self.key.clone(),
            }
        })
    }

    /// That the `volume` of a claim of the group is of the same driver.
    pub(crate) fn fits(&self, claim: &Value, volume: &Value, ours: &str) -> Result<(), GroupError> {
        let driver = text(volume, &["spec", "csi", "driver"]);
        if driver == Some(ours) {
            return Ok(());
        }
        let driver =
            driver.map_or_else(|| "no CSI driver".to_owned(), |driver| format!("CSI driver {driver:?}"));
        Err(GroupError::OtherDriver {
            group: self.to_string(),
            claim: name(claim).to_owned(),
            driver,
            ours: ours.to_owned(),
            key: self.key.clone(),
        })
    }

    /// That the group was cut without a claim that carries its label.
    pub(super) fn without_it(&self) -> GroupError {
        GroupError::NotCut { group: self.to_string() }
    }
}

impl std::fmt::Display for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of namespace {}", self.value, self.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "velero.io/volume-group";

    fn backup(spec: &Value) -> Backup {
        Backup::from(json!({"metadata": {"name": "b1", "uid": "u1"}, "spec": spec}))
    }

    fn claim(labels: &Value) -> Value {
        json!({"metadata": {"namespace": "a", "name": "data", "labels": labels},
            "spec": {"volumeName": "pv1"}, "status": {"phase": "Bound"}})
    }

    fn group() -> Group {
        let spec = json!({"volumeGroupSnapshotLabelKey": KEY});
        Group::of(&claim(&json!({KEY: "db"})), &backup(&spec)).unwrap()
    }

    #[test]
    fn a_claim_is_of_a_group_where_the_backup_names_a_label_that_it_carries() {
        let table = [
            (json!({"volumeGroupSnapshotLabelKey": KEY}), json!({KEY: "db"}), true),
            (json!({"volumeGroupSnapshotLabelKey": KEY}), json!({KEY: ""}), false),
            (json!({"volumeGroupSnapshotLabelKey": KEY}), json!({"other": "db"}), false),
            (json!({"volumeGroupSnapshotLabelKey": KEY}), Value::Null, false),
            (json!({"volumeGroupSnapshotLabelKey": ""}), json!({KEY: "db", "": "x"}), false),
            (json!({}), json!({KEY: "db"}), false),
        ];
        for (spec, labels, grouped) in table {
            assert_eq!(Group::of(&claim(&labels), &backup(&spec)).is_some(), grouped, "{spec} {labels}");
        }
    }

    #[test]
    fn i37_i40_labels_and_names_of_a_group_are_valid_whatever_the_value() {
        let long = "x".repeat(70);
        let long = Backup::from(json!({"metadata": {"name": long, "uid": "u1"}}));
        let api = GroupApi::among(&["v1".to_owned()]).unwrap();
        let snapshot = group().snapshot(api, &long, "k", 0);
        for value in snapshot["metadata"]["labels"].as_object().unwrap().values() {
            assert!(value.as_str().unwrap().len() <= 63, "{value}");
        }
        assert_eq!(snapshot["metadata"]["labels"].get(KEY), None, "no deployment tool takes it for its own");
        assert_eq!(snapshot["spec"]["source"], json!({"selector": {"matchLabels": {KEY: "db"}}}));
    }

    #[test]
    fn one_claim_that_cannot_be_cut_is_named() {
        let mut pending = claim(&Value::Null);
        pending["status"]["phase"] = "Pending".into();
        let error = group().volume_of(&pending).unwrap_err().to_string();
        for part in ["data", "\"db\" of namespace a", KEY, "no volume"] {
            assert!(error.contains(part), "{part} in {error}");
        }
        assert_eq!(group().volume_of(&claim(&Value::Null)), Ok("pv1"));
        let volume = |source: Value| json!({"spec": source});
        let fits = |source: Value| group().fits(&claim(&Value::Null), &volume(source), "d.csi");
        assert_eq!(fits(json!({"csi": {"driver": "d.csi"}})), Ok(()));
        assert!(fits(json!({"csi": {"driver": "e.csi"}})).unwrap_err().to_string().contains("e.csi"));
        assert!(fits(json!({"nfs": {}})).unwrap_err().to_string().contains("no CSI driver"));
    }
}
