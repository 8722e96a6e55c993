//! Deletions through contents that their sidecar does not see before: from the second snapshot of a process on, where the cluster lets
//! the driver of a content be changed.

use std::time::Duration;

use crate::bed::{Bed, CONTENTS, DRIVER, backup};
use crate::contended::{HOLD, content, temporary, waits_until_it_goes_by_another_hand};
use crate::deletions::{delete_well, finished};
use crate::leftovers::delete_namespace;
use cluster::Rule;
use serde_json::{Value, json};

const HIDDEN: &str = "deletion.csi-actions.velero-rs.io";

/// The drivers of the temporary contents that were made since the requests were cleared.
fn made_for(bed: &Bed) -> Vec<String> {
    let made =
        bed.cluster.requests().into_iter().filter(|request| {
            request.info.verb == "create" && request.info.resource == "volumesnapshotcontents"
        });
    let body = made.map(|request| serde_json::from_str::<Value>(&request.body).unwrap());
    body.map(|content| content["spec"]["driver"].as_str().unwrap().to_owned()).collect()
}

fn patches(archived: &Value) -> Rule {
    Rule::on("patch").resource("volumesnapshotcontents").name(temporary(archived)).subresource("")
}

#[tokio::test]
async fn from_the_second_snapshot_on_the_sidecar_sees_nothing_but_the_deletion() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["one", "two", "three"]).await;
    bed.cluster.clear_requests();
    let looks = bed.driver().count("ListSnapshots");
    delete_well(&bed, &contents, &backup("b1")).await;
    assert_eq!(made_for(&bed), [DRIVER, HIDDEN, HIDDEN]);
    assert_eq!(bed.driver().count("ListSnapshots") - looks, 1, "of the first");
    assert_eq!(bed.driver().read(|state| state.counters.snapshots_deleted), 3);
    assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (0, 0));
    let asked = bed.cluster.requests().into_iter().filter(|request| request.query.contains("dryRun=All"));
    assert_eq!(asked.count(), 1);
}

#[tokio::test]
async fn a_cluster_that_does_not_let_the_driver_change_is_asked_once_and_sees_no_hidden_content() {
    for code in [422, 403, 400] {
        let bed = Bed::new().await;
        let contents = finished(&bed, &backup("b1"), &["one", "two", "three"]).await;
        bed.order([patches(&contents[0]).times(1).fail(code)]);
        bed.cluster.clear_requests();
        delete_well(&bed, &contents, &backup("b1")).await;
        assert_eq!(bed.hits(), 1);
        assert_eq!(made_for(&bed), [DRIVER; 3]);
        assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (0, 0));
    }
}

#[tokio::test]
async fn a_hidden_content_that_is_refused_is_made_as_one_that_is_seen() {
    for code in [422, 403] {
        let bed = Bed::new().await;
        let contents = finished(&bed, &backup("b1"), &["one", "two", "three"]).await;
        bed.order([Rule::on("create").resource("volumesnapshotcontents").skip(1).times(1).fail(code)]);
        bed.cluster.clear_requests();
        delete_well(&bed, &contents, &backup("b1")).await;
        assert_eq!(bed.hits(), 1);
        assert_eq!(made_for(&bed), [DRIVER, HIDDEN, DRIVER, DRIVER]);
        assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (0, 0));
    }
}

#[tokio::test]
async fn a_hidden_content_that_vanishes_before_its_driver_saw_it_proves_nothing() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["one", "two"]).await;
    let name = temporary(&contents[1]);
    bed.order([patches(&contents[1]).times(1).delay(Duration::from_secs(3))]);
    let vanishes = async {
        bed.seen(CONTENTS, "", &name, |content| content["metadata"]["deletionTimestamp"].is_string()).await;
        bed.cluster.patch(CONTENTS, "", &name, &json!({"metadata": {"finalizers": null}})).unwrap();
        assert_eq!(bed.in_storage(), 1);
    };
    let b1 = backup("b1");
    tokio::join!(delete_well(&bed, &contents, &b1), vanishes);
    assert_eq!(bed.hits(), 1);
    assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (0, 0));
}

#[tokio::test]
async fn trouble_of_the_moment_is_no_answer_and_the_next_snapshot_asks_again() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["one", "two", "three"]).await;
    bed.order([patches(&contents[0]).times(1).fail(503)]);
    bed.cluster.clear_requests();
    delete_well(&bed, &contents, &backup("b1")).await;
    assert_eq!(bed.hits(), 1);
    assert_eq!(made_for(&bed), [DRIVER, DRIVER, HIDDEN]);
    assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (0, 0));
}

#[tokio::test]
async fn what_others_archived_is_never_hidden_since_the_sidecar_may_know_its_group() {
    let bed = Bed::new().await;
    let mut contents = finished(&bed, &backup("b1"), &["one", "two"]).await;
    for content in &mut contents {
        content["metadata"]["annotations"] = Value::Null;
    }
    bed.cluster.clear_requests();
    delete_well(&bed, &contents, &backup("b1")).await;
    assert_eq!(made_for(&bed), [DRIVER; 2]);
    assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (0, 0));
}

/// A deletion that stops before the second snapshot's content, which `rule` is for, gets its driver.
async fn stopped(rule: impl FnOnce(&Value) -> Rule) -> (Bed, Vec<Value>) {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["one", "two"]).await;
    bed.order([rule(&contents[1]).fail(403)]);
    let results = bed.delete(&contents.iter().collect::<Vec<_>>(), &backup("b1")).await;
    assert!(results[0].is_ok());
    let error = results[1].as_ref().unwrap_err().to_string();
    assert!(error.contains(DRIVER) && !error.contains(HIDDEN), "{error}");
    bed.cluster.faults().clear();
    let left = bed.get(CONTENTS, "", &temporary(&contents[1])).unwrap();
    assert_eq!(left["spec"]["driver"], HIDDEN);
    assert_eq!(bed.in_storage(), 1);
    (bed, contents)
}

/// Such deletions that stop before the content has its handle, before it is deleted, and before it has its driver.
async fn stopped_at_each_step() -> [(Bed, Vec<Value>); 3] {
    let status = |archived: &Value| Rule::on("patch").name(temporary(archived)).subresource("status");
    let deletes = |archived: &Value| Rule::on("delete").name(temporary(archived));
    [stopped(status).await, stopped(deletes).await, stopped(patches).await]
}

#[tokio::test]
async fn a_hidden_content_of_a_killed_process_is_taken_up_by_the_same_deletion() {
    for (bed, contents) in stopped_at_each_step().await {
        delete_well(&bed, &contents[1..], &backup("b1")).await;
        assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (0, 0));
    }
}

#[tokio::test]
async fn a_hidden_content_of_a_killed_process_is_taken_up_by_the_deletion_of_another_backup() {
    for (bed, _) in stopped_at_each_step().await {
        delete_namespace(&bed, &backup("b2")).await.unwrap();
        assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (0, 0));
    }
}

/// A hidden content for the snapshot of `archived` that only another's finalizer holds.
fn held_by_another(archived: &Value) -> Value {
    let backup = json!({"velero.io/backup-name": "b1", "velero.io/backup-uid": "uid-of-b1"});
    let mut held = content(&temporary(archived), archived, &backup, &json!([HOLD]));
    held["spec"]["driver"] = HIDDEN.into();
    held["spec"]["deletionPolicy"] = "Delete".into();
    held["metadata"]["annotations"] = json!({"csi-actions.velero-rs.io/driver": DRIVER});
    held
}

#[tokio::test]
async fn a_hidden_content_that_lost_its_hold_is_waited_for_and_proves_nothing() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["data"]).await;
    waits_until_it_goes_by_another_hand(&bed, &contents, held_by_another(&contents[0])).await;
}

#[tokio::test]
async fn a_hidden_content_that_lost_its_hold_is_no_matter_of_the_deletion_of_another_backup() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["data"]).await;
    bed.cluster.apply(held_by_another(&contents[0])).unwrap();
    bed.cluster.delete(CONTENTS, "", &temporary(&contents[0])).unwrap();
    delete_namespace(&bed, &backup("b2")).await.unwrap();
    assert_eq!(bed.list(CONTENTS).len(), 1);
}
