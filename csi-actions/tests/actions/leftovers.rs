//! What a process that was killed left behind goes with the next deletion.

use crate::bed::{Bed, CONTENTS, SNAPSHOTS, backup, item, name, of};
use crate::deletions::finished;
use cluster::Rule;
use csi_actions::delete::volumesnapshot::SnapshotDelete;
use serde_json::{Value, json};
use velero_plugin::Result;
use velero_plugin::backup::DeleteItemAction as _;

/// The deletion of `backup`, in a new process, as far as its namespace is concerned.
pub(crate) async fn delete_namespace(bed: &Bed, backup: &Value) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "app"}});
    SnapshotDelete::new(&bed.environment()).execute(item(&namespace), of(backup)).await
}

#[tokio::test]
async fn a_snapshot_whose_item_failed_with_its_process_goes_with_the_backup_and_no_other_does() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    // The claim's item is all that was done.
    bed.back_up_claim(&claim, &backup("b1")).await.unwrap();
    bed.back_up_claim(&claim, &backup("b2")).await.unwrap();
    let mut namesake = backup("b1");
    namesake["metadata"]["uid"] = "of-an-earlier-backup".into();
    bed.back_up_claim(&claim, &namesake).await.unwrap();
    let mut restored = bed.list(SNAPSHOTS)[0].clone();
    restored["metadata"] = json!({"name": "restored", "namespace": "app", "labels": {"velero.io/backup-name": "b1",
        "velero.io/backup-uid": "uid-of-b1", "velero.io/restore-name": "r1"}});
    bed.cluster.apply(restored).unwrap();

    delete_namespace(&bed, &backup("b1")).await.unwrap();
    let mut left: Vec<String> = bed.list(SNAPSHOTS).iter().map(uid_label).collect();
    left.sort();
    assert_eq!(
        left,
        ["of-an-earlier-backup", "uid-of-b1", "uid-of-b2"],
        "the restored one and those of others"
    );
    assert!(bed.get(SNAPSHOTS, "app", "restored").is_some());
    bed.until("only the others are in the storage", |bed| bed.in_storage() == 3).await;
    assert_eq!(bed.list(CONTENTS).len(), 3);
}

fn uid_label(object: &Value) -> String {
    object["metadata"]["labels"]["velero.io/backup-uid"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_class_may_retain_and_what_a_failed_item_left_is_deleted_all_the_same() {
    let bed = Bed::with(cluster::simulator::Settings::default(), "Retain").await;
    let claim = bed.claim("data").await;
    bed.back_up_claim(&claim, &backup("b1")).await.unwrap();
    delete_namespace(&bed, &backup("b1")).await.unwrap();
    assert_eq!((bed.in_storage(), bed.list(SNAPSHOTS).len(), bed.list(CONTENTS).len()), (0, 0, 0));
}

#[tokio::test]
async fn a_deletion_that_a_killed_process_began_is_finished_by_that_of_another_backup() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["data"]).await;
    // The content is made, and then nothing more is done.
    bed.order([Rule::on("delete").resource("volumesnapshotcontents").fail(403)]);
    bed.delete(&[&contents[0]], &backup("b1")).await.remove(0).unwrap_err();
    bed.cluster.faults().clear();
    assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (1, 1));

    delete_namespace(&bed, &backup("b2")).await.unwrap();
    assert_eq!(
        (bed.in_storage(), bed.list(CONTENTS).len()),
        (0, 0),
        "{:?}",
        bed.list(CONTENTS).first().map(name)
    );
}

#[tokio::test]
async fn the_cluster_is_looked_through_once_in_a_deletion_and_a_failure_is_told_once() {
    let bed = Bed::new().await;
    bed.order([Rule::on("list").resource("volumesnapshots").times(1).fail(403)]);
    let action = SnapshotDelete::new(&bed.environment());
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "app"}});
    let told = action.execute(item(&namespace), of(&backup("b1"))).await.unwrap_err();
    assert!(told.to_string().contains("volumesnapshots"), "{told}");
    bed.cluster.clear_requests();
    action.execute(item(&namespace), of(&backup("b1"))).await.unwrap();
    assert!(bed.cluster.requests().is_empty());
}
