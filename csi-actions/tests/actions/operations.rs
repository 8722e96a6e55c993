//! Where the operation of a snapshot is: on its content, or on itself, and polled by either name all the same.

use std::sync::Arc;

use crate::bed::{Archived, Bed, CONTENTS, SNAPSHOTS, backup, item, name, of, settings};
use cluster::simulator::{Fault, Settings as Pace};
use csi_actions::backup::volumesnapshot::SnapshotBackup;
use csi_actions::backup::volumesnapshotcontent::ContentBackup;
use csi_actions::environment::Environment;
use csi_actions::settings::{Mode, OperationOn, Settings};
use serde_json::{Value, json};
use tonic::Code;
use velero_plugin::backup::BackupItemActionV2;

fn on_snapshots(bed: &Bed) -> Arc<Environment> {
    bed.environment_with(Settings { operation_on: OperationOn::Snapshots, ..settings(Mode::Standalone) })
}

async fn backed_up(bed: &Bed) -> Archived {
    let claim = bed.claim("data").await;
    bed.back_up_in(on_snapshots(bed), &claim, &backup("b1")).await
}

/// Both actions, each in a new process.
fn actions(bed: &Bed) -> [Arc<dyn BackupItemActionV2>; 2] {
    [Arc::new(SnapshotBackup::new(on_snapshots(bed))), Arc::new(ContentBackup::new(bed.environment()))]
}

#[tokio::test]
async fn the_operation_is_on_the_snapshot_where_it_is_set_and_the_backup_ends_as_it_does_otherwise() {
    let bed = Bed::new().await;
    let archived = backed_up(&bed).await;
    let operation = archived.operation.as_ref().unwrap();
    assert!(
        operation.as_str().starts_with(&format!("app/{}/20", name(&archived.snapshot))),
        "as Velero's own action writes it: {operation}"
    );
    assert_eq!(
        archived.post_operation_items,
        [
            format!("{CONTENTS} {}", name(&archived.content)),
            format!("{SNAPSHOTS} app/{}", name(&archived.snapshot))
        ]
    );
    let last = bed.finished(operation, &backup("b1")).await;
    assert_eq!(last.failure(), None);
    for action in actions(&bed) {
        let progress = action.progress(operation.clone(), of(&backup("b1"))).await.unwrap();
        assert!(!progress.is_running() && progress.failure().is_none(), "{progress:?}");
    }
    let content = bed.finalize(&archived, &backup("b1")).await;
    bed.gone(SNAPSHOTS, "app", name(&archived.snapshot)).await;
    bed.gone(CONTENTS, "", name(&archived.content)).await;
    assert_eq!(bed.in_storage(), 1);
    for result in bed.delete(&[&content], &backup("b1")).await {
        result.unwrap();
    }
    assert_eq!(bed.in_storage(), 0);
}

#[tokio::test]
async fn beside_velero_s_own_actions_neither_has_an_operation() {
    let bed = Bed::new().await;
    let archived = backed_up(&bed).await;
    let set = Settings { operation_on: OperationOn::Snapshots, ..settings(Mode::Alongside) };
    let alongside = bed.environment_with(set);
    let snapshot = SnapshotBackup::new(alongside.clone());
    let content = ContentBackup::new(alongside);
    let outcome = snapshot.execute(item(&archived.snapshot), of(&backup("b1"))).await.unwrap();
    assert!(outcome.operation().is_none());
    let outcome = content.execute(item(&archived.content), of(&backup("b1"))).await.unwrap();
    assert!(outcome.operation().is_none());
}

#[tokio::test]
async fn progress_and_cancel_answer_by_either_name() {
    let bed = Bed::new().await;
    bed.driver().order(Fault::on("CreateSnapshot").never_ready()).unwrap();
    let archived = backed_up(&bed).await;
    let operation = archived.operation.clone().unwrap();
    let mut answers = Vec::new();
    for action in actions(&bed) {
        answers.push(action.progress(operation.clone(), of(&backup("b1"))).await.unwrap());
    }
    assert!(answers[0].is_running());
    assert_eq!(answers[0], answers[1]);
    for action in actions(&bed) {
        action.cancel(operation.clone(), of(&backup("b1"))).await.unwrap();
    }
    bed.finalize(&archived, &backup("b1")).await;
    bed.until("everything is gone", |bed| {
        bed.list(SNAPSHOTS).is_empty() && bed.list(CONTENTS).is_empty() && bed.in_storage() == 0
    })
    .await;
}

/// Leaves the content alone, as a tool does that deletes the snapshot of a class with policy Retain.
async fn orphaned(bed: &Bed, archived: &Archived) {
    bed.cluster.delete(SNAPSHOTS, "app", name(&archived.snapshot)).unwrap();
    bed.gone(SNAPSHOTS, "app", name(&archived.snapshot)).await;
}

#[tokio::test]
async fn i19_an_operation_on_a_snapshot_that_something_deleted_ends_by_its_content() {
    let bed = Bed::with(Pace::default(), "Retain").await;
    let archived = backed_up(&bed).await;
    bed.finished(archived.operation.as_ref().unwrap(), &backup("b1")).await;
    orphaned(&bed, &archived).await;
    let progress = bed.poll(archived.operation.as_ref().unwrap(), &backup("b1")).await;
    assert!(!progress.is_running() && progress.failure().is_none(), "{progress:?}");
}

#[tokio::test]
async fn i19_cancel_takes_away_the_content_of_a_snapshot_that_something_deleted() {
    let bed = Bed::with(Pace::default(), "Retain").await;
    bed.driver().order(Fault::on("CreateSnapshot").never_ready()).unwrap();
    let archived = backed_up(&bed).await;
    orphaned(&bed, &archived).await;
    let [snapshots, _] = actions(&bed);
    let operation = archived.operation.clone().unwrap();
    snapshots.cancel(operation.clone(), of(&backup("b2"))).await.unwrap();
    assert_eq!(
        bed.get(CONTENTS, "", name(&archived.content)).unwrap()["metadata"]["deletionTimestamp"],
        Value::Null
    );
    snapshots.cancel(operation, of(&backup("b1"))).await.unwrap();
    bed.until("everything is gone", |bed| bed.list(CONTENTS).is_empty() && bed.in_storage() == 0).await;
}

#[tokio::test]
async fn cancel_has_its_word_heard_by_a_sidecar_that_is_at_the_creation_for_longer_than_cancel_waits() {
    let bed = Bed::with(Pace::default(), "Retain").await;
    let slow = bed.driver().order(Fault::on("CreateSnapshot").never_ready()).unwrap();
    let archived = backed_up(&bed).await;
    orphaned(&bed, &archived).await;
    bed.driver().faults().remove(&slow);
    let down = Fault::on("CreateSnapshot").error(Code::Unavailable, "storage is down");
    let down = bed.driver().order(down).unwrap();
    // With its next attempt the sidecar says that it is at it, and wipes away that the snapshot is gone.
    let at_it = "snapshot.storage.kubernetes.io/volumesnapshot-being-created";
    let told = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted";
    let content = name(&archived.content);
    bed.seen(CONTENTS, "", content, |content| content["metadata"]["annotations"][at_it] == "yes").await;
    bed.cluster.patch(CONTENTS, "", content, &json!({"metadata": {"annotations": {told: null}}})).unwrap();
    let [snapshots, _] = actions(&bed);
    snapshots.cancel(archived.operation.clone().unwrap(), of(&backup("b1"))).await.unwrap();
    assert_eq!(bed.in_storage(), 1);
    bed.driver().faults().remove(&down);
    bed.until("everything is gone", |bed| bed.list(CONTENTS).is_empty() && bed.in_storage() == 0).await;
}
