//! Which claims file-system backup copies, by the annotations of the pods that use them.

use std::collections::HashSet;

use serde_json::Value;

use crate::object::{annotation, text};

/// Annotation of Velero on a pod: the volumes to copy, where nothing is copied by default.
const COPIED: &str = "backup.velero.io/backup-volumes";
/// Annotation of Velero on a pod: the volumes not to copy, where all are copied by default.
const NOT_COPIED: &str = "backup.velero.io/backup-volumes-excludes";

/// The names of the claims that at least one of the `pods` has copied.
///
/// Only running pods count: Velero copies through the node of the pod and passes over all others, so their volumes would be
/// backed up by nobody.
pub(super) fn copied_claims(pods: &[Value], by_default: bool) -> HashSet<String> {
    let running = pods.iter().filter(|pod| text(pod, &["status", "phase"]) == Some("Running"));
    running.flat_map(|pod| copied_by(pod, by_default)).collect()
}

fn copied_by(pod: &Value, by_default: bool) -> impl Iterator<Item = String> {
    let key = if by_default { NOT_COPIED } else { COPIED };
    // Names between commas and nothing else, as Velero reads it: " data" is not "data".
    let named: HashSet<&str> = annotation(pod, key).map(|list| list.split(',').collect()).unwrap_or_default();
    let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array).into_iter().flatten();
    volumes.filter_map(move |volume| {
        let claim = text(volume, &["persistentVolumeClaim", "claimName"])?;
        let is_named = named.contains(text(volume, &["name"])?);
        (is_named != by_default).then(|| claim.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(phase: &str, key: &str, list: &str) -> Value {
        json!({"metadata": {"annotations": {(key): list}}, "status": {"phase": phase}, "spec": {"volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "of-data"}},
            {"name": "logs", "persistentVolumeClaim": {"claimName": "of-logs"}},
            {"name": "tmp", "emptyDir": {}}]}})
    }

    fn copied(pods: &[Value], by_default: bool) -> Vec<String> {
        let mut claims: Vec<String> = copied_claims(pods, by_default).into_iter().collect();
        claims.sort();
        claims
    }

    #[test]
    fn i35_annotations_choose_what_is_copied_and_what_is_not() {
        let table = [
            (pod("Running", COPIED, "data"), false, vec!["of-data"]),
            (pod("Running", COPIED, "tmp,data,logs"), false, vec!["of-data", "of-logs"]),
            (pod("Running", COPIED, "data, logs"), false, vec!["of-data"]),
            (pod("Running", COPIED, ""), false, vec![]),
            (pod("Running", NOT_COPIED, "data"), false, vec![]),
            (pod("Running", COPIED, "data"), true, vec!["of-data", "of-logs"]),
            (pod("Running", NOT_COPIED, "data"), true, vec!["of-logs"]),
            (pod("Running", NOT_COPIED, "data,logs"), true, vec![]),
            (json!({"status": {"phase": "Running"}}), true, vec![]),
        ];
        for (pod, by_default, claims) in table {
            assert_eq!(copied(std::slice::from_ref(&pod), by_default), claims, "{pod} {by_default}");
        }
    }

    #[test]
    fn i35_any_pod_suffices_and_one_that_does_not_run_does_not() {
        let (yes, no) = (pod("Running", COPIED, "data"), pod("Running", COPIED, "logs"));
        assert_eq!(copied(&[no, yes], false), ["of-data", "of-logs"]);
        for phase in ["Pending", "Succeeded", "Failed", "Unknown"] {
            assert!(copied(&[pod(phase, COPIED, "data")], false).is_empty(), "{phase}");
        }
    }
}
