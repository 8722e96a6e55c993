//! A whole backup in standalone mode, and its deletion: claim, snapshot, content, polls, finalizing, and nothing left.

use std::time::Duration;

use crate::bed::{Bed, CONTENTS, SNAPSHOTS, backup, name, uid};
use cluster::simulator::Fault;
use velero_plugin::Progress;

const MUST_INCLUDE: &str = "backup.velero.io/must-include-additional-items";

#[tokio::test]
async fn a_backup_waits_for_the_snapshot_keeps_it_in_the_storage_and_its_deletion_removes_it() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    let backup = backup("b1");
    bed.driver().order(Fault::on("CreateSnapshot").ready_after(Duration::from_secs(2))).unwrap();

    let archived = bed.back_up(&claim, &backup).await;
    let operation = archived.operation.as_ref().unwrap();
    assert!(
        operation.as_str().starts_with(&format!("_/snapcontent-{}/20", uid(&archived.snapshot))),
        "{operation}"
    );
    let first = bed.poll(operation, &backup).await;
    assert!(first.is_running());
    let last = bed.finished(operation, &backup).await;
    assert_eq!(last.failure(), None);

    let final_content = bed.finalize(&archived, &backup).await;
    assert_eq!(final_content["status"]["readyToUse"], true);
    bed.gone(SNAPSHOTS, "app", name(&archived.snapshot)).await;
    bed.gone(CONTENTS, "", name(&archived.content)).await;
    assert_eq!(bed.in_storage(), 1, "the backup's data is in the storage only");

    for result in bed.delete(&[&final_content], &backup).await {
        result.unwrap();
    }
    assert_eq!(bed.in_storage(), 0);
    assert!(bed.list(CONTENTS).is_empty());
}

#[tokio::test]
async fn c08_what_is_archived_can_be_restored_by_a_stock_server() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    bed.driver().order(Fault::on("CreateSnapshot").size(4 << 20)).unwrap();
    let archived = bed.back_up(&claim, &backup("b1")).await;

    let snapshot = name(&archived.snapshot);
    let content = name(&archived.content);
    let of_claim = &archived.claim["metadata"];
    assert_eq!(of_claim["annotations"]["velero.io/volume-snapshot-name"], snapshot);
    assert_eq!(of_claim["labels"]["velero.io/volume-snapshot-name"], snapshot);
    assert_eq!(of_claim["labels"]["velero.io/backup-name"], "b1");
    assert_eq!(
        of_claim["annotations"][MUST_INCLUDE], "true",
        "the snapshot is archived whatever the filters say"
    );
    assert_eq!(
        archived.claim["spec"]["resources"]["requests"]["storage"], "4Mi",
        "c28: no less than the restore size"
    );

    let of_snapshot = &archived.snapshot["metadata"];
    assert_eq!(archived.snapshot["status"]["boundVolumeSnapshotContentName"], content);
    let handle = archived.content["status"]["snapshotHandle"].as_str().unwrap();
    assert_eq!(of_snapshot["annotations"]["velero.io/csi-volumesnapshot-handle"], handle);
    assert_eq!(of_snapshot["annotations"]["velero.io/csi-driver-name"], crate::bed::DRIVER);
    assert_eq!(of_snapshot["annotations"]["velero.io/csi-volumesnapshot-restore-size"], "4Mi");
    assert_eq!(of_snapshot["annotations"]["velero.io/csi-vsc-deletion-policy"], "Delete");
    assert_eq!(of_snapshot["annotations"][MUST_INCLUDE], "true");
    assert_eq!(of_snapshot["labels"]["velero.io/backup-name"], "b1");
    assert_eq!(of_snapshot["labels"]["tier"], "db");
    assert_eq!(
        of_snapshot["labels"]["app.kubernetes.io/instance"],
        serde_json::Value::Null,
        "i19: no tool prunes it"
    );
    assert_eq!(archived.content["metadata"]["labels"]["velero.io/backup-name"], "b1");
    assert_eq!(archived.content["spec"]["volumeSnapshotRef"]["name"], snapshot);
    assert_eq!(
        archived.post_operation_items,
        [
            format!("volumesnapshotcontents.snapshot.storage.k8s.io {content}"),
            format!("{SNAPSHOTS} app/{snapshot}")
        ]
    );
}

#[tokio::test]
async fn i25_a_claim_that_is_backed_up_twice_is_snapshotted_once() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    let backup = backup("b1");
    let (one, other) = tokio::join!(bed.back_up_claim(&claim, &backup), bed.back_up_claim(&claim, &backup));
    for outcome in [one.unwrap(), other.unwrap(), bed.back_up_claim(&claim, &backup).await.unwrap()] {
        assert_eq!(outcome.changes().additional_items().len(), 1);
    }
    assert_eq!(bed.list(SNAPSHOTS).len(), 1);
    assert_eq!(bed.driver().read(|state| state.counters.snapshots_created), 1);
}

#[tokio::test]
async fn c14_finalizing_can_be_repeated_and_takes_no_new_snapshot() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    let mut backup = backup("b1");
    let archived = bed.back_up(&claim, &backup).await;
    bed.finished(archived.operation.as_ref().unwrap(), &backup).await;
    bed.finalize(&archived, &backup).await;
    bed.gone(SNAPSHOTS, "app", name(&archived.snapshot)).await;
    bed.finalize(&archived, &backup).await;
    backup["status"]["phase"] = "FinalizingPartiallyFailed".into();
    assert!(crate::bed::is_untouched(&bed.back_up_claim(&claim, &backup).await.unwrap()));
    bed.gone(CONTENTS, "", name(&archived.content)).await;
    assert_eq!((bed.in_storage(), bed.list(SNAPSHOTS).len()), (1, 0));
}

#[tokio::test]
async fn i20_finalizing_leaves_the_snapshot_of_another_backup_alone() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    let archived = bed.back_up(&claim, &backup("b1")).await;
    bed.finished(archived.operation.as_ref().unwrap(), &backup("b1")).await;
    let mut namesake = backup("b1");
    namesake["metadata"]["uid"] = "of-a-later-backup".into();
    for other in [backup("b2"), namesake] {
        bed.cluster.clear_requests();
        bed.finalize(&archived, &other).await;
        assert!(bed.cluster.requests().is_empty(), "no request at all");
    }
    let content = bed.get(CONTENTS, "", name(&archived.content)).unwrap();
    assert_eq!(content["spec"]["deletionPolicy"], "Delete");
    assert!(bed.get(SNAPSHOTS, "app", name(&archived.snapshot)).is_some());
}

#[tokio::test]
async fn progress_tells_its_start_the_same_in_every_process() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    bed.driver().order(Fault::on("CreateSnapshot").never_ready()).unwrap();
    let archived = bed.back_up(&claim, &backup("b1")).await;
    let operation = archived.operation.as_ref().unwrap();
    let polls: Vec<Progress> =
        [bed.poll(operation, &backup("b1")).await, bed.poll(operation, &backup("b1")).await].into();
    assert_eq!(polls[0], polls[1], "nothing changed, so Velero has nothing to write");
}
