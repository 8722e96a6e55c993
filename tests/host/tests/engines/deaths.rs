//! What the death of a plugin's process costs a backup.

use serde_json::json;
use velero_host::operation::OperationPhase;
use velero_plugin::BackupPhase;

use crate::support::{World, object};

#[tokio::test]
async fn a_death_in_execute_costs_the_item_and_leaves_the_backup_partially_failed() {
    let objects = [object("ConfigMap", "a", "exits"), object("Secret", "a", "s")];
    let world = World::of_processes(&objects).await;
    let mut backup = world.back_up(json!({})).await;
    assert_eq!(backup.phase(), BackupPhase::FinalizingPartiallyFailed);
    assert_eq!(world.archived().await, ["secrets a/s"]);
    let errors = world.record.of("error");
    let text = "(groupResource=configmaps, namespace=a, name=exits): rpc error: code = Unavailable";
    assert!(errors.iter().any(|error| error.contains(text)), "{errors:?}");
    world.server.finalize(&mut backup).await.unwrap();
    assert_eq!(backup.phase(), BackupPhase::PartiallyFailed);
}

#[tokio::test]
async fn a_death_in_progress_fails_the_operation_for_good_and_others_go_on() {
    let objects = [object("ConfigMap", "a", "operates"), object("ConfigMap", "a", "waits")];
    let world = World::of_processes(&objects).await;
    let mut backup = world.back_up(json!({})).await;
    assert_eq!(backup.phase(), BackupPhase::WaitingForPluginOperations);
    world.server.round(&mut backup).await.unwrap();
    let stored = world.server.store().operations("backup-1").await.unwrap();
    assert_eq!(stored[0].status.phase, OperationPhase::Failed);
    assert!(
        stored[0].status.error.starts_with("rpc error: code = Unavailable"),
        "{}",
        stored[0].status.error
    );
    // The operation after it may be asked before the death is seen; then it fails too.
    let lost = stored[1].status.phase == OperationPhase::Failed;
    let after = if lost {
        BackupPhase::FinalizingPartiallyFailed
    } else {
        BackupPhase::WaitingForPluginOperationsPartiallyFailed
    };
    assert_eq!((backup.phase(), backup.count("errors")), (after, if lost { 2 } else { 1 }));
    let asked = world.record.count("call example.io/dying Progress");
    world.server.round(&mut backup).await.unwrap();
    let again = world.record.count("call example.io/dying Progress") - asked;
    assert_eq!(again, usize::from(!lost), "a failed operation is asked about no more");
}
