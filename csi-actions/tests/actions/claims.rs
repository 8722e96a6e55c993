//! Claims that get no snapshot, and snapshots that fail: nothing may be left of them.

use crate::bed::{Bed, CONTENTS, SNAPSHOTS, backup, is_untouched, item, name, of};
use cluster::simulator::{Fault, Settings as Pace};
use cluster::{Rule, StatusAnswer};
use csi_actions::backup::persistentvolumeclaim::ClaimBackup;
use csi_actions::backup::volumesnapshot::SnapshotBackup;
use csi_actions::settings::Mode;
use serde_json::{Value, json};
use tonic::Code;
use velero_plugin::backup::BackupItemActionV2 as _;

fn volume(name: &str, source: &Value) -> Value {
    let mut volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}});
    volume["spec"].as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
    volume
}

fn bound_claim(volume: &str, class: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "static", "namespace": "app", "uid": "claim-1"},
        "spec": {"volumeName": volume, "storageClassName": class, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}, "status": {"phase": "Bound"}})
}

#[tokio::test]
async fn c06_a_volume_without_a_driver_is_archived_as_it_is_also_without_a_storage_class() {
    let bed = Bed::new().await;
    bed.cluster.apply(volume("nfs", &json!({"nfs": {"server": "s", "path": "/p"}}))).unwrap();
    for class in [json!(null), json!("")] {
        let outcome = bed.back_up_claim(&bound_claim("nfs", &class), &backup("b1")).await.unwrap();
        assert!(is_untouched(&outcome), "no marker either: it would be restored");
    }
    assert!(bed.list(SNAPSHOTS).is_empty());
}

#[tokio::test]
async fn c04_c06_i31_a_static_volume_without_a_storage_class_is_snapshotted_by_its_driver() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    let mut without_class = claim.clone();
    without_class["spec"]["storageClassName"] = Value::Null;
    let outcome = bed.back_up_claim(&without_class, &backup("b1")).await.unwrap();
    assert_eq!(outcome.changes().additional_items().len(), 1);
    assert_eq!(bed.list(SNAPSHOTS)[0]["spec"]["volumeSnapshotClassName"], "snap");
}

#[tokio::test]
async fn c05_i33_missing_snapshot_crds_fail_the_claim_with_their_name_and_other_claims_pass() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    bed.cluster.apply(volume("nfs", &json!({"nfs": {"server": "s", "path": "/p"}}))).unwrap();
    bed.order([Rule::on("list").resource("volumesnapshotclasses").fail(404)]);
    let action = ClaimBackup::new(bed.environment());
    let error = action.execute(item(&claim), of(&backup("b1"))).await.unwrap_err().to_string();
    for part in ["app/data", "volumesnapshotclasses", "CustomResourceDefinition is missing"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    let other = action.execute(item(&bound_claim("nfs", &json!(null))), of(&backup("b1"))).await.unwrap();
    assert!(is_untouched(&other));
}

#[tokio::test]
async fn c46_beside_velero_s_own_action_nothing_is_snapshotted_twice() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    let alongside = ClaimBackup::new(bed.environment_in(Mode::Alongside));
    assert!(is_untouched(&alongside.execute(item(&claim), of(&backup("b1"))).await.unwrap()));

    // Whatever the mode: the claim comes with the mark of an action that ran before, and its snapshot exists.
    let archived = bed.back_up(&claim, &backup("b1")).await;
    let again = bed.back_up_claim(&archived.claim, &backup("b1")).await.unwrap();
    assert!(is_untouched(&again));
    assert_eq!(bed.list(SNAPSHOTS).len(), 1);
}

#[tokio::test]
async fn a_mark_that_a_restored_claim_still_carries_does_not_keep_it_from_being_snapshotted() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    let old = bed.back_up(&claim, &backup("b1")).await;
    let outcome = bed.back_up_claim(&old.claim, &backup("b2")).await.unwrap();
    assert_eq!(outcome.changes().additional_items().len(), 1);
    assert_eq!(bed.list(SNAPSHOTS).len(), 2);
}

#[tokio::test]
async fn c44_i32_pending_claims_and_backups_without_snapshots_touch_nothing() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    let mut pending = claim.clone();
    pending["status"]["phase"] = "Pending".into();
    let mut without = backup("b1");
    without["spec"]["snapshotVolumes"] = false.into();
    let mut moved = backup("b1");
    moved["spec"]["snapshotMoveData"] = true.into();
    bed.cluster.clear_requests();
    for (claim, backup) in [(&pending, &backup("b1")), (&claim, &without), (&claim, &moved)] {
        assert!(is_untouched(&bed.back_up_claim(claim, backup).await.unwrap()));
    }
    assert!(bed.cluster.requests().is_empty());
}

#[tokio::test]
async fn c40_i11_a_snapshot_that_is_not_cut_in_time_is_removed_also_under_policy_retain() {
    let bed = Bed::with(Pace::default(), "Retain").await;
    let claim = bed.claim("data").await;
    bed.driver()
        .order(Fault::on("CreateSnapshot").error(Code::Unavailable, "storage is down").times(5))
        .unwrap();
    let mut impatient = backup("b1");
    impatient["spec"]["csiSnapshotTimeout"] = "1s".into();
    let error = bed.back_up_claim(&claim, &impatient).await.unwrap_err().to_string();
    for part in ["app/data", "csiSnapshotTimeout", "storage is down"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    bed.until("everything is gone", |bed| {
        bed.list(SNAPSHOTS).is_empty() && bed.list(CONTENTS).is_empty() && bed.in_storage() == 0
    })
    .await;
}

#[tokio::test]
async fn only_where_a_snapshot_controller_was_at_work_does_a_snapshot_come_with_its_finalizers() {
    let mut bed = Bed::new().await;
    let [data, index, logs] = [bed.claim("data").await, bed.claim("index").await, bed.claim("logs").await];
    let mut impatient = backup("b1");
    impatient["spec"]["csiSnapshotTimeout"] = "1s".into();

    let action = ClaimBackup::new(bed.environment());
    action.execute(item(&data), of(&backup("b1"))).await.unwrap();
    let first: Vec<_> = bed.list(SNAPSHOTS).iter().map(|snapshot| name(snapshot).to_owned()).collect();
    bed.stop_controllers();
    let held = action.execute(item(&index), of(&impatient)).await.unwrap_err().to_string();
    // A process that has seen no controller leaves nothing behind that only a controller could take away.
    bed.back_up_claim(&logs, &impatient).await.unwrap_err();

    let left: Vec<_> = bed
        .list(SNAPSHOTS)
        .into_iter()
        .filter(|snapshot| !first.contains(&name(snapshot).to_owned()))
        .collect();
    assert_eq!(left.len(), 1, "{left:#?}");
    assert!(held.contains(name(&left[0])) && held.contains("still being removed"), "{held}");
    assert_eq!(
        left[0]["metadata"]["finalizers"],
        json!([
            "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection",
            "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"
        ])
    );
    bed.start_controllers();
    bed.gone(SNAPSHOTS, "app", name(&left[0])).await;
    assert_eq!(bed.in_storage(), 0);
}

#[tokio::test]
async fn i18_a_driver_that_refuses_fails_the_claim_long_before_the_timeout() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    let limit = "snapshot limit reached: the configured maximum (3)";
    bed.driver().order(Fault::on("CreateSnapshot").error(Code::FailedPrecondition, limit)).unwrap();
    let mut patient = backup("b1");
    patient["spec"]["csiSnapshotTimeout"] = "10m".into();
    let error = tokio::time::timeout(crate::bed::SAFE, bed.back_up_claim(&claim, &patient))
        .await
        .unwrap()
        .unwrap_err();
    assert!(error.to_string().contains(limit), "{error}");
    bed.until("everything is gone", |bed| bed.list(SNAPSHOTS).is_empty() && bed.list(CONTENTS).is_empty())
        .await;
}

#[tokio::test]
async fn c40_a_step_that_fails_after_the_cut_removes_the_snapshot_from_the_storage() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    let outcome = bed.back_up_claim(&claim, &backup("b1")).await.unwrap();
    let snapshot = bed.additional(&outcome, "volumesnapshots");
    assert_eq!(bed.in_storage(), 1);
    bed.order([Rule::on("patch").resource("volumesnapshotcontents").times(1).fail(403)]);
    let error =
        SnapshotBackup::new(bed.environment()).execute(item(&snapshot), of(&backup("b1"))).await.unwrap_err();
    assert!(error.to_string().contains(name(&snapshot)), "{error}");
    assert_eq!(bed.hits(), 1);
    bed.until("everything is gone", |bed| bed.in_storage() == 0 && bed.list(CONTENTS).is_empty()).await;
}

#[tokio::test]
async fn i34_a_quota_that_forbids_the_snapshot_fails_the_item_in_its_own_words_and_leaves_nothing() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    let said = "volumesnapshots.snapshot.storage.k8s.io \"s\" is forbidden: exceeded quota: few, used: \
                count/volumesnapshots.snapshot.storage.k8s.io=2, limited: count/volumesnapshots.snapshot.storage.k8s.io=2";
    let forbidden = StatusAnswer {
        code: 403,
        reason: Some("Forbidden".to_owned()),
        message: Some(said.to_owned()),
        retry_after_s: None,
    };
    bed.order([Rule::on("create").resource("volumesnapshots").fail_with(forbidden)]);
    let error = bed.back_up_claim(&claim, &backup("b1")).await.unwrap_err().to_string();
    for part in ["app/data", said] {
        assert!(error.contains(part), "{part} in {error}");
    }
    assert_eq!(bed.hits(), 1, "what is final is not tried again");
    assert_eq!((bed.in_storage(), bed.list(SNAPSHOTS).len(), bed.list(CONTENTS).len()), (0, 0, 0));
    // No old version of the API is asked for, which an admission webhook may refuse.
    let made =
        bed.cluster.requests().into_iter().filter(|request| request.info.resource == "volumesnapshots");
    assert!(
        made.into_iter().all(|request| request.info.path.starts_with("/apis/snapshot.storage.k8s.io/v1/"))
    );
}

#[tokio::test]
async fn an_answer_that_is_lost_after_the_snapshot_was_created_makes_no_second_one() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    bed.order([Rule::on("create").resource("volumesnapshots").times(1).close().after_effect()]);
    let outcome = ClaimBackup::new(bed.environment()).execute(item(&claim), of(&backup("b1"))).await.unwrap();
    assert_eq!(outcome.changes().additional_items().len(), 1);
    assert_eq!((bed.hits(), bed.list(SNAPSHOTS).len()), (1, 1));
}

#[tokio::test]
async fn busy_answers_are_waited_out() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    let busy = |verb, resource| Rule::on(verb).resource(resource).times(2);
    bed.order([
        busy("get", "persistentvolumes").throttle(1),
        busy("list", "volumesnapshotclasses").fail(503),
        busy("create", "volumesnapshots").fail(500),
    ]);
    ClaimBackup::new(bed.environment()).execute(item(&claim), of(&backup("b1"))).await.unwrap();
    assert_eq!(bed.hits(), 6);
}

#[tokio::test]
async fn a_snapshot_that_was_not_taken_by_the_backup_is_archived_as_it_is() {
    let bed = Bed::new().await;
    bed.claim("data").await;
    bed.cluster
        .apply(json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
            "metadata": {"namespace": "app", "name": "users-own", "labels": {"velero.io/backup-name": "b1"}},
            "spec": {"source": {"persistentVolumeClaimName": "data"}, "volumeSnapshotClassName": "snap"}}))
        .unwrap();
    let ready = |snapshot: &Value| snapshot["status"]["readyToUse"] == true;
    let snapshot = bed.seen(SNAPSHOTS, "app", "users-own", ready).await;
    for phase in ["InProgress", "Finalizing"] {
        let mut backup = backup("b1");
        backup["status"]["phase"] = phase.into();
        bed.cluster.clear_requests();
        let outcome =
            SnapshotBackup::new(bed.environment()).execute(item(&snapshot), of(&backup)).await.unwrap();
        assert!(is_untouched(&outcome), "{phase}");
        assert!(bed.cluster.requests().is_empty());
    }
}
