//! Snapshot objects that a backup, a restore or a deletion left behind, with the command that takes each away. Nothing of a
//! backup that runs is named.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use velero_plugin::label;

use super::facts::{Facts, group_api};
use super::report::{Finding, Level, Section};
use crate::cluster::resource::Resource;
use crate::object::{Content, Snapshot, is_deleting, label as label_of, name, namespace, text, time, uid};
use crate::ownership::is_restored;
use crate::pair::Pair;
use crate::readiness::rounded;
use crate::{keys, names};

/// How old something must be to count as left: a controller may be at work on it.
const OLD: Duration = Duration::from_secs(300);

/// Start of the names of the temporary contents for a deletion: ours, and those of Velero's own action.
const TEMPORARY: [&str; 2] = [names::TEMPORARY_CONTENT, "vsc-"];

/// The findings.
pub(super) fn section(facts: &Facts, now: SystemTime) -> Section {
    let title = "Left over";
    let (snapshots, contents, backups) = match (&facts.snapshots, &facts.contents, &facts.backups) {
        (Ok(snapshots), Ok(contents), Ok(backups)) => (snapshots, contents, backups),
        // Where the API is not served there is nothing left either.
        _ if matches!(facts.snapshot_versions, Ok(None)) => return Section { title, findings: Vec::new() },
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
            return Section { title, findings: vec![Finding::new(Level::Unknown, "", error.as_str())] };
        }
    };
    let groups = facts.groups.as_deref().unwrap_or_default();
    let mut findings = Vec::new();
    if let (Ok(Some(api)), Ok(contents)) = (group_api(&facts.group_versions), &facts.group_contents) {
        let look = Look { pair: Pair::group(api), snapshots: groups, groups: &[], backups, now };
        findings.extend(look.findings(contents));
    }
    let look = Look { pair: Pair::snapshot(), snapshots, groups, backups, now };
    findings.extend(look.findings(contents));
    if findings.is_empty() {
        findings.push(Finding::new(Level::Ok, "", "nothing"));
    }
    Section { title, findings }
}

struct Look<'a> {
    /// Snapshots or groups.
    pair: Pair,
    snapshots: &'a [Value],
    /// What holds those of the snapshots that are members.
    groups: &'a [Value],
    backups: &'a [Value],
    now: SystemTime,
}

impl Look<'_> {
    fn findings(&self, contents: &[Value]) -> Vec<Finding> {
        let of_snapshots = self.snapshots.iter().filter_map(|snapshot| self.snapshot(snapshot));
        of_snapshots.chain(contents.iter().filter_map(|content| self.content(content))).collect()
    }

    /// A snapshot of a backup that is over without having removed it.
    fn snapshot(&self, snapshot: &Value) -> Option<Finding> {
        let group = Snapshot(snapshot).group_uid();
        if group.is_some() && self.groups.iter().any(|each| uid(each) == group) {
            // It goes with its group.
            return None;
        }
        let why = self.left_by(snapshot)?;
        let (namespace, name) = (namespace(snapshot), name(snapshot));
        let mut hint = String::new();
        if let Some(content) = self.pair.bound_content(snapshot) {
            hint.push_str(&self.patch_policy(content, &why));
            hint.push('\n');
        }
        let _ = write!(hint, "kubectl -n {namespace} delete {} {name}", singular(self.pair.snapshots));
        let subject = format!("{} {namespace}/{name}", self.pair.kind());
        Some(Finding::new(Level::Warning, subject, why.text).hint(hint))
    }

    fn content(&self, content: &Value) -> Option<Finding> {
        let (name, word) = (name(content), self.pair.word());
        if TEMPORARY.iter().any(|start| name.starts_with(start)) {
            return self.temporary(content);
        }
        if self.snapshot_of(content).is_some() {
            // It goes with its snapshot.
            return None;
        }
        let delete = format!("kubectl delete {} {name}", singular(self.pair.contents));
        if is_restored(content) {
            let restore = label_of(content, keys::RESTORE_NAME).unwrap_or_default();
            let text =
                format!("of restore {restore}; its {word} is gone, and the storage keeps what it points at");
            // Its snapshot may be about to be made; and without Retain its deletion would cost the data.
            let is_old = self.age(content).is_some_and(|age| age >= OLD);
            if !is_old || Content(content).deletion_policy() != "Retain" {
                return None;
            }
            return Some(self.found(content, text).hint(delete));
        }
        let why = self.left_by(content)?;
        let hint = format!("{}\n{delete}", self.patch_policy(name, &why));
        Some(self.found(content, format!("{}; its {word} is gone", why.text)).hint(hint))
    }

    /// A content that only serves a deletion, and is still there.
    fn temporary(&self, content: &Value) -> Option<Finding> {
        let since = text(content, &["metadata", "deletionTimestamp"]).and_then(time);
        let deleting = since.and_then(|since| self.now.duration_since(since).ok());
        let stuck = deleting.or_else(|| self.age(content)).filter(|age| *age >= OLD)?;
        let (driver, handle) = (Content(content).driver(), self.pair.handle(content).unwrap_or("?"));
        let (name, word, resource) = (name(content), self.pair.word(), singular(self.pair.contents));
        let is_hidden = Content(content).is_hidden();
        let (text, hint) = if is_deleting(content) && !is_hidden {
            let text = format!(
                "has been Terminating for {}: driver {driver} has not deleted {word} {handle}",
                rounded(stuck)
            );
            let hint = format!(
                "see the log of the driver's csi-snapshotter; if the driver is gone for good, delete the {word} in the storage \
                 and then\nkubectl patch {resource} {name} --type merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'"
            );
            (text, hint)
        } else {
            let text = format!(
                "the deletion of {word} {handle} of driver {driver} was broken off {} ago; the deletion of any backup \
                 takes it up",
                rounded(stuck)
            );
            let patch = format!("kubectl patch {resource} {name} --type merge");
            let hint = if is_hidden {
                // As the actions do it: without the handle in its status the sidecar would let it go and keep the snapshot.
                format!(
                    "{patch} --subresource=status -p '{{\"status\":{{\"snapshotHandle\":\"{handle}\"}}}}'\n\
                     kubectl delete {resource} {name} --wait=false\n\
                     {patch} -p '{{\"spec\":{{\"driver\":\"{driver}\"}}}}'"
                )
            } else {
                format!("kubectl delete {resource} {name}")
            };
            (text, hint)
        };
        Some(self.found(content, text).hint(hint))
    }

    fn found(&self, content: &Value, text: String) -> Finding {
        let subject = format!("{}Content {}", self.pair.kind(), name(content));
        Finding::new(Level::Warning, subject, text)
    }

    fn snapshot_of(&self, content: &Value) -> Option<&Value> {
        let reference = self.pair.reference(content)?;
        let bound = self.pair.bound_uid(content);
        self.snapshots.iter().find(|snapshot| {
            (namespace(snapshot), name(snapshot)) == reference && (bound.is_none() || bound == uid(snapshot))
        })
    }

    fn age(&self, object: &Value) -> Option<Duration> {
        let created = text(object, &["metadata", "creationTimestamp"]).and_then(time)?;
        self.now.duration_since(created).ok()
    }

    /// The command that makes the deletion of what is left take what is in the storage along, or keep it.
    fn patch_policy(&self, content: &str, why: &Why) -> String {
        let (resource, policy) =
            (singular(self.pair.contents), if why.keeps_data { "Retain" } else { "Delete" });
        format!(
            "kubectl patch {resource} {content} --type merge -p '{{\"spec\":{{\"deletionPolicy\":\"{policy}\"}}}}'"
        )
    }

    /// Why an object with the labels of a backup should not be there any more; `None` where it may be. The backups were read
    /// after the objects, so that one which has just begun is among them.
    fn left_by(&self, object: &Value) -> Option<Why> {
        if is_restored(object) || is_deleting(object) {
            return None;
        }
        let of = label_of(object, keys::BACKUP_NAME)?;
        let same_name = || self.backups.iter().filter(|each| label::valid_value(name(each)) == of);
        let found = match label_of(object, keys::BACKUP_UID) {
            Some(of) => same_name().find(|each| uid(each).is_some_and(|uid| label::valid_value(uid) == of)),
            // Velero's own actions write no UID: any backup of the name may be it, and one that runs goes first.
            None => same_name().find(|each| !is_over(each)).or_else(|| same_name().next()),
        };
        let Some(backup) = found else {
            let text = format!("of backup {of}, which does not exist any more");
            return Some(Why { text, keeps_data: false });
        };
        let phase = text_of_phase(backup);
        match phase {
            "Failed" | "FailedValidation" => {
                Some(Why { text: format!("of backup {of}, which is {phase}"), keeps_data: false })
            }
            "Completed" | "PartiallyFailed" if keeps_in_cluster(object) => None,
            "Completed" | "PartiallyFailed" => {
                let text = format!(
                    "of backup {of}, which is {phase} and should have removed it; its data must be kept"
                );
                Some(Why { text, keeps_data: true })
            }
            _ => None,
        }
    }
}

struct Why {
    text: String,
    /// Whether a backup still needs what is in the storage.
    keeps_data: bool,
}

fn text_of_phase(backup: &Value) -> &str {
    text(backup, &["status", "phase"]).unwrap_or_default()
}

fn is_over(backup: &Value) -> bool {
    matches!(text_of_phase(backup), "Completed" | "PartiallyFailed" | "Failed" | "FailedValidation")
}

/// Servers up to 1.15 keep the content of a finished backup in the cluster, unbound and under policy Retain.
fn keeps_in_cluster(object: &Value) -> bool {
    let content = Content(object);
    content.deletion_policy() == "Retain" && content.snapshot().is_some()
}

/// As kubectl takes it.
fn singular(resource: Resource) -> &'static str {
    resource.plural.trim_end_matches('s')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "a value written at the call reads best")]

    use super::*;
    use crate::group_api::GroupApi;
    use serde_json::json;

    const NOW: u64 = 10_000;

    fn at(seconds: u64) -> String {
        crate::operation::rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
    }

    fn backup(name: &str, uid: &str, phase: &str) -> Value {
        json!({"metadata": {"name": name, "uid": uid}, "status": {"phase": phase}})
    }

    fn snapshot(labels: Value) -> Value {
        json!({"metadata": {"namespace": "app", "name": "velero-data", "uid": "s", "labels": labels,
            "creationTimestamp": at(0)}, "status": {"boundVolumeSnapshotContentName": "c"}})
    }

    fn content(name: &str, labels: Value, policy: &str) -> Value {
        json!({"metadata": {"name": name, "uid": name, "labels": labels, "creationTimestamp": at(0)},
            "spec": {"driver": "d.csi", "deletionPolicy": policy, "source": {"snapshotHandle": "h"},
                "volumeSnapshotRef": {"namespace": "app", "name": "gone"}}})
    }

    fn found(snapshots: &[Value], contents: &[Value], backups: &[Value]) -> Vec<Finding> {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(NOW);
        Look { pair: Pair::snapshot(), snapshots, groups: &[], backups, now }.findings(contents)
    }

    fn of_b1() -> Value {
        json!({"velero.io/backup-name": "b1", "velero.io/backup-uid": "u1"})
    }

    #[test]
    fn i10_what_a_failed_or_vanished_backup_left_is_named_and_nothing_of_one_that_runs() {
        for (backups, policy) in [
            (vec![], Some("Delete")),
            (vec![backup("b1", "another", "InProgress")], Some("Delete")),
            (vec![backup("b1", "u1", "Failed")], Some("Delete")),
            (vec![backup("b1", "u1", "Completed")], Some("Retain")),
            (vec![backup("b1", "u1", "InProgress")], None),
            (vec![backup("b1", "u1", "WaitingForPluginOperations")], None),
            (vec![backup("b1", "u1", "FinalizingPartiallyFailed")], None),
            (vec![backup("b1", "u1", "Deleting")], None),
            (vec![backup("b1", "u1", "")], None),
        ] {
            let found = found(&[snapshot(of_b1())], &[], &backups);
            assert_eq!(found.len(), usize::from(policy.is_some()), "{backups:?}: {found:?}");
            if let Some(policy) = policy {
                let hint = found[0].hint.as_ref().unwrap();
                assert!(hint.contains(&format!("\"deletionPolicy\":\"{policy}\"")), "{backups:?}: {hint}");
                assert!(hint.ends_with("kubectl -n app delete volumesnapshot velero-data"), "{hint}");
            }
        }
    }

    #[test]
    fn i10_without_a_uid_any_running_backup_of_the_name_keeps_it() {
        let stock = [snapshot(json!({"velero.io/backup-name": "b1"}))];
        assert_eq!(found(&stock, &[], &[]).len(), 1);
        let (over, runs) = (backup("b1", "u1", "Failed"), backup("b1", "u2", "InProgress"));
        assert_eq!(found(&stock, &[], std::slice::from_ref(&over)).len(), 1);
        assert_eq!(found(&stock, &[], &[over, runs]), []);
    }

    #[test]
    fn a_users_own_snapshot_and_a_restored_one_are_nobody_s_business() {
        let mut restored = of_b1();
        restored["velero.io/restore-name"] = "r1".into();
        assert_eq!(found(&[snapshot(json!({})), snapshot(restored)], &[], &[]), []);
    }

    #[test]
    fn i12_a_restored_content_without_its_snapshot_may_go_and_the_storage_keeps_the_data() {
        let restored = json!({"velero.io/backup-name": "b1", "velero.io/restore-name": "r1"});
        let orphan = content("c", restored.clone(), "Retain");
        let one = found(&[], std::slice::from_ref(&orphan), &[backup("b1", "u1", "Completed")]);
        assert_eq!(one[0].hint.as_deref(), Some("kubectl delete volumesnapshotcontent c"));
        let lives =
            json!({"metadata": {"namespace": "app", "name": "gone", "uid": "x", "creationTimestamp": at(0)}});
        assert_eq!(found(&[lives], &[orphan], &[]), []);
        let mut young = content("c", restored.clone(), "Retain");
        young["metadata"]["creationTimestamp"] = at(NOW - 10).into();
        assert_eq!(found(&[], &[young], &[]), [], "its snapshot may be about to be made");
        assert_eq!(
            found(&[], &[content("c", restored, "Delete")], &[]),
            [],
            "its deletion would cost the data"
        );
    }

    #[test]
    fn a_content_that_a_backup_left_without_its_snapshot_is_named_but_not_that_of_an_old_server() {
        let left = [content("c", of_b1(), "Delete")];
        assert!(found(&[], &left, &[])[0].text.contains("does not exist any more"));
        assert!(
            found(&[], &left, &[backup("b1", "u1", "Completed")])[0]
                .hint
                .as_ref()
                .unwrap()
                .contains("Retain")
        );
        assert_eq!(found(&[], &left, &[backup("b1", "u1", "InProgress")]), []);
        let kept = [content("velero-velero-data-xyz", of_b1(), "Retain")];
        assert_eq!(found(&[], &kept, &[backup("b1", "u1", "Completed")]), []);
    }

    #[test]
    fn a_temporary_content_that_is_stuck_is_named_with_driver_and_handle() {
        for name in ["velero-del-0123", "vsc-0123"] {
            let mut stuck = content(name, json!({}), "Delete");
            stuck["metadata"]["deletionTimestamp"] = at(NOW - 600).into();
            let one = found(&[], &[stuck.clone()], &[]);
            for part in ["d.csi", "snapshot h", "Terminating for 10 min"] {
                assert!(one[0].text.contains(part), "{part} in {one:?}");
            }
            assert!(one[0].hint.as_ref().unwrap().contains("csi-snapshotter"));
            stuck["metadata"]["deletionTimestamp"] = at(NOW - 10).into();
            assert_eq!(found(&[], &[stuck], &[]), [], "its driver is at work");
            let broken_off = content(name, json!({}), "Delete");
            assert!(found(&[], &[broken_off], &[])[0].text.contains("broken off"));
        }
    }

    #[test]
    fn a_temporary_content_that_is_hidden_from_its_driver_is_not_said_to_wait_for_it() {
        let mut hidden = content("velero-del-0123", json!({}), "Delete");
        hidden["spec"]["driver"] = keys::NO_DRIVER.into();
        hidden["metadata"]["annotations"] = json!({keys::HIDDEN_FROM: "d.csi"});
        let mut deleting = hidden.clone();
        deleting["metadata"]["deletionTimestamp"] = at(NOW - 600).into();
        for content in [hidden, deleting] {
            let one = found(&[], &[content], &[]);
            assert!(one[0].text.contains("snapshot h of driver d.csi was broken off"), "{one:?}");
            let lines: Vec<&str> = one[0].hint.as_ref().unwrap().lines().collect();
            // The driver may see it when it has its handle and is being deleted, and not before.
            assert!(
                lines[0].ends_with(r#"--subresource=status -p '{"status":{"snapshotHandle":"h"}}'"#),
                "{lines:?}"
            );
            assert_eq!(lines[1], "kubectl delete volumesnapshotcontent velero-del-0123 --wait=false");
            assert!(lines[2].ends_with(r#"-p '{"spec":{"driver":"d.csi"}}'"#), "{lines:?}");
        }
    }

    fn found_of_groups(groups: &[Value], contents: &[Value], backups: &[Value]) -> Vec<Finding> {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(NOW);
        let pair = Pair::group(GroupApi::among(&["v1".to_owned()]).unwrap());
        Look { pair, snapshots: groups, groups: &[], backups, now }.findings(contents)
    }

    fn group_content(name: &str, labels: Value) -> Value {
        json!({"metadata": {"name": name, "uid": name, "labels": labels, "creationTimestamp": at(0)},
            "spec": {"driver": "d.csi", "deletionPolicy": "Retain",
                "source": {"groupSnapshotHandles": {"volumeGroupSnapshotHandle": "g"}},
                "volumeGroupSnapshotRef": {"namespace": "app", "name": "velero-db", "uid": "of-group"}}})
    }

    #[test]
    fn i10_a_group_that_a_failed_backup_left_is_named_once_and_its_members_go_with_it() {
        let group = json!({"metadata": {"namespace": "app", "name": "velero-db", "uid": "of-group", "labels": of_b1()},
            "status": {"boundVolumeGroupSnapshotContentName": "gc"}});
        let (failed, contents) = ([backup("b1", "u1", "Failed")], [group_content("gc", of_b1())]);
        let one = found_of_groups(std::slice::from_ref(&group), &contents, &failed);
        assert_eq!((one.len(), one[0].subject.as_str()), (1, "VolumeGroupSnapshot app/velero-db"));
        let hint = one[0].hint.as_ref().unwrap();
        assert!(hint.starts_with("kubectl patch volumegroupsnapshotcontent gc "), "{hint}");
        assert!(hint.contains("\"Delete\""), "{hint}");
        assert!(hint.ends_with("kubectl -n app delete volumegroupsnapshot velero-db"), "{hint}");

        let mut member = snapshot(of_b1());
        member["metadata"]["ownerReferences"] = json!([{"kind": "VolumeGroupSnapshot", "uid": "of-group"}]);
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(NOW);
        let members = |groups: &[Value]| {
            let snapshots = std::slice::from_ref(&member);
            let look = Look { pair: Pair::snapshot(), snapshots, groups, backups: &failed, now };
            look.findings(&[]).len()
        };
        assert_eq!((members(std::slice::from_ref(&group)), members(&[])), (0, 1));
    }

    #[test]
    fn what_is_left_of_groups_without_their_object_is_named_with_the_command_for_it() {
        let mut stuck = group_content("velero-del-0123", json!({}));
        stuck["metadata"]["deletionTimestamp"] = at(NOW - 600).into();
        let stub = json!({"velero.io/backup-name": "b1", "velero.io/restore-name": "r1"});
        for (content, words, hint) in [
            (group_content("gc", of_b1()), "does not exist any more; its group is gone", "\"Delete\""),
            (
                group_content("stub", stub),
                "of restore r1; its group is gone",
                "volumegroupsnapshotcontent stub",
            ),
            (stuck, "has not deleted group g", "kubectl patch volumegroupsnapshotcontent velero-del-0123"),
            (
                group_content("velero-del-0123", json!({})),
                "of group g of driver d.csi was broken off",
                "delete",
            ),
        ] {
            let one = found_of_groups(&[], std::slice::from_ref(&content), &[]);
            assert!(one[0].text.contains(words), "{words} in {one:?}");
            assert!(one[0].hint.as_ref().unwrap().contains(hint), "{hint} in {one:?}");
        }
        assert_eq!(found_of_groups(&[], &[group_content("users-own", json!({}))], &[]), []);
    }
}
