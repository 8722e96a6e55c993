//! What a process that was killed left of groups goes with the next deletion, as far as the backup's UID proves whose it is.

use crate::bed::{Bed, CONTENTS, DRIVER, SNAPSHOTS, name};
use crate::grouped::{GROUP_CONTENTS, GROUPS, grouped, of_groups, with_members};
use crate::leftovers::delete_namespace;
use cluster::Rule;
use serde_json::json;

#[tokio::test]
async fn a_group_none_of_whose_items_succeeded_goes_with_the_backup_and_no_other_does() {
    let bed = Bed::new().await;
    let (b1, claims) = grouped(&bed, &["one", "two"]).await;
    let mut namesake = of_groups("b1");
    namesake["metadata"]["uid"] = "of-an-earlier-backup".into();
    for backup in [&b1, &of_groups("b2"), &namesake] {
        bed.back_up_claim(&claims[0], backup).await.unwrap();
    }
    assert_eq!(bed.stored(), (3, 6));

    delete_namespace(&bed, &b1).await.unwrap();
    bed.until("the others are there alone", |bed| {
        bed.stored() == (2, 4) && bed.list(GROUP_CONTENTS).len() == 2 && bed.list(SNAPSHOTS).len() == 4
    })
    .await;
    let mut left: Vec<_> = bed.list(GROUPS).iter().map(|group| uid_label(group).to_owned()).collect();
    left.sort();
    assert_eq!(left, ["of-an-earlier-backup", "uid-of-b2"]);
}

fn uid_label(object: &serde_json::Value) -> &str {
    object["metadata"]["labels"]["velero.io/backup-uid"].as_str().unwrap()
}

#[tokio::test]
async fn a_group_of_which_the_content_alone_is_left_goes_with_the_backup() {
    let bed = Bed::new().await;
    let (b1, claims) = grouped(&bed, &["one", "two"]).await;
    bed.back_up_claim(&claims[0], &b1).await.unwrap();
    let (group, content) = (bed.list(GROUPS).remove(0), bed.list(GROUP_CONTENTS).remove(0));
    let retain = json!({"spec": {"deletionPolicy": "Retain"}});
    bed.cluster.patch(GROUP_CONTENTS, "", name(&content), &retain).unwrap();
    bed.cluster.delete(GROUPS, "app", name(&group)).unwrap();
    bed.gone(GROUPS, "app", name(&group)).await;
    assert_eq!((bed.list(GROUP_CONTENTS).len(), bed.stored()), (1, (1, 2)));

    delete_namespace(&bed, &b1).await.unwrap();
    bed.until("the group is gone", |bed| bed.stored() == (0, 0)).await;
    bed.no_group_objects().await;
}

#[tokio::test]
async fn i08_a_left_group_stays_as_long_as_someone_else_needs_a_member() {
    let bed = Bed::new().await;
    let (b1, claims) = grouped(&bed, &["one", "two"]).await;
    bed.back_up_claim(&claims[0], &b1).await.unwrap();
    let member = bed.list(CONTENTS)[0]["status"]["snapshotHandle"].clone();
    bed.cluster
        .apply(json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
            "metadata": {"name": "theirs"},
            "spec": {"driver": DRIVER, "deletionPolicy": "Retain", "source": {"snapshotHandle": member},
                "volumeSnapshotRef": {"namespace": "app", "name": "theirs"}}}))
        .unwrap();
    delete_namespace(&bed, &b1).await.unwrap();
    assert_eq!((bed.list(GROUPS).len(), bed.stored()), (1, (1, 2)));
    bed.cluster.delete(CONTENTS, "", "theirs").unwrap();
    bed.gone(CONTENTS, "", "theirs").await;
    delete_namespace(&bed, &b1).await.unwrap();
    bed.until("the group is gone", |bed| bed.stored() == (0, 0)).await;
}

#[tokio::test]
async fn the_deletion_of_a_group_that_a_killed_process_began_is_finished_by_that_of_another_backup() {
    let bed = Bed::new().await;
    let contents = with_members(bed.archived_group(&["one", "two"]).await);
    // The content is made, and then nothing more is done.
    bed.order([Rule::on("delete").resource("volumegroupsnapshotcontents").fail(403)]);
    bed.delete(&[&contents[0]], &of_groups("b1")).await.remove(0).unwrap_err();
    bed.cluster.faults().clear();
    assert_eq!((bed.stored(), bed.list(GROUP_CONTENTS).len()), ((1, 2), 1));

    delete_namespace(&bed, &of_groups("b2")).await.unwrap();
    assert_eq!((bed.stored(), bed.list(GROUP_CONTENTS).len()), ((0, 0), 0));
}

#[tokio::test]
async fn a_cluster_without_groups_and_an_account_that_may_not_see_them_have_none_left() {
    let bed = Bed::new().await;
    for rule in [
        Rule::on("get").path("/apis/groupsnapshot.storage.k8s.io").fail(404),
        Rule::on("list").resource("volumegroupsnapshots").fail(403),
        Rule::on("list").resource("volumegroupsnapshotcontents").fail(403),
    ] {
        bed.order([rule]);
        delete_namespace(&bed, &of_groups("b1")).await.unwrap();
        assert!(bed.hits() > 0);
        bed.cluster.faults().clear();
        bed.cluster.clear_requests();
    }
}
