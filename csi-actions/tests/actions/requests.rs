//! Requests to an API server that does not answer, or asks for more time than there is.

use std::time::Duration;

use crate::bed::{Bed, SAFE, backup};
use cluster::Rule;
use cluster::simulator::Fault;
use csi_actions::cluster::resource::CONTENTS;
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
async fn i59_the_snapshot_of_a_claim_costs_eight_requests_and_no_polling() {
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
        "patch volumesnapshots",
        "watch volumesnapshotcontents",
        "watch volumesnapshots",
    ];
    assert_eq!(of_ours, expected.map(|what| (what, 1)));
}
