//! Deletions that meet others at work on the same snapshot: a second deletion, a restore, an object in the way.

use std::time::Duration;

use crate::bed::{Bed, CONTENTS, DRIVER, SNAPSHOTS, backup, item, name, of, uid};
use crate::deletions::{delete_well, finished};
use cluster::Rule;
use cluster::simulator::Fault;
use csi_actions::delete::volumesnapshotcontent::ContentDelete;
use serde_json::{Value, json};
use velero_plugin::backup::DeleteItemAction as _;

pub(crate) const HOLD: &str = "example.com/hold";

/// A content made of the handle of `archived`.
pub(crate) fn content(name: &str, archived: &Value, labels: &Value, finalizers: &Value) -> Value {
    json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
        "metadata": {"name": name, "labels": labels, "finalizers": finalizers},
        "spec": {"driver": DRIVER, "deletionPolicy": "Retain",
            "source": {"snapshotHandle": archived["status"]["snapshotHandle"]},
            "volumeSnapshotRef": {"namespace": "velero", "name": name}}})
}

/// The name of the temporary content for the snapshot of `archived`.
pub(crate) fn temporary(archived: &Value) -> String {
    csi_actions::names::temporary_content(DRIVER, &[archived["status"]["snapshotHandle"].as_str().unwrap()])
}

async fn delete(bed: &Bed, contents: &[Value], backup: &Value) {
    let action = ContentDelete::new(bed.environment());
    for content in contents {
        action.execute(item(content), of(backup)).await.unwrap();
    }
}

#[tokio::test]
async fn two_deletions_at_once_delete_each_snapshot_once_and_no_other_and_leave_nothing() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["one", "two", "three"]).await;
    let claim = bed.claim("of-another").await;
    let other = bed.back_up(&claim, &backup("b2")).await;
    let other = other.content["status"]["snapshotHandle"].as_str().unwrap().to_owned();
    let b1 = backup("b1");
    tokio::join!(delete(&bed, &contents, &b1), delete(&bed, &contents, &b1));
    let left: Vec<String> = bed.driver().read(|state| state.snapshots.keys().cloned().collect());
    assert_eq!(left, [other]);
    assert_eq!(bed.driver().read(|state| state.counters.snapshots_deleted), 3);
    assert_eq!(bed.list(CONTENTS).len(), 1, "that of the other backup");
}

#[tokio::test]
async fn a_temporary_content_that_lacks_policy_and_finalizer_is_completed() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["data"]).await;
    bed.cluster.apply(content(&temporary(&contents[0]), &contents[0], &json!({}), &json!([]))).unwrap();
    delete_well(&bed, &contents, &backup("b1")).await;
    assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (0, 0));
}

/// A deletion finds this temporary content, which is being deleted and held by [`HOLD`], waits until that is taken away, and then
/// deletes the snapshot.
pub(crate) async fn waits_until_it_goes_by_another_hand(bed: &Bed, archived: &[Value], temporary: Value) {
    let name = name(&temporary).to_owned();
    bed.cluster.apply(temporary).unwrap();
    bed.cluster.delete(CONTENTS, "", &name).unwrap();
    let released = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(bed.in_storage(), 1);
        bed.cluster.patch(CONTENTS, "", &name, &json!({"metadata": {"finalizers": null}})).unwrap();
    };
    let b1 = backup("b1");
    tokio::join!(delete(bed, archived, &b1), released);
    assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (0, 0));
}

#[tokio::test]
async fn a_temporary_content_that_goes_by_another_hand_is_not_taken_for_proof() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["data"]).await;
    // Under policy Retain it vanishes without the driver being asked.
    let found = content(&temporary(&contents[0]), &contents[0], &json!({}), &json!([HOLD]));
    waits_until_it_goes_by_another_hand(&bed, &contents, found).await;
}

#[tokio::test]
async fn an_object_in_the_way_that_leads_to_another_snapshot_is_left_alone_and_named() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["data", "users-own"]).await;
    let name = temporary(&contents[0]);
    let foreign = bed.cluster.apply(content(&name, &contents[1], &json!({}), &json!([]))).unwrap();
    let error = bed.delete(&[&contents[0]], &backup("b1")).await.remove(0).unwrap_err().to_string();
    for part in [name.as_str(), "another driver or snapshot", "delete that content by hand"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    let left = bed.get(CONTENTS, "", &name).unwrap();
    assert_eq!((uid(&left), &left["spec"]), (uid(&foreign), &foreign["spec"]));
    assert_eq!(bed.in_storage(), 2);
}

#[tokio::test]
async fn a_restore_that_binds_its_content_after_the_list_keeps_it() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["one", "two"]).await;
    let mut labels = contents[1]["metadata"]["labels"].clone();
    labels["velero.io/restore-name"] = "r1".into();
    let mut restored = content("restored", &contents[1], &labels, &json!([]));
    restored["spec"]["volumeSnapshotRef"]["namespace"] = "app".into();
    bed.cluster.apply(restored).unwrap();
    let action = ContentDelete::new(bed.environment());
    action.execute(item(&contents[0]), of(&backup("b1"))).await.unwrap();
    bed.cluster
        .apply(json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
            "metadata": {"namespace": "app", "name": "restored", "labels": labels},
            "spec": {"source": {"volumeSnapshotContentName": "restored"}}}))
        .unwrap();
    action.execute(item(&contents[1]), of(&backup("b1"))).await.unwrap();
    assert_eq!(bed.in_storage(), 0);
    let kept = bed.get(CONTENTS, "", "restored").unwrap();
    assert_eq!(kept["metadata"]["deletionTimestamp"], Value::Null, "{kept}");
    assert_eq!(kept["spec"]["deletionPolicy"], "Delete", "it goes with its snapshot");
    assert!(bed.get(SNAPSHOTS, "app", "restored").is_some());
}

#[tokio::test]
async fn a_left_over_content_that_changes_under_the_patch_is_read_again() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["data"]).await;
    let labels = &contents[0]["metadata"]["labels"];
    bed.cluster.apply(content("left-over", &contents[0], labels, &json!([]))).unwrap();
    bed.seen(CONTENTS, "", "left-over", |content| content["status"]["readyToUse"] == true).await;
    bed.order([Rule::on("patch").resource("volumesnapshotcontents").name("left-over").times(1).fail(409)]);
    bed.cluster.clear_requests();
    delete_well(&bed, &contents, &backup("b1")).await;
    assert_eq!(bed.hits(), 1);
    let verbs: Vec<String> = bed.cluster.requests().into_iter().map(|request| request.info.verb).collect();
    let patch = verbs.iter().position(|verb| verb == "patch").unwrap();
    let next = verbs[patch + 1..].iter().position(|verb| verb == "patch").unwrap();
    assert!(verbs[patch + 1..][..next].contains(&"get".to_owned()), "{verbs:?}");
    assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (0, 0));
}

#[tokio::test]
async fn a_content_that_the_sidecar_keeps_since_it_was_not_told_of_its_snapshot_goes_first() {
    let bed = Bed::new().await;
    // The sidecar goes on asking for a snapshot that is not ready, and the driver cuts it again where it is gone.
    bed.driver().order(Fault::on("CreateSnapshot").never_ready()).unwrap();
    let claim = bed.claim("data").await;
    let archived = bed.back_up(&claim, &backup("b1")).await;
    let (content, snapshot) = (name(&archived.content), name(&archived.snapshot));
    let retain = json!({"spec": {"deletionPolicy": "Retain"}});
    bed.cluster.patch(CONTENTS, "", content, &retain).unwrap();
    bed.cluster.delete(SNAPSHOTS, "app", snapshot).unwrap();
    bed.gone(SNAPSHOTS, "app", snapshot).await;
    // What the sidecar may do to it with its next attempt.
    let told = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted";
    bed.cluster.patch(CONTENTS, "", content, &json!({"metadata": {"annotations": {told: null}}})).unwrap();
    bed.cluster.delete(CONTENTS, "", content).unwrap();
    assert!(bed.get(CONTENTS, "", content).is_some(), "it must be stuck for this test to tell anything");

    delete_well(&bed, std::slice::from_ref(&archived.content), &backup("b1")).await;
    bed.gone(CONTENTS, "", content).await;
    assert_eq!(bed.in_storage(), 0);
}

#[tokio::test]
async fn a_content_that_gets_stuck_while_its_snapshot_is_deleted_by_another_is_told_that_it_may_go() {
    let mut bed = Bed::new().await;
    let claim = bed.claim("data").await;
    let archived = bed.back_up(&claim, &backup("b1")).await;
    bed.finished(archived.operation.as_ref().unwrap(), &backup("b1")).await;
    let (content, snapshot) = (name(&archived.content).to_owned(), name(&archived.snapshot).to_owned());
    let live = bed.get(CONTENTS, "", &content).unwrap();
    // The sidecar waits for its snapshot, and the deletion for nothing: it goes by a content of its own.
    bed.cluster.delete(CONTENTS, "", &content).unwrap();
    let temporary = temporary(&live);
    bed.order([Rule::on("delete").name(temporary.as_str()).delay(Duration::from_secs(3))]);
    let action = ContentDelete::new(bed.environment());
    let deletion = tokio::spawn(async move { action.execute(item(&live), of(&backup("b1"))).await });
    bed.seen(CONTENTS, "", &temporary, |_| true).await;
    // While the controllers are down the snapshot goes, so that the sidecar is not told.
    bed.stop_controllers();
    bed.cluster.patch(SNAPSHOTS, "app", &snapshot, &json!({"metadata": {"finalizers": null}})).unwrap();
    bed.cluster.delete(SNAPSHOTS, "app", &snapshot).unwrap();
    bed.start_controllers();
    assert!(bed.get(CONTENTS, "", &content).is_some(), "it must be stuck for this test to tell anything");

    deletion.await.unwrap().unwrap();
    bed.gone(CONTENTS, "", &content).await;
    assert!(bed.list(CONTENTS).is_empty());
}
