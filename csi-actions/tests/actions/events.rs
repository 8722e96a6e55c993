//! What a user reads on the objects, and that writing it costs and delays nothing.

use std::time::{Duration, SystemTime};

use crate::bed::{Bed, CONTENTS, DRIVER, SNAPSHOTS, backup, item, name, of, settings, uid};
use crate::deletions::finished;
use crate::restoring::{Archive, Restoring, restore};
use cluster::Rule;
use cluster::simulator::Fault;
use csi_actions::backup::persistentvolumeclaim::ClaimBackup;
use csi_actions::backup::volumesnapshotcontent::ContentBackup;
use csi_actions::delete::Patience;
use csi_actions::delete::volumesnapshotcontent::ContentDelete;
use csi_actions::operation::rfc3339;
use csi_actions::settings::{Mode, Settings};
use serde_json::{Value, json};
use tonic::Code;
use velero_plugin::OperationId;
use velero_plugin::backup::{BackupItemActionV2 as _, DeleteItemAction as _};

/// Reason, type, kind and name of the object, and namespace of each Event.
pub(crate) fn events(bed: &Bed) -> Vec<[String; 5]> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = |event: &Value| {
        let object = &event["involvedObject"];
        [&event["reason"], &event["type"], &object["kind"], &object["name"], &event["metadata"]["namespace"]]
            .map(text)
    };
    bed.list("events").iter().map(of).collect()
}

fn requests(bed: &Bed) -> usize {
    let all = bed.cluster.requests();
    all.iter().filter(|request| request.info.resource == "events").count()
}

#[tokio::test]
async fn i15_a_claim_tells_once_which_snapshot_was_cut_of_it_for_which_backup() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    for _ in 0..2 {
        bed.back_up_claim(&claim, &backup("b1")).await.unwrap();
    }
    bed.until("it is written twice", |bed| requests(bed) == 2).await;
    bed.until("it is there", |bed| !bed.list("events").is_empty()).await;
    assert_eq!(events(&bed), [["VeleroSnapshotCreated", "Normal", "PersistentVolumeClaim", "data", "app"]]);
    let event = bed.list("events").remove(0);
    assert_eq!(event["involvedObject"]["uid"], uid(&claim), "kubectl describe finds it by the UID");
    let handle = bed.list(CONTENTS)[0]["status"]["snapshotHandle"].as_str().unwrap().to_owned();
    for part in ["backup b1", DRIVER, &handle] {
        assert!(event["message"].as_str().unwrap().contains(part), "{part} in {event}");
    }
}

#[tokio::test]
async fn a_snapshot_that_is_not_taken_is_told_on_the_claim_in_the_drivers_words() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    bed.driver().order(Fault::on("CreateSnapshot").error(Code::Unavailable, "storage is down")).unwrap();
    let mut impatient = backup("b1");
    impatient["spec"]["csiSnapshotTimeout"] = "1s".into();
    bed.back_up_claim(&claim, &impatient).await.unwrap_err();
    bed.until("it is there", |bed| !bed.list("events").is_empty()).await;
    assert_eq!(events(&bed), [["VeleroSnapshotFailed", "Warning", "PersistentVolumeClaim", "data", "app"]]);
    let message = bed.list("events")[0]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("storage is down") && message.contains("csiSnapshotTimeout"), "{message}");
}

#[tokio::test]
async fn an_operation_that_fails_and_one_that_is_cancelled_are_told_on_the_claim() {
    let bed = Bed::new().await;
    bed.driver().order(Fault::on("CreateSnapshot").never_ready()).unwrap();
    for (claim, of_backup) in [("fails", backup("b1")), ("cancelled", backup("b2"))] {
        let claim = bed.claim(claim).await;
        let archived = bed.back_up(&claim, &of_backup).await;
        bed.until("the cut is told", |bed| !bed.list("events").is_empty()).await;
        for event in bed.list("events") {
            bed.cluster.delete("events", "app", name(&event)).unwrap();
        }
        let id = archived.operation.clone().unwrap();
        if name(&claim) == "fails" {
            let time = rfc3339(SystemTime::now() - Duration::from_secs(20));
            let error =
                json!({"message": "rpc error: code = InvalidArgument desc = not this one", "time": time});
            let status = json!({"status": {"error": error}});
            bed.cluster.patch(CONTENTS, "", name(&archived.content), &status).unwrap();
            let aged = id.as_str().rsplit_once('/').unwrap().0.to_owned();
            let id =
                OperationId::new(format!("{aged}/{}", rfc3339(SystemTime::now() - Duration::from_secs(30))))
                    .unwrap();
            assert!(bed.poll(&id, &of_backup).await.failure().is_some());
        } else {
            ContentBackup::new(bed.environment()).cancel(id, of(&of_backup)).await.unwrap();
        }
        let expected = ["VeleroSnapshotFailed", "Warning", "PersistentVolumeClaim", name(&claim), "app"];
        assert_eq!(events(&bed), [expected]);
        let event = bed.list("events").remove(0);
        assert_eq!(event["involvedObject"]["uid"], uid(&claim));
        bed.cluster.delete("events", "app", name(&event)).unwrap();
    }
}

#[tokio::test]
async fn a_deletion_that_is_not_finished_is_told_on_the_content_that_stays() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["data"]).await;
    bed.driver().order(Fault::on("DeleteSnapshot").hang()).unwrap();
    let patience = Patience { first: Duration::from_millis(1500), later: Duration::ZERO };
    let action = ContentDelete::new(bed.environment()).with_patience(patience);
    action.execute(item(&contents[0]), of(&backup("b1"))).await.unwrap();
    let stays = bed.list(CONTENTS).remove(0);
    let told = events(&bed).pop().unwrap();
    assert_eq!(
        told,
        ["VeleroSnapshotDeletionPending", "Warning", "VolumeSnapshotContent", name(&stays), "default"]
    );
}

#[tokio::test]
async fn i06_a_deletion_that_leaves_no_content_is_told_on_the_backup() {
    let bed = Bed::new().await;
    bed.cluster
        .apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "velero"}}))
        .unwrap();
    let content = json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
        "metadata": {"name": "snapcontent-aa", "labels": {"velero.io/backup-name": "b1"}},
        "spec": {"driver": "absent.csi", "deletionPolicy": "Retain", "source": {"volumeHandle": "vol-1"}},
        "status": {"snapshotHandle": "snap-1"}});
    bed.delete(&[&content], &backup("b1")).await.remove(0).unwrap_err();
    assert_eq!(events(&bed), [["VeleroSnapshotDeletionFailed", "Warning", "Backup", "b1", "velero"]]);
    assert!(bed.list("events")[0]["message"].as_str().unwrap().contains("snap-1"));
}

#[tokio::test]
async fn a_restored_snapshot_that_no_volume_can_be_made_from_says_so() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    let archived = bed.back_up(&claim, &backup("b1")).await;
    bed.finished(archived.operation.as_ref().unwrap(), &backup("b1")).await;
    let content = bed.finalize(&archived, &backup("b1")).await;
    bed.gone(CONTENTS, "", name(&content)).await;
    bed.driver().change(|state| state.snapshots.clear());
    let archive = Archive::default()
        .with(CONTENTS, &content)
        .with(SNAPSHOTS, &archived.snapshot)
        .with(crate::bed::CLAIMS, &archived.claim);
    let order = restore("r1", json!({"namespaceMapping": {"app": "copy"}}));
    let done = Restoring::new(&bed, archive, order).run().await;
    assert!(!done.errors.is_empty());
    let restored = bed.list(SNAPSHOTS).remove(0);
    let told: Vec<[String; 5]> = events(&bed).into_iter().filter(|event| event[4] == "copy").collect();
    assert_eq!(told, [["VeleroSnapshotRestoreFailed", "Warning", "VolumeSnapshot", name(&restored), "copy"]]);
}

#[tokio::test]
async fn the_backup_does_not_wait_for_the_event() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    bed.order([Rule::on("create").resource("events").delay(Duration::from_millis(500))]);
    bed.back_up_claim(&claim, &backup("b1")).await.unwrap();
    assert!(bed.list("events").is_empty(), "it was waited for");
    bed.until("it is there", |bed| bed.list("events").len() == 1).await;
}

#[tokio::test]
async fn an_event_that_may_not_be_written_fails_nothing_and_is_not_tried_again_in_its_namespace() {
    let bed = Bed::new().await;
    let (one, other) = (bed.claim("one").await, bed.claim("other").await);
    bed.order([Rule::on("create").resource("events").fail(403)]);
    let action = ClaimBackup::new(bed.environment());
    for claim in [&one, &other, &one] {
        action.execute(item(claim), of(&backup("b1"))).await.unwrap();
        bed.until("it was tried", |bed| requests(bed) > 0).await;
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!((requests(&bed), bed.list("events").len()), (1, 0));
}

#[tokio::test]
async fn an_operator_can_do_without_events() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    let off = bed.environment_with(Settings { events: false, ..settings(Mode::Standalone) });
    bed.back_up_in(off, &claim, &backup("b1")).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(requests(&bed), 0);
}
