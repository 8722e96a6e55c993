//! The labels of a snapshot: ours, and those of the claim that do no harm on it.

use serde_json::{Map, Value};
use velero_plugin::{Backup, Document, EditError, label};

use crate::keys;

/// Keys by which a deployment tool claims an object. A snapshot that carries them is foreign to the tool's source, so
/// the tool prunes it in the middle of the backup.
const CLAIMED_BY_TOOLS: [&str; 4] =
    ["app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart", "kapp.k14s.io/app"];

/// Prefixes of such keys, and Velero's own: a restored claim carries the labels of an earlier backup.
const PREFIXES: [&str; 7] = [
    "argocd.argoproj.io/",
    "kustomize.toolkit.fluxcd.io/",
    "helm.toolkit.fluxcd.io/",
    "objectset.rio.cattle.io/",
    "fleet.cattle.io/",
    "velero.io/",
    "csi-actions.velero-rs.io/",
];

/// The labels of the snapshot that `backup` takes of `claim`.
pub fn of_snapshot(backup: &Backup, claim: &Value) -> Map<String, Value> {
    let copied = claim["metadata"]["labels"].as_object().into_iter().flatten();
    let mut labels: Map<String, Value> = copied
        .filter(|(key, _)| !is_left_out(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    labels.extend(of_backup(backup));
    let uid = claim["metadata"]["uid"].as_str().unwrap_or_default();
    labels.insert(keys::PVC_UID.to_owned(), label::valid_value(uid).into());
    labels
}

/// The labels by which an object is known to belong to `backup`.
pub fn of_backup(backup: &Backup) -> Map<String, Value> {
    Map::from_iter([
        (keys::BACKUP_NAME.to_owned(), label::valid_value(backup.name()).into()),
        (keys::BACKUP_UID.to_owned(), label::valid_value(backup.uid()).into()),
    ])
}

/// Gives an archived content our label in place of Velero's, by which Velero's own delete action knows its contents. In
/// the cluster the content keeps Velero's.
///
/// # Errors
///
/// When the object's labels are no map.
pub fn archive_as_ours(document: &mut Document, backup: &Backup) -> Result<(), EditError> {
    document.remove(&["metadata", "labels", keys::BACKUP_NAME]);
    document.set(&["metadata", "labels", keys::ARCHIVED_BY], label::valid_value(backup.name()))
}

fn is_left_out(key: &str) -> bool {
    CLAIMED_BY_TOOLS.contains(&key) || PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn backup(name: &str) -> Backup {
        Backup::from(json!({"metadata": {"name": name, "uid": "u1"}}))
    }

    #[test]
    fn labels_that_make_deployment_tools_prune_the_snapshot_are_left_out() {
        let claim = json!({"metadata": {"uid": "p1", "labels": {
            "app.kubernetes.io/instance": "shop", "argocd.argoproj.io/instance": "shop", "tier": "db"}}});
        let labels = Value::Object(of_snapshot(&backup("b1"), &claim));
        let expected = json!({"tier": "db", "velero.io/backup-name": "b1", "velero.io/backup-uid": "u1",
            "velero.io/pvc-uid": "p1"});
        assert_eq!(labels, expected);
    }

    #[test]
    fn labels_of_an_earlier_restore_are_left_out() {
        let claim = json!({"metadata": {"labels": {"velero.io/restore-name": "r", "velero.io/backup-name": "old",
            "velero.io/exclude-from-backup": "true"}}});
        let labels = of_snapshot(&backup("b1"), &claim);
        assert_eq!(labels["velero.io/backup-name"], "b1");
        assert_eq!(labels.len(), 3);
    }

    #[test]
    fn a_long_backup_name_becomes_a_valid_label_value() {
        let name = "nightly-all-namespaces-production-cluster-eu-central-1-20260101010203";
        let labels = of_backup(&backup(name));
        let value = "nightly-all-namespaces-production-cluster-eu-central-1-20f4862a";
        assert_eq!(labels["velero.io/backup-name"], value);
    }

    #[test]
    fn a_claim_without_labels_is_fine() {
        assert_eq!(of_snapshot(&backup("b1"), &json!({"metadata": {"labels": null}})).len(), 3);
    }
}
