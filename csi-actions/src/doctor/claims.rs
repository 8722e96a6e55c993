//! What a backup would do with each claim: the driver, the class and what speaks for it, or why there is no snapshot.

use std::collections::HashMap;

use serde_json::{Value, json};
use velero_plugin::Backup;

use super::facts::{Facts, Judged, group_api};
use super::grouped::Grouped;
use super::report::{Finding, Level, Section};
use crate::backup::group::{Group, LABEL_KEY};
use crate::class_choice::{Choice, SNAPSHOT_KEYS};
use crate::object::{name, namespace, storage_class, text};
use crate::policy::{Decision, PolicyError};

/// What the judgement depends on.
struct View<'a> {
    groups: Grouped<'a>,
    storage_classes: HashMap<&'a str, &'a Value>,
    classes: &'a [Value],
    /// `None` where it could not be read: then nothing is said of it.
    drivers: Option<&'a [Value]>,
    backup: &'a Backup,
}

/// The findings.
pub(super) fn section(facts: &Facts) -> Section {
    let title = "Claims";
    let judged = match (&facts.backup, &facts.claims) {
        (Ok(backup), Ok(claims)) => (backup, claims),
        (Err(error), _) | (_, Err(error)) => {
            return Section { title, findings: vec![Finding::new(Level::Unknown, "", error.as_str())] };
        }
    };
    let (backup, claims) = judged;
    let view = View {
        groups: Grouped {
            claims,
            api: group_api(&facts.group_versions),
            classes: &facts.group_classes,
            backup,
        },
        storage_classes: by_name(facts.storage_classes.as_deref().unwrap_or_default()),
        // Without the API for snapshots that is a finding of its own.
        classes: facts.classes.as_deref().unwrap_or_default(),
        drivers: facts.drivers.as_deref().ok(),
        backup,
    };
    let mut findings: Vec<Finding> = claims.iter().map(|judged| view.finding(judged)).collect();
    if findings.is_empty() {
        findings.push(Finding::new(Level::Note, "", "there are none"));
    }
    Section { title, findings }
}

/// The backup as it was before it ran, what it wants being in its spec and annotations, but for the label of groups, which the
/// server gives to one that names none.
pub(super) fn ahead(backup: &Backup, group_label: Option<&str>) -> Backup {
    let mut object = backup.object().clone();
    if object.is_object() {
        object["status"] = json!({});
        match (group_label, text(&object, &["spec", LABEL_KEY])) {
            (Some(label), None) => object["spec"][LABEL_KEY] = label.into(),
            (None, Some(_)) => object["spec"][LABEL_KEY] = Value::Null,
            _ => {}
        }
    }
    Backup::from(object)
}

/// The finding with what speaks against it.
fn doubted(finding: Finding, doubt: Option<String>) -> Finding {
    match doubt {
        Some(doubt) => Finding { level: Level::Warning, ..finding }.hint(doubt),
        None => finding,
    }
}

fn by_name(objects: &[Value]) -> HashMap<&str, &Value> {
    objects.iter().map(|object| (name(object), object)).collect()
}

impl View<'_> {
    fn finding(&self, Judged { claim, decision, .. }: &Judged) -> Finding {
        let subject = format!("{}/{}", namespace(claim), name(claim));
        let found = |level, text: String| Finding::new(level, subject.as_str(), text);
        let volume = match decision {
            Ok(Decision::Take(volume)) => volume,
            Ok(Decision::Leave { why, .. }) => return found(Level::Note, format!("no snapshot: {why}")),
            Err(PolicyError::Api(error)) => return found(Level::Unknown, error.to_string()),
            Err(error) => return found(Level::Failing, error.to_string()),
        };
        let driver = text(volume, &["spec", "csi", "driver"]).unwrap_or_default();
        if let Some(group) = Group::of(claim, self.backup) {
            return match self.groups.chosen(claim, driver, &group) {
                Err(finding) => Finding { subject, ..finding },
                Ok(what) => doubted(found(Level::Ok, what), self.absence(driver)),
            };
        }
        let choice = Choice {
            keys: &SNAPSHOT_KEYS,
            classes: self.classes,
            driver,
            provisioner: self.provisioner(claim),
            claim,
            backup: self.backup,
        };
        match choice.explain() {
            Err(error) => found(Level::Failing, error.to_string()),
            Ok(chosen) => {
                let what = format!("{driver}, class {} ({})", chosen.class, chosen.by);
                doubted(found(Level::Ok, what), self.doubt(driver, chosen.class))
            }
        }
    }

    fn provisioner(&self, claim: &Value) -> Option<&str> {
        text(self.storage_classes.get(storage_class(claim)?)?, &["provisioner"])
    }

    /// What speaks against the snapshot although it can be taken.
    fn doubt(&self, driver: &str, class: &str) -> Option<String> {
        let class = self.classes.iter().find(|each| name(each) == class)?;
        if driver == "driver.longhorn.io" && text(class, &["parameters", "type"]) == Some("snap") {
            return Some(format!(
                "class {} has the parameter type: snap: such a snapshot is lost with its volume; use type: bak",
                name(class)
            ));
        }
        self.absence(driver)
    }

    fn absence(&self, driver: &str) -> Option<String> {
        let is_absent = self.drivers?.iter().all(|each| name(each) != driver);
        is_absent.then(|| format!("no CSIDriver {driver} says that the driver is installed"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "a value written at the call reads best")]

    use super::*;
    use crate::policy::{Refusal, Told};

    fn judged(driver: &str, annotations: Value, classes: Value, backup: Value) -> Finding {
        let volume = json!({"metadata": {"name": "pv"}, "spec": {"csi": {"driver": driver}}});
        decided(Ok(Decision::Take(volume)), annotations, classes, backup)
    }

    fn decided(
        decision: Result<Decision, PolicyError>,
        annotations: Value,
        classes: Value,
        backup: Value,
    ) -> Finding {
        let Value::Array(classes) = classes else { panic!("a list") };
        let (drivers, backup) = ([json!({"metadata": {"name": "d.csi"}})], Backup::from(backup));
        let view = View {
            groups: Grouped { claims: &[], api: Ok(None), classes: &Ok(Vec::new()), backup: &backup },
            storage_classes: HashMap::new(),
            classes: &classes,
            drivers: Some(&drivers),
            backup: &backup,
        };
        let claim = json!({"metadata": {"namespace": "app", "name": "data", "annotations": annotations}});
        view.finding(&Judged { claim, decision, volume: None })
    }

    #[test]
    fn each_claim_gets_the_answer_that_a_backup_would_give() {
        let one = json!([{"metadata": {"name": "snap"}, "driver": "d.csi"}]);
        let typo = json!({"velero.io/csi-volumesnapshot-class": "typo"});
        let left = Decision::Leave { why: "it is bound to no volume".to_owned(), told: Told::Plainly };
        for (found, level, words) in [
            (
                judged("d.csi", json!({}), one.clone(), json!({})),
                Level::Ok,
                "d.csi, class snap (the driver's only class)",
            ),
            (judged("d.csi", json!({}), json!([]), json!({})), Level::Failing, "no VolumeSnapshotClass"),
            (judged("d.csi", typo, one.clone(), json!({})), Level::Failing, "typo"),
            (decided(Ok(left), json!({}), one.clone(), json!({})), Level::Note, "bound to no volume"),
            (decided(Err(Refusal::Lost.into()), json!({}), one, json!({})), Level::Failing, "lost"),
        ] {
            assert_eq!(found.level, level, "{found:?}");
            assert!(found.text.contains(words), "{words} in {found:?}");
            assert_eq!(found.subject, "app/data");
        }
    }

    #[test]
    fn the_annotations_of_the_backup_count_and_its_state_does_not() {
        let classes = json!([{"metadata": {"name": "a"}, "driver": "d.csi"}, {"metadata": {"name": "b"}, "driver": "d.csi"}]);
        let backup = json!({"metadata": {"annotations": {"velero.io/csi-volumesnapshot-class_d.csi": "b"}}});
        let found = judged("d.csi", json!({}), classes.clone(), backup);
        assert!(found.level == Level::Ok && found.text.contains("class b (annotation"), "{found:?}");
        assert_eq!(judged("d.csi", json!({}), classes, json!({})).level, Level::Failing);
        let over = Backup::from(json!({"metadata": {"name": "b1"}, "status": {"phase": "Finalizing"}}));
        assert!(!ahead(&over, None).phase().is_finalizing());
        assert_eq!(ahead(&over, None).name(), "b1");
    }

    #[test]
    fn the_label_of_groups_is_the_backup_s_else_the_server_s_and_none_where_the_server_knows_none() {
        let spec = |label: &str| json!({"spec": {"volumeGroupSnapshotLabelKey": label}});
        for (backup, of_server, expected) in [
            (json!({}), Some("server"), Some("server")),
            (spec(""), Some("server"), Some("server")),
            (spec("own"), Some("server"), Some("own")),
            (spec("own"), None, None),
            (json!({}), None, None),
        ] {
            let ahead = ahead(&Backup::from(backup.clone()), of_server);
            let label = ahead.get(&["spec", "volumeGroupSnapshotLabelKey"]).and_then(Value::as_str);
            assert_eq!(label, expected, "{backup} on {of_server:?}");
        }
    }

    #[test]
    fn i14_snapshots_that_die_with_their_volume_and_drivers_that_nobody_knows_are_doubtful() {
        let longhorn = |kind: &str| {
            let class = json!([{"metadata": {"name": "lh"}, "driver": "driver.longhorn.io", "parameters": {"type": kind}}]);
            judged("driver.longhorn.io", json!({}), class, json!({}))
        };
        assert_eq!(longhorn("snap").level, Level::Warning);
        assert!(longhorn("snap").hint.unwrap().contains("type: snap"));
        assert!(
            longhorn("bak").hint.unwrap().contains("no CSIDriver"),
            "no object says that it is installed"
        );
    }
}
