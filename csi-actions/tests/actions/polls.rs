//! Progress and Cancel against a real API: driver errors, API trouble, and what a round of polls costs.

use std::time::{Duration, SystemTime};

use crate::bed::{Archived, Bed, CONTENTS, SNAPSHOTS, backup, item, name, of};
use cluster::Rule;
use cluster::simulator::{Fault, Settings as Pace};
use csi_actions::backup::volumesnapshotcontent::ContentBackup;
use csi_actions::operation::Operation;
use csi_actions::settings::Mode;
use serde_json::{Value, json};
use tonic::Code;
use velero_plugin::backup::BackupItemActionV2 as _;
use velero_plugin::{OperationId, Progress};

/// A claim whose snapshot is cut and never becomes ready.
async fn unready(bed: &Bed) -> Archived {
    let claim = bed.claim("data").await;
    bed.driver().order(Fault::on("CreateSnapshot").never_ready()).unwrap();
    bed.back_up(&claim, &backup("b1")).await
}

/// The operation of `archived`, as if it had begun so long ago.
fn aged(archived: &Archived, age: Duration) -> OperationId {
    let operation = Operation::on_content(name(&archived.content), SystemTime::now() - age);
    OperationId::new(operation.to_string()).unwrap()
}

fn set_error(bed: &Bed, archived: &Archived, message: &str, age: Duration) {
    let time = csi_actions::operation::rfc3339(SystemTime::now() - age);
    let error = json!({"status": {"error": {"message": message, "time": time}}});
    bed.cluster.patch(CONTENTS, "", name(&archived.content), &error).unwrap();
}

fn text(progress: &Progress) -> String {
    format!("{progress:?}")
}

#[tokio::test]
async fn i16_a_retryable_driver_error_is_ridden_out_and_told() {
    let bed = Bed::new().await;
    let archived = unready(&bed).await;
    let rate = "rpc error: code = Internal desc = SnapshotCreationPerVolumeRateExceeded";
    set_error(&bed, &archived, rate, Duration::from_secs(20));
    let progress = bed.poll(&aged(&archived, Duration::from_secs(25)), &backup("b1")).await;
    assert!(progress.is_running() && text(&progress).contains("RateExceeded"), "{progress:?}");
    assert!(bed.get(CONTENTS, "", name(&archived.content)).is_some(), "nothing is given up yet");
}

#[tokio::test]
async fn i17_a_permanent_driver_error_fails_the_operation_and_removes_the_snapshot() {
    let bed = Bed::new().await;
    let archived = unready(&bed).await;
    let refusal = "rpc error: code = InvalidArgument desc = not this volume";
    set_error(&bed, &archived, refusal, Duration::from_secs(20));
    let progress = bed.poll(&aged(&archived, Duration::from_secs(25)), &backup("b1")).await;
    let failure = progress.failure().unwrap();
    for part in ["app/", "not this volume", crate::bed::DRIVER] {
        assert!(failure.contains(part), "{part} in {failure}");
    }
    bed.until("everything is gone", |bed| {
        bed.list(SNAPSHOTS).is_empty() && bed.list(CONTENTS).is_empty() && bed.in_storage() == 0
    })
    .await;
}

#[tokio::test]
async fn i27_a_snapshot_is_given_up_also_where_a_request_for_that_fails_at_first() {
    for verb in ["patch", "delete"] {
        let bed = Bed::new().await;
        let archived = unready(&bed).await;
        set_error(&bed, &archived, "rpc error: code = InvalidArgument desc = no", Duration::from_secs(20));
        bed.order([Rule::on(verb).resource("volumesnapshot*").times(1).fail(500)]);
        let progress = bed.poll(&aged(&archived, Duration::from_secs(25)), &backup("b1")).await;
        assert!(!progress.failure().unwrap().contains("could not be removed"), "{progress:?}");
        bed.until("everything is gone", |bed| bed.list(CONTENTS).is_empty() && bed.in_storage() == 0).await;
    }
}

#[tokio::test]
async fn a_snapshot_that_the_driver_refuses_after_the_cut_leaves_nothing_behind() {
    let bed = Bed::with(Pace::real(), "Delete").await;
    let claim = bed.claim("data").await;
    let driver = bed.driver();
    driver.order(Fault::on("CreateSnapshot").never_ready()).unwrap();
    driver
        .order(Fault::on("CreateSnapshot").skip(1).error(Code::InvalidArgument, "snapshot is corrupt"))
        .unwrap();
    let archived = bed.back_up(&claim, &backup("b1")).await;
    let progress = bed.finished(archived.operation.as_ref().unwrap(), &backup("b1")).await;
    assert!(progress.failure().unwrap().contains("snapshot is corrupt"), "{progress:?}");
    bed.finalize(&archived, &backup("b1")).await;
    bed.until("everything is gone", |bed| {
        bed.list(SNAPSHOTS).is_empty() && bed.list(CONTENTS).is_empty() && bed.in_storage() == 0
    })
    .await;
}

#[tokio::test]
async fn i27_api_trouble_keeps_the_operation_running_whatever_its_age() {
    let bed = Bed::new().await;
    let archived = unready(&bed).await;
    for code in [500, 401, 403, 404, 429] {
        bed.cluster.clear_requests();
        bed.order([Rule::on("*").resource("volumesnapshotcontents").id("all").fail(code)]);
        let progress = bed.poll(&aged(&archived, Duration::from_hours(3)), &backup("b1")).await;
        assert!(progress.is_running(), "{code}: {progress:?}");
        assert!(text(&progress).contains("volumesnapshotcontents"), "the trouble is told: {progress:?}");
        assert!(bed.hits() > 0);
    }
}

#[tokio::test]
async fn a_round_of_polls_costs_two_lists_however_many_operations_there_are() {
    const OPERATIONS: usize = 200;
    let bed = Bed::new().await;
    let labels = json!({"velero.io/backup-name": "b1", "velero.io/backup-uid": "uid-of-b1"});
    for index in 0..OPERATIONS {
        let snapshot = format!("s-{index}");
        bed.cluster
            .apply(json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
                "metadata": {"name": format!("c-{index}"), "labels": labels},
                "spec": {"driver": "another.csi", "deletionPolicy": "Delete", "source": {"volumeHandle": "v"},
                    "volumeSnapshotRef": {"namespace": "app", "name": snapshot, "uid": "u"}},
                "status": {"readyToUse": index % 2 == 0, "snapshotHandle": format!("h-{index}"), "restoreSize": 5}}))
            .unwrap();
    }
    bed.cluster.clear_requests();
    let action = ContentBackup::new(bed.environment());
    let polls = (0..OPERATIONS).map(|index| {
        let operation = Operation::on_content(&format!("c-{index}"), SystemTime::now());
        action.progress(OperationId::new(operation.to_string()).unwrap(), of(&backup("b1")))
    });
    let progress = futures_util::future::try_join_all(polls).await.unwrap();
    assert_eq!(progress.iter().filter(|progress| !progress.is_running()).count(), OPERATIONS / 2);
    let counts = bed.cluster.counts();
    let ours: Vec<_> = counts.iter().filter(|(agent, _)| agent.starts_with("csi-actions/")).collect();
    assert_eq!((counts.len(), ours.len()), (1, 1), "all requests carry our name: {counts:?}");
    assert_eq!(bed.cluster.requests().len(), 2, "{counts:?}");
}

#[tokio::test]
async fn a_content_that_lost_its_labels_is_still_found() {
    let bed = Bed::new().await;
    let archived = unready(&bed).await;
    let labels = json!({"metadata": {"labels": {"velero.io/backup-name": null}}});
    bed.cluster.patch(CONTENTS, "", name(&archived.content), &labels).unwrap();
    let progress = bed.poll(&aged(&archived, Duration::from_secs(100)), &backup("b1")).await;
    assert!(progress.is_running(), "{progress:?}");
}

#[tokio::test]
async fn a_content_that_disappeared_fails_the_operation() {
    let bed = Bed::new().await;
    let archived = unready(&bed).await;
    bed.cluster.delete(SNAPSHOTS, "app", name(&archived.snapshot)).unwrap();
    bed.gone(CONTENTS, "", name(&archived.content)).await;
    let progress = bed.poll(&aged(&archived, Duration::from_secs(1)), &backup("b1")).await;
    assert!(progress.is_running(), "{progress:?}");
    let progress = bed.poll(&aged(&archived, Duration::from_secs(60)), &backup("b1")).await;
    assert!(progress.failure().unwrap().contains("disappeared"), "{progress:?}");
}

#[tokio::test]
async fn c13_bad_ids_are_refused_with_their_text_and_velero_s_own_are_understood() {
    let bed = Bed::new().await;
    let action = ContentBackup::new(bed.environment());
    for id in ["a/b", "a/b/c/d", "a/b/notatime"] {
        let error = action.progress(OperationId::new(id).unwrap(), of(&backup("b1"))).await.unwrap_err();
        assert!(error.to_string().contains(id), "{error}");
    }
    assert!(bed.cluster.requests().is_empty());
    let claim = bed.claim("data").await;
    let archived = bed.back_up(&claim, &backup("b1")).await;
    let id = OperationId::new(format!("app/{}/2026-01-01T00:00:00Z", name(&archived.snapshot))).unwrap();
    let progress = bed.finished(&id, &backup("b1")).await;
    assert_eq!(progress.failure(), None);
}

#[tokio::test]
async fn an_operation_that_is_cancelled_takes_its_snapshot_along_and_finalizing_keeps_nothing() {
    let bed = Bed::new().await;
    let archived = unready(&bed).await;
    let action = ContentBackup::new(bed.environment());
    let operation = archived.operation.clone().unwrap();
    action.cancel(operation.clone(), of(&backup("b1"))).await.unwrap();
    action.cancel(operation, of(&backup("b1"))).await.unwrap();
    bed.finalize(&archived, &backup("b1")).await;
    bed.until("everything is gone", |bed| {
        bed.list(SNAPSHOTS).is_empty() && bed.list(CONTENTS).is_empty() && bed.in_storage() == 0
    })
    .await;
    for result in bed.delete(&[&archived.content], &backup("b1")).await {
        result.unwrap();
    }
}

#[tokio::test]
async fn cancel_touches_nothing_of_another_backup() {
    let bed = Bed::new().await;
    let archived = unready(&bed).await;
    let action = ContentBackup::new(bed.environment());
    action.cancel(archived.operation.clone().unwrap(), of(&backup("b2"))).await.unwrap();
    let content = bed.get(CONTENTS, "", name(&archived.content)).unwrap();
    assert_eq!(content["metadata"]["deletionTimestamp"], Value::Null);
    assert!(bed.get(SNAPSHOTS, "app", name(&archived.snapshot)).is_some());
}

#[tokio::test]
async fn only_contents_of_this_backup_start_an_operation_and_none_beside_velero_s_own() {
    let bed = Bed::new().await;
    let archived = unready(&bed).await;
    let content = &archived.content;
    let action = ContentBackup::new(bed.environment());
    let operates = async |action: &ContentBackup, backup: Value| {
        action.execute(item(content), of(&backup)).await.unwrap().operation().is_some()
    };
    assert!(operates(&action, backup("b1")).await);
    assert!(!operates(&action, backup("b2")).await);
    let mut finalizing = backup("b1");
    finalizing["status"]["phase"] = "Finalizing".into();
    assert!(!operates(&action, finalizing).await);
    assert!(!operates(&ContentBackup::new(bed.environment_in(Mode::Alongside)), backup("b1")).await);
}
