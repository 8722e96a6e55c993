//! Requests to an API server that does not answer, asks for more time than there is, or was asked by another at the same
//! moment.

use std::time::Duration;

use crate::bed::{Bed, SAFE, backup};
use cluster::simulator::Fault;
use cluster::{Rule, StatusAnswer};
use csi_actions::cluster::resource::{CLASSES, CONTENTS};
use csi_actions::cluster::{ApiError, Reason};

const PATIENCE: Duration = Duration::from_secs(2);

/// How a patient request for a content ends, and how often it was sent.
async fn asked(rule: Rule) -> (ApiError, usize) {
    let bed = Bed::new().await;
    bed.order([rule]);
    bed.cluster.clear_requests();
    let cluster = bed.environment().cluster.patient(PATIENCE);
    let asked = tokio::time::timeout(SAFE, cluster.find(CONTENTS, "", "c"));
    let error = asked.await.expect("it must end by itself").unwrap_err();
    (error, bed.hits())
}

#[tokio::test]
async fn an_api_server_that_never_answers_is_not_asked_again_once_the_patience_is_over() {
    let (error, attempts) = asked(Rule::on("get").resource("volumesnapshotcontents").hang()).await;
    assert_eq!((error.reason, attempts), (Reason::TimedOut, 1), "{error}");
}

#[tokio::test]
async fn a_wait_that_the_api_server_asks_for_never_goes_beyond_the_patience() {
    let (error, attempts) = asked(Rule::on("get").resource("volumesnapshotcontents").throttle(3600)).await;
    assert_eq!((error.reason, attempts), (Reason::Busy, 1), "{error}");
}

#[tokio::test]
async fn i22_i59_the_snapshot_of_a_claim_costs_seven_requests_and_no_polling() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    // Slow enough that anything that asks again would be seen.
    let slow = Fault::on("CreateSnapshot").latency(Duration::from_secs(3));
    bed.driver().order(slow).unwrap();
    bed.cluster.clear_requests();
    bed.back_up(&claim, &backup("b1")).await;
    let counts = bed.cluster.counts();
    // The Event is written beside the backup, at any time.
    let all = counts.values().flatten().map(|(what, count)| (what.as_str(), *count));
    let of_ours: Vec<(&str, usize)> = all.filter(|(what, _)| *what != "create events").collect();
    let expected = [
        "create volumesnapshots",
        "get persistentvolumes",
        "list pods",
        "list volumesnapshotclasses",
        "patch volumesnapshotcontents",
        "watch volumesnapshotcontents",
        "watch volumesnapshots",
    ];
    assert_eq!(of_ours, expected.map(|what| (what, 1)));
}

/// What a rule answers that meets a request as another writer does.
fn another_writer(verb: &str, resource: &str) -> Rule {
    let message =
        Some("the object has been modified; please apply your changes to the latest version".to_owned());
    let conflict =
        StatusAnswer { code: 409, reason: Some("Conflict".to_owned()), message, retry_after_s: None };
    Rule::on(verb).resource(resource).times(1).fail_with(conflict)
}

#[tokio::test]
async fn a_deletion_that_meets_another_writer_is_tried_again_and_one_of_another_object_never() {
    let bed = Bed::new().await;
    let cluster = bed.environment().cluster.patient(PATIENCE);
    let class = bed.get("volumesnapshotclasses.snapshot.storage.k8s.io", "", "snap").unwrap();
    let uid = class["metadata"]["uid"].as_str().unwrap();
    let other = cluster.delete(CLASSES, "", "snap", "another").await.unwrap_err();
    assert_eq!(other.reason, Reason::Conflict);
    bed.order([another_writer("delete", "volumesnapshotclasses")]);
    cluster.delete(CLASSES, "", "snap", uid).await.unwrap();
    assert!(bed.get("volumesnapshotclasses.snapshot.storage.k8s.io", "", "snap").is_none());
    // No action deletes a class, so it is in no list of rights; here it is just an object.
    bed.cluster.clear_requests();
}

#[tokio::test]
async fn a_creation_that_meets_another_writer_of_a_quota_is_tried_again() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    bed.order([another_writer("create", "volumesnapshots")]);
    bed.back_up_claim(&claim, &backup("b1")).await.unwrap();
    assert_eq!((bed.hits(), bed.in_storage()), (1, 1));
}

#[tokio::test]
async fn a_process_asks_once_for_the_versions_of_an_api_group_that_is_served() {
    const GROUP: &str = "groupsnapshot.storage.k8s.io";
    let bed = Bed::new().await;
    let cluster = bed.environment().cluster.clone();
    let first = cluster.versions(GROUP).await.unwrap();
    let again = cluster.patient(PATIENCE).versions(GROUP).await.unwrap();
    assert!(first.is_some());
    assert_eq!(first, again);
    let requests = bed.cluster.requests();
    let asked = requests.iter().filter(|request| request.info.path == format!("/apis/{GROUP}"));
    assert_eq!(asked.count(), 1);
}
