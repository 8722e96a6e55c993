//! Claims that are cut with others at one moment: the class for their group, or why it can't be cut.

use serde_json::Value;
use velero_plugin::Backup;

use super::facts::{Judged, Look};
use super::report::{Finding, Level};
use crate::backup::group::Group;
use crate::class_choice::{Choice, GROUP_KEYS};
use crate::group_api::{GroupApi, NOT_SERVED};

const INSTALL: &str = "install the CustomResourceDefinitions of groups of kubernetes-csi/external-snapshotter and turn on its \
                       feature CSIVolumeGroupSnapshot, or take the label of groups away from the claim";

/// What the judgement depends on.
pub(super) struct Grouped<'a> {
    pub(super) claims: &'a [Judged],
    pub(super) api: Look<Option<GroupApi>>,
    pub(super) classes: &'a Look<Vec<Value>>,
    pub(super) backup: &'a Backup,
}

impl Grouped<'_> {
    /// How the `group` of `claim`, whose volume is of `driver`, would be cut; the error is a finding without a subject.
    pub(super) fn chosen(&self, claim: &Value, driver: &str, group: &Group) -> Result<String, Finding> {
        let failing = |what: String| Finding::new(Level::Failing, "", what);
        let unknown = |error: &String| Finding::new(Level::Unknown, "", error.as_str());
        if self.api.as_ref().map_err(unknown)?.is_none() {
            let what = format!("its group {group} can't be cut: {NOT_SERVED} in this cluster");
            return Err(failing(what).hint(INSTALL));
        }
        let mut count = 0;
        for member in self.claims.iter().filter(|each| self.is_of(group, each)) {
            group.volume_of(&member.claim).map_err(|error| failing(error.to_string()))?;
            if let Some(volume) = member.volume() {
                group.fits(&member.claim, volume, driver).map_err(|error| failing(error.to_string()))?;
            }
            count += 1;
        }
        let classes = self.classes.as_ref().map_err(unknown)?;
        let choice =
            Choice { keys: &GROUP_KEYS, classes, driver, provisioner: None, claim, backup: self.backup };
        let chosen = choice.explain().map_err(|error| failing(error.to_string()))?;
        let claims = if count == 1 { "claim" } else { "claims" };
        Ok(format!("{driver}, group {group} with {count} {claims}, class {} ({})", chosen.class, chosen.by))
    }

    fn is_of(&self, group: &Group, member: &Judged) -> bool {
        Group::of(&member.claim, self.backup).as_ref() == Some(group)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "a value written at the call reads best")]

    use super::*;
    use crate::policy::{Decision, Told};
    use serde_json::json;

    fn member(name: &str, group: &str, bound: bool) -> Value {
        let volume = if bound { json!("pv") } else { Value::Null };
        json!({"metadata": {"namespace": "app", "name": name, "labels": {"group": group}},
            "spec": {"volumeName": volume}, "status": {"phase": if bound { "Bound" } else { "Pending" }}})
    }

    fn taken(name: &str, group: &str, driver: &str) -> Judged {
        let volume = json!({"metadata": {"name": "pv"}, "spec": {"csi": {"driver": driver}}});
        Judged { claim: member(name, group, true), decision: Ok(Decision::Take(volume)), volume: None }
    }

    fn left(name: &str, bound: bool, driver: Option<&str>) -> Judged {
        let decision = Ok(Decision::Leave { why: "a policy skips it".to_owned(), told: Told::Plainly });
        let volume = driver.map(|driver| json!({"spec": {"csi": {"driver": driver}}}));
        Judged { claim: member(name, "db", bound), decision, volume }
    }

    fn chosen(others: Vec<Judged>, served: &[&str], classes: Value) -> Result<String, Finding> {
        let backup = Backup::from(
            json!({"metadata": {"name": "b1"}, "spec": {"volumeGroupSnapshotLabelKey": "group"}}),
        );
        let mut claims = others;
        claims.push(taken("data", "db", "d.csi"));
        let served: Vec<String> = served.iter().map(|version| (*version).to_owned()).collect();
        let classes = Ok(classes.as_array().unwrap().clone());
        let grouped = Grouped {
            claims: &claims,
            api: Ok(GroupApi::among(&served)),
            classes: &classes,
            backup: &backup,
        };
        let claim = &claims.last().unwrap().claim;
        grouped.chosen(claim, "d.csi", &Group::of(claim, &backup).unwrap())
    }

    fn class(name: &str) -> Value {
        json!({"metadata": {"name": name}, "driver": "d.csi"})
    }

    #[test]
    fn a_group_that_can_be_cut_is_told_with_its_class_and_its_claims() {
        let one = json!([class("g")]);
        let others =
            || vec![taken("logs", "db", "d.csi"), taken("else", "other", "e.csi"), left("tmp", true, None)];
        assert_eq!(
            chosen(others(), &["v1beta2"], one.clone()).unwrap(),
            "d.csi, group \"db\" of namespace app with 3 claims, class g (the driver's only class)"
        );
        assert!(chosen(Vec::new(), &["v1"], one).unwrap().contains("1 claim,"));
    }

    #[test]
    fn what_keeps_a_group_from_being_cut_is_told_as_the_backup_would_tell_it() {
        let one = json!([class("g")]);
        for (others, served, classes, words) in [
            (vec![], vec![], one.clone(), "v1beta2 in this cluster"),
            (vec![], vec!["v1beta1"], one.clone(), "v1beta2 in this cluster"),
            (vec![], vec!["v1"], json!([]), "no VolumeGroupSnapshotClass of driver \"d.csi\""),
            (vec![], vec!["v1"], json!([class("g"), class("h")]), "2 VolumeGroupSnapshotClasses of driver"),
            (
                vec![left("tmp", false, None)],
                vec!["v1"],
                one.clone(),
                "claim tmp is of it and is bound to no volume",
            ),
            (vec![left("tmp", true, Some("e.csi"))], vec!["v1"], one.clone(), "of CSI driver \"e.csi\""),
            (vec![taken("tmp", "db", "e.csi")], vec!["v1"], one, "of CSI driver \"e.csi\""),
        ] {
            let finding = chosen(others, &served, classes).unwrap_err();
            assert_eq!(finding.level, Level::Failing);
            assert!(finding.text.contains(words), "{words} in {finding:?}");
        }
        let finding = chosen(Vec::new(), &[], json!([])).unwrap_err();
        assert!(finding.hint.unwrap().contains("CSIVolumeGroupSnapshot"));
    }
}
