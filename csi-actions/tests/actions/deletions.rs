//! Deleting a backup: the snapshot goes from the storage, whatever the cluster looks like by then.

use std::time::Duration;

use crate::bed::{Bed, CONTENTS, DRIVER, SNAPSHOTS, backup, item, name, of, settings};
use cluster::Rule;
use cluster::simulator::{Fault, Settings as Pace};
use csi_actions::delete::volumesnapshotcontent::ContentDelete;
use csi_actions::settings::{AbsentDriver, Mode, Settings};
use serde_json::{Value, json};
use velero_plugin::backup::DeleteItemAction as _;

/// A finished backup of the claims: their contents as archived. Nothing of it is in the cluster.
pub(crate) async fn finished(bed: &Bed, backup: &Value, claims: &[&str]) -> Vec<Value> {
    let mut contents = Vec::new();
    for name in claims {
        let claim = bed.claim(name).await;
        let archived = bed.back_up(&claim, backup).await;
        bed.finished(archived.operation.as_ref().unwrap(), backup).await;
        contents.push(bed.finalize(&archived, backup).await);
    }
    bed.until("the cluster is empty", |bed| bed.list(CONTENTS).is_empty()).await;
    assert_eq!(bed.in_storage(), claims.len());
    contents
}

pub(crate) async fn delete_well(bed: &Bed, contents: &[Value], backup: &Value) {
    for result in bed.delete(&contents.iter().collect::<Vec<_>>(), backup).await {
        result.unwrap();
    }
}

#[tokio::test]
async fn i01_i05_a_slow_sidecar_deletes_the_snapshot_once_and_nothing_stays() {
    let pace = Pace { informer_lag: Duration::from_millis(1_500), ..Pace::default() };
    let bed = Bed::with(pace, "Delete").await;
    let contents = finished(&bed, &backup("b1"), &["data"]).await;
    let before = bed.driver().count("DeleteSnapshot");
    delete_well(&bed, &contents, &backup("b1")).await;
    assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (0, 0));
    assert!(bed.driver().count("DeleteSnapshot") > before);
    assert_eq!(bed.driver().read(|state| state.counters.snapshots_deleted), 1);
}

#[tokio::test]
async fn i02_snapshots_that_are_gone_from_the_storage_are_no_trouble() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["one", "two"]).await;
    bed.driver().change(|state| state.snapshots.clear());
    delete_well(&bed, &contents, &backup("b1")).await;
    assert!(bed.list(CONTENTS).is_empty());
}

#[tokio::test]
async fn i07_a_deletion_that_is_repeated_is_as_good_as_the_first_and_lists_once_per_process() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["one", "two"]).await;
    delete_well(&bed, &contents, &backup("b1")).await;
    bed.cluster.clear_requests();
    delete_well(&bed, &contents, &backup("b1")).await;
    assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (0, 0));
    let lists = bed
        .cluster
        .counts()
        .values()
        .filter_map(|counts| counts.get("list volumesnapshotcontents"))
        .sum::<usize>();
    assert_eq!(lists, 1, "{:?}", bed.cluster.counts());
}

#[tokio::test]
async fn i03_a_content_of_another_name_that_the_backup_left_is_used_and_removed() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["data"]).await;
    // As releases before 1.15 left it: static, under policy Retain.
    bed.cluster
        .apply(json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
            "metadata": {"name": "left-over", "labels": contents[0]["metadata"]["labels"]},
            "spec": {"driver": DRIVER, "deletionPolicy": "Retain",
                "source": {"snapshotHandle": contents[0]["status"]["snapshotHandle"]},
                "volumeSnapshotRef": {"namespace": "ns-1", "name": "name-1"}}}))
        .unwrap();
    bed.seen(CONTENTS, "", "left-over", |content| content["status"]["readyToUse"] == true).await;
    bed.cluster.clear_requests();
    delete_well(&bed, &contents, &backup("b1")).await;
    assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (0, 0));
    assert!(
        bed.cluster.counts().values().all(|counts| !counts.contains_key("create volumesnapshotcontents"))
    );
}

#[tokio::test]
async fn i04_a_content_that_is_bound_to_a_living_snapshot_of_the_backup_goes_with_it() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    // The backup failed before it was finalized: both objects are still there.
    let archived = bed.back_up(&claim, &backup("b1")).await;
    bed.finished(archived.operation.as_ref().unwrap(), &backup("b1")).await;
    let content = bed.get(CONTENTS, "", name(&archived.content)).unwrap();
    delete_well(&bed, &[content], &backup("b1")).await;
    bed.gone(SNAPSHOTS, "app", name(&archived.snapshot)).await;
    assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (0, 0));
}

#[tokio::test]
async fn i04_a_content_whose_snapshot_is_gone_does_not_stay_terminating() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["data"]).await;
    bed.cluster
        .apply(json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
            "metadata": {"name": "orphan", "labels": contents[0]["metadata"]["labels"]},
            "spec": {"driver": DRIVER, "deletionPolicy": "Retain", "source": {"volumeHandle": "v"},
                "volumeSnapshotRef": {"namespace": "app", "name": "long-gone", "uid": "u"}},
            "status": {"snapshotHandle": contents[0]["status"]["snapshotHandle"], "readyToUse": true}}))
        .unwrap();
    delete_well(&bed, &contents, &backup("b1")).await;
    assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (0, 0));
}

#[tokio::test]
async fn i06_without_the_driver_nothing_is_left_terminating_and_the_text_names_driver_and_handle() {
    let bed = Bed::new().await;
    let content = json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
        "metadata": {"name": "snapcontent-aa", "labels": {"velero.io/backup-name": "b1"}},
        "spec": {"driver": "absent.csi", "deletionPolicy": "Retain", "source": {"volumeHandle": "vol-1"}},
        "status": {"snapshotHandle": "snap-1"}});
    let error = bed.delete(&[&content], &backup("b1")).await.remove(0).unwrap_err().to_string();
    for part in ["snapcontent-aa", "absent.csi", "snap-1", "not installed"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    assert!(bed.list(CONTENTS).is_empty());
    let lenient = Settings { absent_driver: AbsentDriver::Warn, ..settings(Mode::Standalone) };
    ContentDelete::new(bed.environment_with(lenient))
        .execute(item(&content), of(&backup("b1")))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_snapshot_of_another_backup_is_never_deleted() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["data"]).await;
    bed.cluster.clear_requests();
    delete_well(&bed, &contents, &backup("b2")).await;
    assert_eq!(bed.in_storage(), 1);
    assert!(bed.cluster.requests().is_empty());
}

#[tokio::test]
async fn an_archive_without_a_handle_has_nothing_to_delete() {
    let bed = Bed::new().await;
    let mut contents = finished(&bed, &backup("b1"), &["data"]).await;
    contents[0]["status"] = Value::Null;
    bed.cluster.clear_requests();
    delete_well(&bed, &contents, &backup("b1")).await;
    assert!(bed.cluster.requests().is_empty());
}

#[tokio::test]
async fn a_restored_content_is_not_used_and_goes_after_the_snapshot() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["data"]).await;
    let mut labels = contents[0]["metadata"]["labels"].clone();
    labels["velero.io/restore-name"] = "r1".into();
    let restored = |name: &str, snapshot: &str| {
        json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
            "metadata": {"name": name, "labels": labels},
            "spec": {"driver": DRIVER, "deletionPolicy": "Retain",
                "source": {"snapshotHandle": contents[0]["status"]["snapshotHandle"]},
                "volumeSnapshotRef": {"namespace": "app", "name": snapshot}}})
    };
    bed.cluster.apply(restored("restored-lives", "restored")).unwrap();
    bed.cluster.apply(restored("restored-orphan", "gone")).unwrap();
    bed.cluster
        .apply(json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
            "metadata": {"namespace": "app", "name": "restored", "labels": labels},
            "spec": {"source": {"volumeSnapshotContentName": "restored-lives"}}}))
        .unwrap();
    bed.seen(SNAPSHOTS, "app", "restored", |snapshot| snapshot["status"]["readyToUse"] == true).await;
    bed.seen(CONTENTS, "", "restored-orphan", |content| content["status"]["readyToUse"] == true).await;

    delete_well(&bed, &contents, &backup("b1")).await;
    assert_eq!(bed.in_storage(), 0);
    bed.gone(CONTENTS, "", "restored-orphan").await;
    let lives = bed.get(CONTENTS, "", "restored-lives").unwrap();
    assert_eq!(lives["spec"]["deletionPolicy"], "Delete", "it goes with its snapshot");
    bed.cluster.delete(SNAPSHOTS, "app", "restored").unwrap();
    bed.gone(CONTENTS, "", "restored-lives").await;
}

#[tokio::test]
async fn trouble_of_the_api_server_is_waited_out_since_velero_never_asks_again() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["one", "two"]).await;
    let once = |verb| Rule::on(verb).resource("volumesnapshotcontents").times(1);
    // A sidecar that says nothing of the new content is not waited for, and the handle is written without it.
    bed.driver().order(Fault::on("ListSnapshots").latency(Duration::from_secs(4)).times(1)).unwrap();
    let busy = vec![once("list").throttle(1), once("patch").subresource("status").fail(409)];
    let cut = vec![once("create").close().after_effect(), once("delete").close().after_effect()];
    for (content, rules) in [(&contents[0], busy), (&contents[1], cut)] {
        bed.cluster.clear_requests();
        bed.order(rules);
        delete_well(&bed, std::slice::from_ref(content), &backup("b1")).await;
        assert_eq!(bed.hits(), 2);
    }
    assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (0, 0));
}

#[tokio::test]
async fn a_request_that_is_forbidden_fails_with_what_is_left_and_what_to_do() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["data"]).await;
    bed.order([Rule::on("create").resource("volumesnapshotcontents").fail(403)]);
    let error = bed.delete(&[&contents[0]], &backup("b1")).await.remove(0).unwrap_err().to_string();
    let handle = contents[0]["status"]["snapshotHandle"].as_str().unwrap();
    for part in [name(&contents[0]), handle, DRIVER, "delete it there by its handle"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    assert_eq!(bed.hits(), 1, "what is final is not tried again");
    assert_eq!(bed.in_storage(), 1);
}

#[tokio::test]
async fn a_driver_that_needs_a_few_attempts_is_waited_for() {
    let bed = Bed::new().await;
    let contents = finished(&bed, &backup("b1"), &["data"]).await;
    bed.driver().order(Fault::on("DeleteSnapshot").error(tonic::Code::Unavailable, "busy").times(2)).unwrap();
    delete_well(&bed, &contents, &backup("b1")).await;
    assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (0, 0));
}
