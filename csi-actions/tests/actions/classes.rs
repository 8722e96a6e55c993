//! Snapshot classes and the Secrets that they name, at backup and at restore.

use crate::bed::{Bed, backup, is_untouched, item, of, result};
use csi_actions::backup::volumesnapshotclass::ClassBackup;
use csi_actions::restore::volumesnapshotclass::ClassRestore;
use csi_actions::settings::Mode;
use serde_json::{Value, json};
use velero_plugin::backup::BackupItemActionV2 as _;
use velero_plugin::restore::{Outcome, RestoreInput, RestoreItemActionV2 as _};

const MUST_INCLUDE: &str = "backup.velero.io/must-include-additional-items";

fn class(name: &str, parameters: &Value) -> Value {
    json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", "metadata": {"name": name},
        "driver": "rbd.csi.ceph.com", "deletionPolicy": "Delete", "parameters": parameters})
}

fn with_secrets(name: &str) -> Value {
    class(
        name,
        &json!({"csi.storage.k8s.io/snapshotter-secret-name": "s", "csi.storage.k8s.io/snapshotter-secret-namespace": "rook",
            "csi.storage.k8s.io/snapshotter-list-secret-name": "l",
            "csi.storage.k8s.io/snapshotter-list-secret-namespace": "rook"}),
    )
}

async fn restored(bed: &Bed, class: &Value) -> Outcome {
    let input = RestoreInput {
        item: item(class),
        from_backup: item(class),
        restore: json!({"metadata": {"namespace": "velero", "name": "r1", "uid": "r"}, "spec": {"backupName": "b1"}}).into(),
    };
    ClassRestore::new(bed.environment()).execute(input).await.unwrap()
}

fn additional(outcome: &Outcome) -> Vec<String> {
    outcome.changes().additional_items().iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn i09_the_secrets_of_a_class_are_archived_with_it_whatever_the_filters_say_and_cost_no_request() {
    let bed = Bed::new().await;
    let action = ClassBackup::new(bed.environment());
    let outcome = action.execute(item(&with_secrets("rbd")), of(&backup("b1"))).await.unwrap();
    let items: Vec<String> = outcome.changes().additional_items().iter().map(ToString::to_string).collect();
    assert_eq!(items, ["secrets rook/s", "secrets rook/l"]);
    assert_eq!(result(&outcome)["metadata"]["annotations"][MUST_INCLUDE], "true");
    assert!(outcome.operation().is_none());

    let mut finalizing = backup("b1");
    finalizing["status"]["phase"] = "Finalizing".into();
    let templated = json!({"csi.storage.k8s.io/snapshotter-secret-name": "${volumesnapshot.name}",
        "csi.storage.k8s.io/snapshotter-secret-namespace": "rook"});
    for (class, backup) in [
        (class("plain", &json!(null)), backup("b1")),
        (class("templated", &templated), backup("b1")),
        (with_secrets("rbd"), finalizing),
    ] {
        assert!(is_untouched(&action.execute(item(&class), of(&backup)).await.unwrap()), "{class}");
    }
    let alongside = ClassBackup::new(bed.environment_in(Mode::Alongside));
    assert!(is_untouched(&alongside.execute(item(&with_secrets("rbd")), of(&backup("b1"))).await.unwrap()));
    assert!(bed.cluster.requests().is_empty());
}

#[tokio::test]
async fn a_class_that_the_cluster_lacks_brings_its_secrets_and_not_the_mark_of_the_backup() {
    let bed = Bed::new().await;
    let action = ClassBackup::new(bed.environment());
    let archived = result(&action.execute(item(&with_secrets("rbd")), of(&backup("b1"))).await.unwrap());
    let outcome = restored(&bed, &archived).await;
    assert_eq!(additional(&outcome), ["secrets rook/s", "secrets rook/l"]);
    let made = outcome.changes().item().unwrap().object();
    assert_eq!(made["metadata"]["annotations"][MUST_INCLUDE], Value::Null);
    assert_eq!(made["parameters"], archived["parameters"]);

    // Velero's own archives hold no Secret, so asking for one would only cost a warning.
    assert_eq!(additional(&restored(&bed, &with_secrets("rbd")).await), Vec::<String>::new());
    // The cluster's own class has its own Secrets.
    bed.cluster.apply(with_secrets("rbd")).unwrap();
    let outcome = restored(&bed, &archived).await;
    assert!(outcome.changes().is_skipped() && additional(&outcome).is_empty());
}
