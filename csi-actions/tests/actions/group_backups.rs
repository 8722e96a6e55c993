//! Claims of a group: one cut for all of them, each with its own operation, and the group gone from the cluster in the end.

use crate::bed::{Bed, CLAIMS, CONTENTS, SNAPSHOTS, backup, item, name, of};
use crate::deletions::delete_well;
use crate::grouped::{GROUP_CONTENTS, GROUPS, LABEL, grouped, of_groups};
use crate::own_label::is_ours_alone;
use crate::restoring::{Archive, Restoring, restore};
use cluster::Rule;
use cluster::simulator::{Fault, Readiness};
use csi_actions::backup::persistentvolumeclaim::ClaimBackup;
use serde_json::json;
use tonic::Code;
use velero_plugin::backup::BackupItemActionV2 as _;

/// Groups that were cut, and how often the driver was asked for a snapshot outside of them.
fn cuts(bed: &Bed) -> (u64, usize) {
    (bed.driver().read(|state| state.counters.groups_created), bed.driver().count("CreateSnapshot"))
}

#[tokio::test]
async fn i24_three_claims_of_a_group_are_cut_at_once_and_deleted_at_once() {
    let bed = Bed::new().await;
    let (backup, claims) = grouped(&bed, &["one", "two", "three"]).await;
    bed.claim("alone").await;
    let mut archived = Vec::new();
    for claim in &claims {
        archived.push(bed.back_up(claim, &backup).await);
    }
    assert_eq!(cuts(&bed), (1, 0));
    let mut contents = Vec::new();
    for each in &archived {
        assert_eq!(bed.finished(each.operation.as_ref().unwrap(), &backup).await.failure(), None);
        assert_eq!(each.snapshot["spec"]["source"]["persistentVolumeClaimName"], name(&each.claim));
        assert_eq!(each.snapshot["metadata"]["labels"]["velero.io/backup-name"], "b1");
        let members =
            each.content["metadata"]["annotations"]["csi-actions.velero-rs.io/group-members"].as_str();
        let members: Vec<String> = serde_json::from_str(members.unwrap()).unwrap();
        assert_eq!(members.len(), 3, "{members:?}");
    }
    for each in &archived {
        contents.push(bed.finalize(each, &backup).await);
    }
    for content in archived.iter().map(|each| &each.content).chain(&contents) {
        assert!(
            is_ours_alone(content),
            "Velero's own delete action is to stay away: {}",
            content["metadata"]
        );
    }
    bed.no_group_objects().await;
    assert_eq!(bed.stored(), (1, 3), "the backup's data is in the storage only");
    delete_well(&bed, &contents, &backup).await;
    assert_eq!(bed.stored(), (0, 0));
    assert_eq!(bed.driver().count("DeleteVolumeGroupSnapshot"), 1);
    bed.no_group_objects().await;
}

#[tokio::test]
async fn members_that_are_not_ready_at_once_are_waited_for_and_never_cut_twice() {
    let bed = Bed::new().await;
    // A snapshot that lost its group would be taken for one of its own, with the default class.
    let default =
        json!({"metadata": {"annotations": {"snapshot.storage.kubernetes.io/is-default-class": "true"}}});
    bed.cluster.patch("volumesnapshotclasses.snapshot.storage.k8s.io", "", "snap", &default).unwrap();
    let (backup, claims) = grouped(&bed, &["one", "two"]).await;
    bed.driver().order(Fault::on("CreateVolumeGroupSnapshot").never_ready()).unwrap();
    let mut archived = Vec::new();
    for claim in &claims {
        let each = bed.back_up(claim, &backup).await;
        assert!(bed.poll(each.operation.as_ref().unwrap(), &backup).await.is_running());
        let content = bed.get(CONTENTS, "", name(&each.content)).unwrap();
        let touched = &content["metadata"]["annotations"]["csi-actions.velero-rs.io/nudge"];
        assert!(
            touched.is_string(),
            "the sidecar looks at a member that was not ready only when it is touched"
        );
        archived.push(each);
    }
    bed.driver().change(|state| {
        state.snapshots.values_mut().for_each(|member| member.ready = Readiness::At(member.created));
    });
    for each in &archived {
        assert_eq!(bed.finished(each.operation.as_ref().unwrap(), &backup).await.failure(), None);
    }
    for each in &archived {
        bed.finalize(each, &backup).await;
    }
    bed.no_group_objects().await;
    assert_eq!((cuts(&bed), bed.stored()), ((1, 0), (1, 2)));
}

#[tokio::test]
async fn i25_a_group_that_is_asked_for_again_by_a_new_process_is_cut_once() {
    let bed = Bed::new().await;
    let (backup, claims) = grouped(&bed, &["one", "two"]).await;
    bed.order([Rule::on("create").resource("volumegroupsnapshots").times(1).close().after_effect()]);
    for claim in [&claims[0], &claims[0], &claims[1]] {
        let outcome = bed.back_up_claim(claim, &backup).await.unwrap();
        assert_eq!(outcome.changes().additional_items().len(), 1);
    }
    assert_eq!((bed.hits(), bed.list(GROUPS).len(), cuts(&bed)), (1, 1, (1, 0)));
    let (one, two) =
        tokio::join!(bed.back_up_claim(&claims[0], &backup), bed.back_up_claim(&claims[1], &backup));
    assert!(one.is_ok() && two.is_ok());
    assert_eq!((bed.list(GROUPS).len(), bed.stored()), (1, (1, 2)));
}

#[tokio::test]
async fn i36_a_member_that_the_backup_does_not_want_holds_nobody_up() {
    let bed = Bed::new().await;
    let (backup, claims) = grouped(&bed, &["one", "two", "unwanted"]).await;
    // The server leaves the third out, so the action never hears of it; the storage cuts it all the same.
    let mut archived = Vec::new();
    for claim in &claims[..2] {
        archived.push(bed.back_up(claim, &backup).await);
    }
    let mut contents = Vec::new();
    for each in &archived {
        bed.finished(each.operation.as_ref().unwrap(), &backup).await;
    }
    for each in &archived {
        contents.push(bed.finalize(each, &backup).await);
    }
    bed.no_group_objects().await;
    assert_eq!(bed.stored(), (1, 3));
    delete_well(&bed, &contents, &backup).await;
    assert_eq!(bed.stored(), (0, 0), "the third goes with its group");
}

#[tokio::test]
async fn a_server_that_names_no_label_has_each_claim_cut_by_itself() {
    let bed = Bed::new().await;
    let (_, claims) = grouped(&bed, &["one", "two"]).await;
    for claim in &claims {
        bed.back_up_claim(claim, &backup("b1")).await.unwrap();
    }
    assert_eq!((cuts(&bed), bed.list(GROUPS).len()), ((0, 2), 0));
}

#[tokio::test]
async fn i18_a_driver_that_refuses_the_group_fails_each_member_once_and_leaves_nothing() {
    let bed = Bed::new().await;
    let (backup, claims) = grouped(&bed, &["one", "two"]).await;
    let limit = "group limit reached";
    bed.driver()
        .order(Fault::on("CreateVolumeGroupSnapshot").error(Code::FailedPrecondition, limit))
        .unwrap();
    let action = ClaimBackup::new(bed.environment());
    for claim in &claims {
        let error = action.execute(item(claim), of(&backup)).await.unwrap_err().to_string();
        for part in [limit, "VolumeGroupSnapshot velero-db-", name(claim)] {
            assert!(error.contains(part), "{part} in {error}");
        }
    }
    bed.no_group_objects().await;
    assert_eq!(bed.stored(), (0, 0));
}

#[tokio::test]
async fn c40_a_group_that_is_not_cut_in_time_is_removed() {
    let bed = Bed::new().await;
    let (mut backup, claims) = grouped(&bed, &["one"]).await;
    backup["spec"]["csiSnapshotTimeout"] = "1s".into();
    let down = Fault::on("CreateVolumeGroupSnapshot").error(Code::Unavailable, "storage is down").id("down");
    bed.driver().order(down).unwrap();
    let error = bed.back_up_claim(&claims[0], &backup).await.unwrap_err().to_string();
    // The sidecar finishes what it has begun, and takes it away then.
    assert!(bed.driver().faults().remove("down"));
    for part in ["csiSnapshotTimeout", "storage is down"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    bed.until("nothing is left", |bed| {
        bed.list(GROUPS).is_empty() && bed.list(GROUP_CONTENTS).is_empty() && bed.stored() == (0, 0)
    })
    .await;
}

#[tokio::test]
async fn a_group_with_a_claim_that_cannot_be_cut_is_not_asked_for() {
    let bed = Bed::new().await;
    let (backup, claims) = grouped(&bed, &["one"]).await;
    bed.cluster
        .apply(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"namespace": "app", "name": "waiting", "labels": {LABEL: "db"}},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none",
                "resources": {"requests": {"storage": "1Mi"}}}}))
        .unwrap();
    let error = bed.back_up_claim(&claims[0], &backup).await.unwrap_err().to_string();
    assert!(error.contains("waiting") && error.contains("bound to no volume"), "{error}");
    assert!(bed.list(GROUPS).is_empty());
}

#[tokio::test]
async fn a_cluster_without_the_api_of_groups_fails_the_claim_by_name() {
    let bed = Bed::new().await;
    let (backup, claims) = grouped(&bed, &["one"]).await;
    bed.order([Rule::on("get").path("/apis/groupsnapshot.storage.k8s.io").fail(404)]);
    let error = bed.back_up_claim(&claims[0], &backup).await.unwrap_err().to_string();
    assert!(error.contains("groupsnapshot.storage.k8s.io"), "{error}");
    assert!(bed.list(SNAPSHOTS).is_empty(), "no snapshot that is not of one moment with the others");
}

#[tokio::test]
async fn i10_a_backup_that_was_never_finalized_is_deleted_with_its_group() {
    let bed = Bed::new().await;
    let (backup, claims) = grouped(&bed, &["one", "two"]).await;
    let mut contents = Vec::new();
    for claim in &claims {
        contents.push(bed.back_up(claim, &backup).await.content);
    }
    assert_eq!((bed.list(GROUPS).len(), bed.list(CONTENTS).len()), (1, 2));
    delete_well(&bed, &contents, &backup).await;
    assert_eq!(bed.stored(), (0, 0));
    bed.no_group_objects().await;
}

#[tokio::test]
async fn i20_the_group_of_another_backup_is_left_alone() {
    let bed = Bed::new().await;
    let (first, claims) = grouped(&bed, &["one"]).await;
    let one = bed.back_up(&claims[0], &first).await;
    let two = bed.back_up(&claims[0], &of_groups("b2")).await;
    assert_eq!((cuts(&bed), bed.list(GROUPS).len()), ((2, 0), 2));
    bed.finished(one.operation.as_ref().unwrap(), &first).await;
    let content = bed.finalize(&one, &first).await;
    bed.until("only the other is left", |bed| bed.list(GROUPS).len() == 1 && bed.list(CONTENTS).len() == 1)
        .await;
    delete_well(&bed, &[content], &first).await;
    assert_eq!(bed.stored(), (1, 1));
    assert_eq!(bed.get(SNAPSHOTS, "app", name(&two.snapshot)).unwrap()["status"]["readyToUse"], true);
}

#[tokio::test]
async fn i08_members_are_restored_beside_the_original_and_deleted_with_their_group() {
    let bed = Bed::new().await;
    let (backup, claims) = grouped(&bed, &["one", "two"]).await;
    let mut archived = Vec::new();
    for claim in &claims {
        archived.push(bed.back_up(claim, &backup).await);
    }
    let mut archive = Archive::default();
    let mut contents = Vec::new();
    for each in &archived {
        bed.finished(each.operation.as_ref().unwrap(), &backup).await;
    }
    for each in &archived {
        let content = bed.finalize(each, &backup).await;
        archive = archive.with(CLAIMS, &each.claim).with(SNAPSHOTS, &each.snapshot).with(CONTENTS, &content);
        contents.push(content);
    }
    bed.no_group_objects().await;

    // The snapshot controller calls no member ready whose group it does not find.
    let spec = json!({"namespaceMapping": {"app": "copy"}});
    let restoring = Restoring::new(&bed, archive, restore("r1", spec)).run().await;
    assert_eq!((&restoring.errors, &restoring.warnings), (&Vec::new(), &Vec::new()));
    for claim in &claims {
        bed.seen(CLAIMS, "copy", name(claim), |claim| claim["status"]["phase"] == "Bound").await;
    }
    let stubs = bed.list(GROUP_CONTENTS);
    assert_eq!(stubs.len(), 1, "one for both: {stubs:?}");
    assert_eq!(stubs[0]["spec"]["deletionPolicy"], "Retain");

    delete_well(&bed, &contents, &backup).await;
    assert_eq!(bed.stored(), (0, 0));
    assert!(bed.list(GROUP_CONTENTS).is_empty(), "the stub stands for nothing now");
    for snapshot in bed.list(SNAPSHOTS) {
        bed.cluster.delete(SNAPSHOTS, "copy", name(&snapshot)).unwrap();
    }
    bed.no_group_objects().await;
}
