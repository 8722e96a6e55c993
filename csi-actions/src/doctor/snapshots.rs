//! Whether the cluster can take snapshots at all: the API, and the snapshot controller as far as its work shows it.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::facts::Facts;
use super::report::{Finding, Level, Section};
use crate::object::{Snapshot, is_deleting, name, namespace, text, time};
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
    Section { title: "Snapshots", findings }
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
    let age = |snapshot: &Value| {
        let created = text(snapshot, &["metadata", "creationTimestamp"]).and_then(time)?;
        now.duration_since(created).ok()
    };
    let newest = |touched: bool| {
        let of_kind =
            snapshots.iter().filter(|each| Snapshot(each).is_touched() == touched && !is_deleting(each));
        of_kind.filter_map(|each| Some((age(each)?, each))).min_by_key(|(age, _)| *age)
    };
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
}
