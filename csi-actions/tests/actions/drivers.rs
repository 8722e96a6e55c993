//! Deletions whose driver refuses, has trouble, or is down.

use std::time::Duration;

use crate::bed::{Bed, CONTENTS, SAFE, backup, item, name, of};
use crate::deletions::{delete_well, finished};
use crate::events::events;
use cluster::simulator::Fault;
use csi_actions::delete::Patience;
use csi_actions::delete::volumesnapshotcontent::ContentDelete;
use serde_json::{Value, json};
use tonic::Code;
use velero_plugin::backup::DeleteItemAction as _;

fn impatient(bed: &Bed) -> ContentDelete {
    let patience = Patience { first: Duration::from_secs(3), later: Duration::from_millis(300) };
    ContentDelete::new(bed.environment()).with_patience(patience)
}

fn is_deleting(content: &Value) -> bool {
    content["metadata"]["deletionTimestamp"].is_string()
}

#[tokio::test]
async fn a_driver_that_refuses_is_an_error_in_its_own_words() {
    const IN_USE: &str = "rpc error: code = FailedPrecondition desc = snapshot is in use by a clone";
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["data"]).await;
    bed.driver().order(Fault::on("DeleteSnapshot").error(Code::FailedPrecondition, "in use")).unwrap();
    let action = impatient(&bed);
    let told = async {
        bed.until("the content is being deleted", |bed| bed.list(CONTENTS).iter().any(is_deleting)).await;
        let temporary = bed.list(CONTENTS).remove(0);
        // The sidecars up to 8.6 say this in an event only; others write it here. It is said again and again, since the
        // simulated sidecar may still be writing a status from before the deletion.
        let error = json!({"status": {"error": {"message": IN_USE, "time": "2026-01-01T00:00:00Z"}}});
        loop {
            bed.cluster.patch(CONTENTS, "", name(&temporary), &error).unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let result = tokio::select! {
        result = action.execute(item(&contents[0]), of(&backup("b1"))) => result,
        () = told => unreachable!("it never ends"),
    };
    let temporary = name(&bed.list(CONTENTS)[0]).to_owned();
    let error = result.unwrap_err().to_string();
    let handle = contents[0]["status"]["snapshotHandle"].as_str().unwrap();
    for part in [IN_USE, handle, temporary.as_str(), "still in the storage"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    let told = ["VeleroSnapshotDeletionFailed", "Warning", "VolumeSnapshotContent", &temporary, "default"];
    assert!(events(&bed).iter().any(|event| *event == told), "where a user sees it: {:?}", events(&bed));
    assert_eq!(bed.in_storage(), 1);
}

#[tokio::test]
async fn an_error_that_was_there_before_is_no_refusal() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["data"]).await;
    bed.driver().order(Fault::on("DeleteSnapshot").error(Code::Unavailable, "down").id("down")).unwrap();
    let stale =
        json!({"message": "rpc error: code = NotFound desc = long ago", "time": "2025-01-01T00:00:00Z"});
    bed.cluster
        .apply(json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
            "metadata": {"name": "left-over", "labels": contents[0]["metadata"]["labels"]},
            "spec": {"driver": crate::bed::DRIVER, "deletionPolicy": "Retain", "source": {"volumeHandle": "v"},
                "volumeSnapshotRef": {"namespace": "app", "name": "long-gone", "uid": "u"}},
            "status": {"snapshotHandle": contents[0]["status"]["snapshotHandle"], "readyToUse": true, "error": stale}}))
        .unwrap();
    impatient(&bed).execute(item(&contents[0]), of(&backup("b1"))).await.unwrap();
    let left = bed.get(CONTENTS, "", "left-over").unwrap();
    assert!(is_deleting(&left) && left["status"]["error"]["message"].is_string(), "{left}");
}

#[tokio::test]
async fn deletions_go_on_by_themselves_while_the_driver_is_in_trouble_and_can_be_repeated() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["one", "two", "three"]).await;
    bed.driver().order(Fault::on("DeleteSnapshot").error(Code::Unavailable, "down").id("down")).unwrap();
    let action = impatient(&bed);
    for content in &contents {
        let deletion = action.execute(item(content), of(&backup("b1")));
        tokio::time::timeout(SAFE, deletion).await.expect("bounded").unwrap();
    }
    let left = bed.list(CONTENTS);
    assert_eq!((bed.in_storage(), left.len()), (3, 3));
    assert!(left.iter().all(is_deleting), "each is on its way: {left:?}");
    assert!(bed.driver().faults().remove("down"));
    delete_well(&bed, &contents, &backup("b1")).await;
    assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (0, 0));
}

#[tokio::test]
async fn a_driver_without_its_sidecar_is_waited_for_within_bounds() {
    let bed = Bed::new().await;
    bed.cluster
        .apply(
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "down.csi"}}),
        )
        .unwrap();
    let content = json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
        "metadata": {"name": "snapcontent-aa", "labels": {"velero.io/backup-name": "b1"}},
        "spec": {"driver": "down.csi", "deletionPolicy": "Retain", "source": {"volumeHandle": "vol-1"}},
        "status": {"snapshotHandle": "snap-1"}});
    let action = impatient(&bed);
    for _ in 0..2 {
        let deletion = action.execute(item(&content), of(&backup("b1")));
        tokio::time::timeout(SAFE, deletion).await.expect("bounded").unwrap();
    }
    let left = bed.list(CONTENTS);
    assert_eq!(left.len(), 1, "the second attempt meets the first: {left:?}");
    assert!(is_deleting(&left[0]) && left[0]["status"]["snapshotHandle"] == "snap-1", "{left:?}");
}
