//! Whether the cluster can take snapshots at all: the API, and the snapshot controller as far as its work shows it.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::facts::Facts;
use super::report::{Finding, Level, Section};
use crate::backup::group::Group;
use crate::object::{Snapshot, is_deleting, name, namespace, text, time};
use crate::policy::Decision;
use crate::readiness::rounded;

/// After so long a running snapshot controller has touched a new snapshot.
const UNTOUCHED: Duration = Duration::from_secs(60);

/// The findings.
pub(super) fn section(facts: &Facts, now: SystemTime) -> Section {
    let mut findings = vec![api(&facts.snapshot_versions)];
    if matches!(facts.snapshot_versions, Ok(Some(_))) {
        match &facts.snapshots {
            Ok(snapshots) => findings.push(controller(snapshots, now)),
            Err(error) => findings.push(Finding::new(Level::Unknown, "controller", error.as_str())),
        }
    }
    findings.push(match &facts.group_versions {
        Ok(Some(versions)) => Finding::new(Level::Note, "groups", format!("served: {}", versions.join(", "))),
        Ok(None) => Finding::new(Level::Note, "groups", "groupsnapshot.storage.k8s.io is not served"),
        Err(error) => Finding::new(Level::Note, "groups", error.as_str()),
    });
    if let (Ok(groups), Ok(contents)) = (&facts.groups, &facts.group_contents) {
        let level = if wants_groups(facts) { Level::Failing } else { Level::Warning };
        findings.extend(feature(groups, contents, now).map(|found| Finding { level, ..found }));
    }
    Section { title: "Snapshots", findings }
}

/// Whether a claim is to be cut with others.
fn wants_groups(facts: &Facts) -> bool {
    let (Ok(backup), Ok(claims)) = (&facts.backup, &facts.claims) else { return false };
    claims.iter().any(|each| {
        matches!(each.decision, Ok(Decision::Take(_))) && Group::of(&each.claim, backup).is_some()
    })
}

fn api(versions: &Result<Option<Vec<String>>, String>) -> Finding {
    let hint = "install the CustomResourceDefinitions and the snapshot controller of kubernetes-csi/external-snapshotter";
    match versions {
        Ok(Some(versions)) if versions.iter().any(|version| version == "v1") => Finding::new(
            Level::Ok,
            "API",
            format!("snapshot.storage.k8s.io is served: {}", versions.join(", ")),
        ),
        Ok(Some(versions)) => {
            let what =
                format!("snapshot.storage.k8s.io is served as {} only, not as v1", versions.join(", "));
            Finding::new(Level::Failing, "API", what).hint(hint)
        }
        Ok(None) => Finding::new(Level::Failing, "API", "snapshot.storage.k8s.io is not served").hint(hint),
        Err(error) => Finding::new(Level::Unknown, "API", error.as_str()),
    }
}

/// A controller that runs touches every new snapshot. Without a snapshot nothing shows whether one does.
fn controller(snapshots: &[Value], now: SystemTime) -> Finding {
    let newest =
        |touched: bool| newest(snapshots, |snapshot| Snapshot(snapshot).is_touched() == touched, now);
    let (touched, untouched) = (newest(true), newest(false).filter(|(age, _)| *age >= UNTOUCHED));
    match (touched, untouched) {
        // One that was made later than the newest that is touched.
        (touched, Some((age, snapshot))) if touched.is_none_or(|(of_touched, _)| age < of_touched) => {
            let (namespace, name) = (namespace(snapshot), name(snapshot));
            let what = format!("nothing has touched VolumeSnapshot {namespace}/{name} for {}", rounded(age));
            Finding::new(Level::Failing, "controller", what).hint("is the snapshot controller running?")
        }
        (Some((age, snapshot)), _) => {
            let (namespace, name) = (namespace(snapshot), name(snapshot));
            let what = format!("it has handled VolumeSnapshot {namespace}/{name}, made {} ago", rounded(age));
            Finding::new(Level::Ok, "controller", what)
        }
        (None, _) => Finding::new(
            Level::Note,
            "controller",
            "there is no snapshot that would show whether one is running",
        ),
    }
}

/// The controller and the sidecars look at groups only where a feature is on in each; without it they leave them as they are.
fn feature(groups: &[Value], contents: &[Value], now: SystemTime) -> Option<Finding> {
    let untouched = |object: &Value| !Snapshot(object).is_touched();
    let unanswered = |content: &Value| !content.get("status").is_some_and(Value::is_object);
    let of_group = newest(groups, untouched, now).map(|(age, group)| {
        let what = format!("VolumeGroupSnapshot {}/{}", namespace(group), name(group));
        (age, what, "the snapshot controller".to_owned())
    });
    let of_content = newest(contents, unanswered, now).map(|(age, content)| {
        let driver = text(content, &["spec", "driver"]).unwrap_or_default();
        let what = format!("VolumeGroupSnapshotContent {}", name(content));
        (age, what, format!("the csi-snapshotter of driver {driver}"))
    });
    let (age, what, program) = of_group.into_iter().chain(of_content).find(|(age, ..)| *age >= UNTOUCHED)?;
    let hint = format!("start {program} with --feature-gates=CSIVolumeGroupSnapshot=true");
    let what = format!("nothing has touched {what} for {}", rounded(age));
    Some(Finding::new(Level::Warning, "groups", what).hint(hint))
}

/// The newest of those that are `wanted` and stay, and its age.
fn newest(objects: &[Value], wanted: impl Fn(&Value) -> bool, now: SystemTime) -> Option<(Duration, &Value)> {
    let age = |object: &Value| {
        let created = text(object, &["metadata", "creationTimestamp"]).and_then(time)?;
        now.duration_since(created).ok()
    };
    let found = objects.iter().filter(|each| wanted(each) && !is_deleting(each));
    found.filter_map(|each| Some((age(each)?, each))).min_by_key(|(age, _)| *age)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn made(name: &str, seconds: u64, is_touched: bool) -> Value {
        let created = crate::operation::rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        let mut snapshot =
            json!({"metadata": {"namespace": "a", "name": name, "creationTimestamp": created}});
        if is_touched {
            snapshot["status"] = json!({});
        }
        snapshot
    }

    #[test]
    fn i33_an_api_that_is_not_served_as_v1_fails_and_one_that_cannot_be_asked_is_unknown() {
        let served = |versions: &[&str]| Ok(Some(versions.iter().map(|each| (*each).to_owned()).collect()));
        for (versions, level) in [
            (served(&["v1", "v1beta1"]), Level::Ok),
            (served(&["v1beta1"]), Level::Failing),
            (Ok(None), Level::Failing),
            (Err("no".to_owned()), Level::Unknown),
        ] {
            assert_eq!(api(&versions).level, level, "{versions:?}");
        }
    }

    #[test]
    fn i21_a_controller_is_judged_by_the_newest_snapshot_that_it_had_time_for() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        for (snapshots, level) in [
            (vec![], Level::Note),
            (vec![made("a", 100, true)], Level::Ok),
            (vec![made("a", 100, true), made("b", 200, false)], Level::Failing),
            (vec![made("a", 300, true), made("b", 200, false)], Level::Ok),
            (vec![made("b", 200, false)], Level::Failing),
            (vec![made("young", 990, false)], Level::Note),
            (vec![made("a", 100, true), made("young", 990, false)], Level::Ok),
        ] {
            let found = controller(&snapshots, now);
            assert_eq!(found.level, level, "{snapshots:?}: {found:?}");
        }
    }

    #[test]
    fn groups_that_nothing_looks_at_tell_of_a_feature_that_is_off() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        let content = |seconds, touched| {
            let mut content = made("c", seconds, touched);
            content["spec"]["driver"] = "d.csi".into();
            content
        };
        for (groups, contents, hint) in [
            (vec![], vec![], None),
            (vec![made("g", 100, true)], vec![content(100, true)], None),
            (vec![made("g", 990, false)], vec![content(990, false)], None),
            (vec![made("g", 100, false)], vec![], Some("start the snapshot controller with")),
            (
                vec![made("g", 100, true)],
                vec![content(100, false)],
                Some("csi-snapshotter of driver d.csi with"),
            ),
        ] {
            let found = feature(&groups, &contents, now);
            let told = found.as_ref().and_then(|found| found.hint.as_deref()).unwrap_or_default();
            assert_eq!(found.is_some(), hint.is_some(), "{found:?}");
            assert!(told.contains(hint.unwrap_or_default()), "{found:?}");
        }
    }
}
