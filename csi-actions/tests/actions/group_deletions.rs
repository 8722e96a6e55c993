//! Deleting backups that hold groups of snapshots, which a driver deletes as a whole only.

use std::time::Duration;

use crate::bed::{Bed, CONTENTS, DRIVER, backup, item, name, of};
use crate::deletions::delete_well;
use crate::grouped::{GROUP_CONTENTS, grouped, with_members};
use cluster::Rule;
use csi_actions::delete::Patience;
use csi_actions::delete::volumesnapshotcontent::ContentDelete;
use serde_json::{Value, json};
use velero_plugin::backup::DeleteItemAction as _;

#[tokio::test]
async fn i08_the_first_member_takes_the_whole_group_along() {
    let bed = Bed::new().await;
    let contents = with_members(bed.archived_group(&["one", "two", "three"]).await);
    delete_well(&bed, &contents, &backup("b1")).await;
    assert_eq!(bed.stored(), (0, 0));
    assert_eq!(bed.driver().count("DeleteVolumeGroupSnapshot"), 1);
    assert_eq!(bed.driver().count("DeleteSnapshot"), 0, "members are never deleted one by one");
    bed.no_group_objects().await;
}

#[tokio::test]
async fn i07_i08_a_group_that_is_deleted_again_is_as_good_as_the_first_time() {
    let bed = Bed::new().await;
    let contents = with_members(bed.archived_group(&["one", "two"]).await);
    delete_well(&bed, &contents, &backup("b1")).await;
    delete_well(&bed, &contents, &backup("b1")).await;
    assert_eq!(bed.stored(), (0, 0));
    bed.no_group_objects().await;
}

#[tokio::test]
async fn i08_a_group_whose_members_the_archive_does_not_tell_goes_with_the_last_of_them() {
    let bed = Bed::new().await;
    let contents = bed.archived_group(&["one", "two", "three"]).await;
    let patience = Patience { first: Duration::from_secs(30), later: Duration::from_millis(200) };
    let action = ContentDelete::new(bed.environment()).with_patience(patience);
    for content in &contents[..2] {
        action.execute(item(content), of(&backup("b1"))).await.unwrap();
        assert_eq!(bed.stored(), (1, 3), "the driver refuses a part of a group");
    }
    action.execute(item(&contents[2]), of(&backup("b1"))).await.unwrap();
    bed.until("the group is gone", |bed| bed.stored() == (0, 0)).await;
    bed.no_group_objects().await;
}

#[tokio::test]
async fn a_deletion_that_was_cut_short_is_taken_up_again() {
    let bed = Bed::new().await;
    let contents = with_members(bed.archived_group(&["one", "two"]).await);
    // The content is made, but nothing after that works, as if the process had ended.
    bed.order([Rule::on("delete").resource("volumegroupsnapshotcontents").times(1).fail(403)]);
    let error = bed.delete(&[&contents[0]], &backup("b1")).await.remove(0).unwrap_err();
    assert!(error.to_string().contains("still in the storage"), "{error}");
    assert_eq!((bed.list(GROUP_CONTENTS).len(), bed.stored()), (1, (1, 2)));
    delete_well(&bed, &contents, &backup("b1")).await;
    assert_eq!(bed.stored(), (0, 0));
    bed.no_group_objects().await;
}

#[tokio::test]
async fn i08_a_member_that_another_backup_holds_keeps_the_group_alive() {
    let bed = Bed::new().await;
    let contents = with_members(bed.archived_group(&["one", "two"]).await);
    bed.cluster
        .apply(json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
            "metadata": {"name": "theirs", "labels": {"velero.io/backup-name": "b2", "velero.io/backup-uid": "u2"}},
            "spec": {"driver": DRIVER, "deletionPolicy": "Retain",
                "source": {"snapshotHandle": contents[1]["status"]["snapshotHandle"]},
                "volumeSnapshotRef": {"namespace": "app", "name": "theirs"}}}))
        .unwrap();
    for result in bed.delete(&contents.iter().collect::<Vec<_>>(), &backup("b1")).await {
        let error = result.unwrap_err().to_string();
        for part in ["volumesnapshotcontents theirs", "as a whole", DRIVER] {
            assert!(error.contains(part), "{part} in {error}");
        }
    }
    assert_eq!(bed.stored(), (1, 2));
    assert!(bed.list(GROUP_CONTENTS).is_empty());
    bed.cluster.delete(CONTENTS, "", "theirs").unwrap();
    bed.gone(CONTENTS, "", "theirs").await;
    delete_well(&bed, &contents, &backup("b1")).await;
    assert_eq!(bed.stored(), (0, 0));
}

#[tokio::test]
async fn a_member_whose_item_failed_is_not_taken_for_someone_else_s() {
    let bed = Bed::new().await;
    let (b1, claims) = grouped(&bed, &["one", "two"]).await;
    // The second claim's item never comes, and nothing is finalized.
    let archived = bed.back_up(&claims[0], &b1).await;
    delete_well(&bed, &[archived.content], &b1).await;
    bed.until("the group is gone", |bed| bed.stored() == (0, 0)).await;
    bed.no_group_objects().await;
}

#[tokio::test]
async fn a_group_that_a_user_has_a_content_of_stays() {
    let bed = Bed::new().await;
    let contents = with_members(bed.archived_group(&["one"]).await);
    bed.cluster
        .apply(json!({"apiVersion": "groupsnapshot.storage.k8s.io/v1", "kind": "VolumeGroupSnapshotContent",
            "metadata": {"name": "users-own"},
            "spec": {"driver": DRIVER, "deletionPolicy": "Retain",
                "source": {"groupSnapshotHandles": {
                    "volumeGroupSnapshotHandle": contents[0]["status"]["volumeGroupSnapshotHandle"],
                    "volumeSnapshotHandles": [contents[0]["status"]["snapshotHandle"]]}},
                "volumeGroupSnapshotRef": {"namespace": "app", "name": "mine"}}}))
        .unwrap();
    let error = bed.delete(&[&contents[0]], &backup("b1")).await.remove(0).unwrap_err().to_string();
    assert!(error.contains("users-own"), "{error}");
    assert_eq!(bed.stored(), (1, 1));
    assert_eq!(bed.list(GROUP_CONTENTS).len(), 1);
}

#[tokio::test]
async fn i08_a_cluster_without_the_api_of_groups_is_told_of() {
    let bed = Bed::new().await;
    let contents = with_members(bed.archived_group(&["one"]).await);
    bed.order([Rule::on("get").path("/apis/groupsnapshot.storage.k8s.io").fail(404)]);
    let error = bed.delete(&[&contents[0]], &backup("b1")).await.remove(0).unwrap_err().to_string();
    let group = contents[0]["status"]["volumeGroupSnapshotHandle"].as_str().unwrap();
    for part in [group, "groupsnapshot.storage.k8s.io", "v1beta2", "delete it there"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    assert!(bed.list(CONTENTS).is_empty() && bed.list(GROUP_CONTENTS).is_empty());
}

#[tokio::test]
async fn a_member_that_only_the_driver_knows_as_such_goes_with_its_group() {
    let bed = Bed::new().await;
    let mut contents = bed.archived_group(&["one"]).await;
    contents[0]["status"]["volumeGroupSnapshotHandle"] = Value::Null;
    // The sidecar learns of the group from the driver, and lets go of a member's content without a word to it.
    delete_well(&bed, &contents, &backup("b1")).await;
    assert_eq!(bed.stored(), (0, 0), "{}", name(&contents[0]));
    bed.no_group_objects().await;
}
