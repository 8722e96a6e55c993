//! A group of snapshots in the storage, which a driver deletes as a whole only, and the content through which that is done.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use velero_plugin::Backup;

use super::live::{Role, role_by_labels};
use super::passage::Passage;
use super::target::Target;
use crate::cluster::resource::Resource;
use crate::group_api::GroupApi;
use crate::object::{Content, GroupContent, annotation, label, text};
use crate::{keys, labels, names};

/// A group in the storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    api: GroupApi,
    /// The driver.
    pub driver: String,
    /// Its handle for the group.
    pub handle: String,
    /// Its handles for the members that are known.
    pub members: BTreeSet<String>,
    /// Whether these are all members.
    pub is_whole: bool,
    annotations: Map<String, Value>,
}

impl Group {
    /// The group of this `handle` that the snapshot of `archived`, which is `target`, was cut with.
    ///
    /// Our backup writes all members on each content. Where Velero's own actions made the archive only this one is known,
    /// and `met`, those that came before.
    pub(super) fn of(
        api: GroupApi,
        target: &Target,
        handle: &str,
        archived: &Value,
        met: &BTreeSet<String>,
    ) -> Self {
        let listed = annotation(archived, keys::GROUP_MEMBERS)
            .and_then(|list| serde_json::from_str::<BTreeSet<String>>(list).ok())
            .filter(|members| members.contains(&target.handle));
        let is_whole = listed.is_some();
        let mut members = listed.unwrap_or_else(|| met.clone());
        members.insert(target.handle.clone());
        // The controllers give the Secret of the group to its members, under other keys.
        let secret = [
            (keys::DELETION_SECRET_NAME, keys::GROUP_SECRET_NAME),
            (keys::DELETION_SECRET_NAMESPACE, keys::GROUP_SECRET_NAMESPACE),
        ];
        let annotations = secret.into_iter().filter_map(|(of_member, of_group)| {
            Some((of_group.to_owned(), annotation(archived, of_member)?.into()))
        });
        Self {
            api,
            driver: target.driver.clone(),
            handle: handle.to_owned(),
            members,
            is_whole,
            annotations: annotations.collect(),
        }
    }

    /// The group that a live content stands for, with the members that it tells of; `None` where it has no handle, so that
    /// nothing is in the storage.
    pub(super) fn of_content(api: GroupApi, content: &Value) -> Option<Self> {
        let view = GroupContent(content);
        Some(Self {
            api,
            driver: view.driver().to_owned(),
            handle: view.handle()?.to_owned(),
            members: view.members().into_iter().map(str::to_owned).collect(),
            is_whole: true,
            annotations: Map::new(),
        })
    }

    /// The one of the live `contents` that belongs to someone else and points at a member, so that the group has to stay.
    /// `archived` and `backup` tell which are ours.
    pub(super) fn needed_by<'a>(
        &self,
        contents: &'a [Value],
        archived: &Value,
        backup: &Backup,
    ) -> Option<&'a Value> {
        contents.iter().find(|content| {
            self.has_member(content)
                && !is_of_the_cut(content)
                && role_by_labels(content, archived, backup) == Role::Foreign
        })
    }

    /// Whether a live content is that of a member.
    pub(super) fn has_member(&self, content: &Value) -> bool {
        let content = Content(content);
        let is_listed = content.handle().is_some_and(|handle| self.members.contains(handle));
        content.driver() == self.driver && (content.group_handle() == Some(&self.handle) || is_listed)
    }

    /// Whether a live content of a group points at this one.
    pub(super) fn is_pointed_at_by(&self, content: &Value) -> bool {
        let content = GroupContent(content);
        content.driver() == self.driver && content.handle() == Some(&self.handle)
    }
}

/// Whether the snapshot controller made the content when the group was cut, and nobody has marked it since, as with a claim
/// whose item failed: then it goes with the group.
fn is_of_the_cut(content: &Value) -> bool {
    text(content, &["spec", "source", "volumeHandle"]).is_some()
        && label(content, keys::BACKUP_NAME).is_none()
}

impl Passage for Group {
    fn resource(&self) -> Resource {
        self.api.contents()
    }

    fn finalizer(&self) -> &'static str {
        keys::GROUP_CONTENT_FINALIZER
    }

    fn temporary_name(&self) -> String {
        // The members can't be changed on a content, so each list has one of its own.
        let members = self.members.iter().map(String::as_str);
        let handles: Vec<&str> = [self.handle.as_str()].into_iter().chain(members).collect();
        names::temporary_content(&self.driver, &handles)
    }

    fn temporary_content(&self, backup: &Backup) -> Value {
        let name = self.temporary_name();
        json!({
            "apiVersion": self.api.api_version(),
            "kind": "VolumeGroupSnapshotContent",
            "metadata": {
                "name": name,
                "labels": labels::of_backup(backup),
                "annotations": self.annotations,
                "finalizers": [keys::GROUP_CONTENT_FINALIZER],
            },
            "spec": {
                "driver": self.driver,
                "deletionPolicy": "Delete",
                "source": {"groupSnapshotHandles": {
                    "volumeGroupSnapshotHandle": self.handle,
                    "volumeSnapshotHandles": self.members,
                }},
                // A group that never exists: the content stays unbound, so that the sidecar alone looks after it.
                "volumeGroupSnapshotRef": {
                    "apiVersion": self.api.api_version(),
                    "kind": "VolumeGroupSnapshot",
                    "namespace": backup.namespace(),
                    "name": name,
                },
            },
        })
    }

    fn can_go_through(&self, content: &Value) -> Result<(), &'static str> {
        let view = GroupContent(content);
        let source = content.pointer("/spec/source/groupSnapshotHandles");
        let made = json!({"volumeGroupSnapshotHandle": self.handle, "volumeSnapshotHandles": self.members});
        if view.driver() != self.driver || source != Some(&made) {
            return Err("it is of another driver or group");
        }
        // The handle in the status is the one that the sidecar deletes.
        if view.reported_handle().is_some_and(|reported| reported != self.handle) {
            return Err("its status has another handle");
        }
        if view.bound_uid().is_some() {
            return Err("it is bound to a VolumeGroupSnapshot");
        }
        Ok(())
    }

    fn missing_status(&self, content: &Value) -> Option<Value> {
        let is_known = GroupContent(content).reported_handle().is_some();
        (!is_known).then(|| json!({"volumeGroupSnapshotHandle": self.handle}))
    }
}

impl std::fmt::Display for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "group {:?} of driver {:?}", self.handle, self.driver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archived(members: &str) -> Value {
        json!({
            "metadata": {"name": "snapcontent-a", "annotations": {
                "csi-actions.velero-rs.io/group-members": members,
                "snapshot.storage.kubernetes.io/deletion-secret-name": "s",
                "snapshot.storage.kubernetes.io/deletion-secret-namespace": "sec"}},
            "spec": {"driver": "d.csi"},
            "status": {"snapshotHandle": "snap-1", "volumeGroupSnapshotHandle": "group-1"},
        })
    }

    fn group(members: &str, met: &[&str]) -> Group {
        let api = GroupApi::among(&["v1beta2".to_owned()]).unwrap();
        let archived = archived(members);
        let met = met.iter().map(|handle| (*handle).to_owned()).collect();
        Group::of(api, &Target::of(&archived).unwrap(), "group-1", &archived, &met)
    }

    fn members(group: &Group) -> Vec<&str> {
        group.members.iter().map(String::as_str).collect()
    }

    #[test]
    fn a_group_is_whole_only_where_our_backup_wrote_its_members() {
        let whole = group(r#"["snap-2","snap-1"]"#, &[]);
        assert_eq!((members(&whole), whole.is_whole), (vec!["snap-1", "snap-2"], true));
        for odd in ["", "snap-1", "[]", r#"["snap-2"]"#, "[1]"] {
            let part = group(odd, &["snap-3"]);
            assert_eq!((members(&part), part.is_whole), (vec!["snap-1", "snap-3"], false), "{odd}");
        }
    }

    #[test]
    fn the_temporary_content_names_all_members_and_holds_the_secret_of_the_group() {
        let group = group(r#"["snap-2","snap-1"]"#, &[]);
        let content = group
            .temporary_content(&Backup::from(json!({"metadata": {"name": "b1", "namespace": "velero"}})));
        let handles =
            json!({"volumeGroupSnapshotHandle": "group-1", "volumeSnapshotHandles": ["snap-1", "snap-2"]});
        assert_eq!(content["spec"]["source"], json!({"groupSnapshotHandles": handles}));
        assert_eq!(content["spec"]["deletionPolicy"], "Delete");
        assert_eq!(content["spec"]["volumeGroupSnapshotRef"]["uid"], Value::Null);
        assert_eq!(content["apiVersion"], "groupsnapshot.storage.k8s.io/v1beta2");
        assert_eq!(content["metadata"]["finalizers"], json!([keys::GROUP_CONTENT_FINALIZER]));
        assert_eq!(
            content["metadata"]["annotations"],
            json!({
            "groupsnapshot.storage.kubernetes.io/deletion-secret-name": "s",
            "groupsnapshot.storage.kubernetes.io/deletion-secret-namespace": "sec"})
        );
        assert_eq!(group.can_go_through(&content), Ok(()));
        assert_eq!(group.missing_status(&content), Some(json!({"volumeGroupSnapshotHandle": "group-1"})));
    }

    #[test]
    fn each_list_of_members_has_a_content_of_its_own() {
        let (one, two) = (group("", &[]), group("", &["snap-2"]));
        assert_ne!(one.temporary_name(), two.temporary_name());
        let content = one.temporary_content(&Backup::from(Value::Null));
        assert!(two.can_go_through(&content).is_err());
        let changed = |pointer: &str, value: &str| {
            let mut content = content.clone();
            content["status"] = json!({"volumeGroupSnapshotHandle": "group-1"});
            content["spec"]["volumeGroupSnapshotRef"]["uid"] = Value::Null;
            *content.pointer_mut(pointer).unwrap() = value.into();
            one.can_go_through(&content)
        };
        assert!(changed("/spec/driver", "e.csi").unwrap_err().contains("another driver"));
        assert!(changed("/status/volumeGroupSnapshotHandle", "group-2").unwrap_err().contains("status"));
        assert!(changed("/spec/volumeGroupSnapshotRef/uid", "u").unwrap_err().contains("bound"));
    }

    #[test]
    fn a_group_is_needed_by_what_others_made_for_a_member_and_not_by_what_was_made_with_it() {
        let group = group(r#"["snap-2","snap-1"]"#, &[]);
        let ours = json!({"velero.io/backup-name": "b1", "velero.io/backup-uid": "u1"});
        let theirs = json!({"velero.io/backup-name": "b2", "velero.io/backup-uid": "u2"});
        let restored = |backup: &str| json!({"velero.io/backup-name": backup, "velero.io/restore-name": "r"});
        let (given, cut) = (json!({"snapshotHandle": "snap-2"}), json!({"volumeHandle": "v"}));
        for (source, labels, needed) in [
            (&given, ours.clone(), false),
            (&given, restored("b1"), false),
            (&given, restored("b2"), true),
            (&given, theirs.clone(), true),
            (&given, Value::Null, true),
            (&cut, Value::Null, false),
            (&cut, ours.clone(), false),
            (&cut, theirs, true),
        ] {
            let content = json!({"metadata": {"labels": labels}, "spec": {"driver": "d.csi", "source": source},
                "status": {"snapshotHandle": "snap-2"}});
            let archived = json!({"metadata": {"labels": ours}});
            let backup = Backup::from(json!({"metadata": {"name": "b1", "uid": "u1"}}));
            let found = group.needed_by(std::slice::from_ref(&content), &archived, &backup);
            assert_eq!(found.is_some(), needed, "{content}");
        }
    }

    #[test]
    fn a_temporary_content_tells_the_group_that_it_was_made_for() {
        let group = group(r#"["snap-2","snap-1"]"#, &[]);
        let content = group.temporary_content(&Backup::from(Value::Null));
        let told = Group::of_content(group.api, &content).unwrap();
        assert_eq!((told.temporary_name(), members(&told)), (group.temporary_name(), members(&group)));
        assert_eq!(told.can_go_through(&content), Ok(()));
        assert_eq!(Group::of_content(group.api, &json!({"spec": {"driver": "d.csi"}})), None);
    }

    #[test]
    fn contents_of_members_are_known_by_the_group_or_by_their_handle() {
        let group = group(r#"["snap-2","snap-1"]"#, &[]);
        let content = |driver: &str, handle: &str, of: Value| json!({"spec": {"driver": driver}, "status": {"snapshotHandle": handle, "volumeGroupSnapshotHandle": of}});
        let table = [
            (content("d.csi", "snap-2", Value::Null), true),
            (content("d.csi", "snap-9", json!("group-1")), true),
            (content("d.csi", "snap-9", Value::Null), false),
            (content("e.csi", "snap-2", json!("group-1")), false),
        ];
        for (content, is_member) in table {
            assert_eq!(group.has_member(&content), is_member, "{content}");
        }
    }
}
