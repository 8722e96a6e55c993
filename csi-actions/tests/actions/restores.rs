//! Restores: the claim gets its data, waits until it can, and never waits for what does not come.

use std::time::Duration;

use cluster::Rule;
use cluster::simulator::{Fault, Readiness};
use csi_actions::names;
use csi_actions::release::Release;
use csi_actions::settings::Mode;
use serde_json::{Value, json};

use crate::bed::{Bed, CLAIMS, CONTENTS, DRIVER, SNAPSHOTS, backup, name};
use crate::restoring::{Archive, Restoring, VOLUMES, restore};

/// One claim's part of the archive of `b1`.
#[derive(Debug, Clone)]
struct Parts {
    claim: Value,
    snapshot: Value,
    content: Value,
}

impl Parts {
    fn archive(&self) -> Archive {
        self.without_content().with(CONTENTS, &self.content)
    }

    fn without_content(&self) -> Archive {
        Archive::default().with(SNAPSHOTS, &self.snapshot).with(CLAIMS, &self.claim)
    }

    fn claim_only(&self) -> Archive {
        Archive::default().with(CLAIMS, &self.claim)
    }

    fn handle(&self) -> &str {
        self.content["status"]["snapshotHandle"].as_str().unwrap()
    }

    /// The name of what `restore` makes of the snapshot.
    fn restored_name(&self, restore: &Value) -> String {
        names::restored(restore["metadata"]["uid"].as_str().unwrap(), name(&self.snapshot))
    }

    /// As Velero's own actions write it: without what is ours.
    fn as_of_velero(&self) -> Self {
        let mut parts = self.clone();
        for object in [&mut parts.claim, &mut parts.snapshot, &mut parts.content] {
            for map in ["labels", "annotations"] {
                if let Some(map) = object["metadata"][map].as_object_mut() {
                    map.retain(|key, _| !key.starts_with("csi-actions.") && key != "velero.io/backup-uid");
                }
            }
        }
        parts
    }
}

/// A finished backup of one claim. Nothing of it is in the cluster but the claim and its volume.
async fn backed_up(bed: &Bed) -> Parts {
    let claim = bed.claim("data").await;
    let backup = backup("b1");
    let archived = bed.back_up(&claim, &backup).await;
    bed.finished(archived.operation.as_ref().unwrap(), &backup).await;
    let content = bed.finalize(&archived, &backup).await;
    bed.gone(SNAPSHOTS, "app", name(&archived.snapshot)).await;
    bed.gone(CONTENTS, "", name(&archived.content)).await;
    Parts { claim: archived.claim, snapshot: archived.snapshot, content }
}

/// The same, and the claim is lost since.
async fn lost(bed: &Bed) -> Parts {
    let parts = backed_up(bed).await;
    bed.cluster.delete(CLAIMS, "app", "data").unwrap();
    bed.gone(CLAIMS, "app", "data").await;
    bed.until("the volume is gone", |bed| bed.list(VOLUMES).is_empty()).await;
    parts
}

/// Waits until the claim is bound to a volume that was made from the snapshot.
async fn has_its_data(bed: &Bed, parts: &Parts, namespace: &str) -> Value {
    let claim = bed.seen(CLAIMS, namespace, "data", |claim| claim["status"]["phase"] == "Bound").await;
    let volume = bed.get(VOLUMES, "", claim["spec"]["volumeName"].as_str().unwrap()).unwrap();
    let id = volume["spec"]["csi"]["volumeHandle"].as_str().unwrap();
    let source = bed.driver().read(|state| format!("{:?}", state.volumes[id].source));
    assert!(source.contains(parts.handle()), "made from {source}");
    claim
}

fn clean(restoring: &Restoring<'_>) {
    assert_eq!((&restoring.errors, &restoring.warnings), (&Vec::new(), &Vec::new()));
}

/// The storage does not know yet that the snapshot is ready.
fn not_ready(bed: &Bed, parts: &Parts, ready: Readiness) {
    bed.driver().change(|state| state.set_readiness(parts.handle(), ready)).unwrap();
}

#[tokio::test]
async fn i38_c20_a_lost_claim_comes_back_with_its_data_and_nothing_of_its_old_volume() {
    let bed = Bed::new().await;
    let parts = lost(&bed).await;
    let restore = restore("r1", json!({}));
    let restoring = Restoring::new(&bed, parts.archive(), restore.clone()).run().await;
    clean(&restoring);
    let claim = has_its_data(&bed, &parts, "app").await;
    let restored = parts.restored_name(&restore);
    assert_eq!(claim["spec"]["dataSource"]["name"], restored.as_str());
    for (key, _) in claim["metadata"]["annotations"].as_object().into_iter().flatten() {
        assert!(!key.contains("velero"), "{key} is left on the claim");
    }
    assert_eq!(claim["metadata"]["labels"]["tier"], "db");
    assert_eq!(claim["metadata"]["labels"]["velero.io/volume-snapshot-name"], Value::Null);
    let content = bed.get(CONTENTS, "", &restored).unwrap();
    assert_eq!(content["spec"]["deletionPolicy"], "Retain");
    assert_eq!(content["metadata"]["labels"]["velero.io/restore-uid"], "uid-of-r1");
    assert_eq!(bed.in_storage(), 1, "no new snapshot");
}

#[tokio::test]
async fn c22_i47_two_restores_into_other_namespaces_beside_the_original() {
    let bed = Bed::new().await;
    let parts = backed_up(&bed).await;
    for number in [1, 2] {
        let target = format!("copy-{number}");
        let spec = json!({"namespaceMapping": {"app": target}, "includedNamespaces": ["app"]});
        let restoring =
            Restoring::new(&bed, parts.archive(), restore(&format!("r{number}"), spec)).run().await;
        clean(&restoring);
        has_its_data(&bed, &parts, &target).await;
    }
    assert_eq!(bed.list(CONTENTS).len(), 2);
}

#[tokio::test]
async fn i42_c41_the_claim_waits_until_the_snapshot_is_ready() {
    let bed = Bed::new().await;
    let parts = lost(&bed).await;
    let in_two_seconds = ready_after(Duration::from_secs(2));
    not_ready(&bed, &parts, in_two_seconds);
    let restoring = Restoring::new(&bed, parts.archive(), restore("r1", json!({}))).run().await;
    clean(&restoring);
    assert!(restoring.not_ready > 5, "waited for {} polls", restoring.not_ready);
    has_its_data(&bed, &parts, "app").await;
}

#[tokio::test]
async fn waiting_is_safe_where_the_claim_waits_for_its_first_consumer() {
    let bed = Bed::new().await;
    let class = json!({"volumeBindingMode": "WaitForFirstConsumer"});
    let parts = lost(&bed).await;
    bed.cluster.patch("storageclasses.storage.k8s.io", "", "disk", &class).unwrap();
    not_ready(&bed, &parts, ready_after(Duration::from_secs(1)));
    let restoring = Restoring::new(&bed, parts.archive(), restore("r1", json!({}))).run().await;
    clean(&restoring);
    assert!(restoring.not_ready > 0);
    assert_ne!(bed.get(CLAIMS, "app", "data").unwrap()["status"]["phase"], "Bound", "nobody uses it yet");
    let node = json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}});
    bed.cluster.patch(CLAIMS, "app", "data", &node).unwrap();
    has_its_data(&bed, &parts, "app").await;
}

#[tokio::test]
async fn a_permanent_driver_error_ends_the_wait_at_once_with_its_reason() {
    let bed = Bed::new().await;
    let parts = lost(&bed).await;
    not_ready(&bed, &parts, Readiness::Never);
    let archive = parts.archive();
    let restoring = Restoring::new(&bed, archive, restore("r1", json!({})));
    let denied = Fault::on("ListSnapshots").skip(2).error(tonic::Code::PermissionDenied, "key is disabled");
    bed.driver().order(denied).unwrap();
    let restoring = restoring.run().await;
    let [error] = restoring.errors.as_slice() else { panic!("{:?}", restoring.errors) };
    for part in ["key is disabled", parts.handle(), DRIVER] {
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[tokio::test]
async fn i06_a_claim_whose_snapshot_is_known_to_be_gone_is_not_made_so_that_it_can_be_restored_again() {
    let bed = Bed::new().await;
    let parts = lost(&bed).await;
    let handle = parts.handle().to_owned();
    let kept = bed.driver().change(|state| state.snapshots.remove(&handle)).unwrap();
    let first = restore("r1", json!({}));
    // Velero restores contents and snapshots of all namespaces before the first claim.
    let objects = Archive::default().with(CONTENTS, &parts.content).with(SNAPSHOTS, &parts.snapshot);
    clean(&Restoring::new(&bed, objects, first.clone()).run().await);
    bed.seen(CONTENTS, "", &parts.restored_name(&first), |content| content["status"]["error"].is_object())
        .await;
    let restoring = Restoring::new(&bed, parts.claim_only(), first).run().await;
    let [error] = restoring.errors.as_slice() else { panic!("{:?}", restoring.errors) };
    assert!(error.contains("can not find snapshot") && error.contains("error preparing"), "{error}");
    assert_eq!(bed.get(CLAIMS, "app", "data"), None);
    bed.driver().change(|state| state.snapshots.insert(handle, kept));
    clean(&Restoring::new(&bed, parts.archive(), restore("r2", json!({}))).run().await);
    has_its_data(&bed, &parts, "app").await;
}

#[tokio::test]
async fn c41_api_trouble_and_passing_driver_errors_are_waited_out() {
    let bed = Bed::new().await;
    let parts = lost(&bed).await;
    not_ready(&bed, &parts, ready_after(Duration::from_secs(1)));
    let busy = Fault::on("ListSnapshots").times(2).error(tonic::Code::Unavailable, "busy");
    bed.driver().order(busy).unwrap();
    // The first read of each is that before the wait.
    for (resource, skip, code) in
        [("volumesnapshots", 1, 500), ("volumesnapshots", 3, 429), ("volumesnapshotcontents", 1, 503)]
    {
        bed.order([Rule::on("get").resource(resource).skip(skip).times(2).fail(code)]);
    }
    let restoring = Restoring::new(&bed, parts.archive(), restore("r1", json!({}))).run().await;
    clean(&restoring);
    assert_eq!(bed.hits(), 6, "the orders were carried out");
    has_its_data(&bed, &parts, "app").await;
}

#[tokio::test]
async fn what_can_not_be_read_at_all_ends_the_wait_with_an_error() {
    let bed = Bed::new().await;
    let parts = lost(&bed).await;
    not_ready(&bed, &parts, Readiness::Never);
    bed.order([Rule::on("get").resource("volumesnapshots").skip(2).fail(403)]);
    let restoring = Restoring::new(&bed, parts.archive(), restore("r1", json!({}))).run().await;
    let [error] = restoring.errors.as_slice() else { panic!("{:?}", restoring.errors) };
    assert!(error.contains("get volumesnapshots app/"), "{error}");
}

#[tokio::test]
async fn i55_an_existing_claim_is_left_as_it_is_and_no_snapshot_is_restored_for_it() {
    let bed = Bed::new().await;
    let parts = backed_up(&bed).await;
    let before = bed.get(CLAIMS, "app", "data").unwrap();
    let restoring = Restoring::new(&bed, parts.archive(), restore("r1", json!({}))).run().await;
    assert_eq!(restoring.errors, Vec::<String>::new());
    assert_eq!(bed.get(CLAIMS, "app", "data").unwrap(), before);
    assert_eq!((bed.list(SNAPSHOTS).len(), bed.list(CONTENTS).len()), (0, 0));
}

#[tokio::test]
async fn c25_restore_pvs_false_makes_an_empty_volume_and_no_snapshot() {
    let bed = Bed::new().await;
    let parts = lost(&bed).await;
    let spec = json!({"restorePVs": false});
    let restoring = Restoring::new(&bed, parts.archive(), restore("r1", spec)).run().await;
    clean(&restoring);
    let claim = bed.seen(CLAIMS, "app", "data", |claim| claim["status"]["phase"] == "Bound").await;
    assert_eq!(claim["spec"]["dataSource"], Value::Null);
    assert_eq!((bed.list(SNAPSHOTS).len(), bed.list(CONTENTS).len()), (0, 0));
}

#[tokio::test]
async fn c28_i45_the_volume_is_as_large_as_the_snapshot_needs() {
    let bed = Bed::new().await;
    let mut parts = lost(&bed).await;
    let handle = parts.handle().to_owned();
    bed.driver().change(|state| state.snapshots.get_mut(&handle).unwrap().size_bytes = 4 << 20);
    parts.claim["metadata"]["annotations"]["csi-actions.velero-rs.io/restore-size"] = "4Mi".into();
    parts.claim["spec"]["resources"]["requests"]["storage"] = "1Mi".into();
    clean(&Restoring::new(&bed, parts.archive(), restore("r1", json!({}))).run().await);
    let claim = has_its_data(&bed, &parts, "app").await;
    assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "4Mi");
}

#[tokio::test]
async fn i41_i53_i54_what_the_restore_leaves_out_or_the_archive_lacks_is_made() {
    let claims_and_volumes = json!({"includedResources": [CLAIMS, VOLUMES]});
    let no_cluster_resources = json!({"includeClusterResources": false});
    for (case, spec) in [
        ("all", claims_and_volumes),
        ("all", no_cluster_resources),
        ("without content", json!({})),
        ("claim only", json!({})),
    ] {
        let bed = Bed::new().await;
        let parts = lost(&bed).await;
        let archive = match case {
            "all" => parts.archive(),
            "without content" => parts.without_content(),
            _ => parts.claim_only(),
        };
        not_ready(&bed, &parts, ready_after(Duration::from_secs(1)));
        let restoring = Restoring::new(&bed, archive, restore("r1", spec.clone())).run().await;
        assert_eq!(restoring.errors, Vec::<String>::new(), "{case} {spec}");
        assert!(restoring.not_ready > 0, "{case} {spec}: it waits all the same");
        has_its_data(&bed, &parts, "app").await;
    }
}

#[tokio::test]
async fn archives_of_velero_s_own_actions_are_restored_with_the_same_filters_or_say_what_is_missing() {
    let bed = Bed::new().await;
    let parts = lost(&bed).await.as_of_velero();
    for (number, (archive, spec, works)) in [
        (parts.archive(), json!({}), true),
        (parts.archive(), json!({"includeClusterResources": false}), true),
        // The snapshot's annotations tell what its content was.
        (parts.without_content(), json!({}), true),
        // c08: nothing tells where the data is.
        (parts.archive(), json!({"includedResources": [CLAIMS]}), false),
        (parts.claim_only(), json!({}), false),
    ]
    .into_iter()
    .enumerate()
    {
        let target = format!("copy-{number}");
        let mut spec = spec;
        spec["namespaceMapping"] = json!({"app": target});
        let restoring = Restoring::new(&bed, archive, restore(&format!("r{number}"), spec)).run().await;
        if works {
            assert_eq!(restoring.errors, Vec::<String>::new(), "case {number}");
            has_its_data(&bed, &parts, &target).await;
        } else {
            let [error] = restoring.errors.as_slice() else { panic!("{number}: {:?}", restoring.errors) };
            assert!(error.contains("was not restored") && error.contains(name(&parts.snapshot)), "{error}");
        }
    }
}

#[tokio::test]
async fn i53_an_archive_of_the_plugin_before_velero_s_own_actions_is_restored() {
    let bed = Bed::new().await;
    let mut parts = lost(&bed).await.as_of_velero();
    // It kept the content in the cluster and no status in the archive, and wrote the size under another key.
    parts.snapshot.as_object_mut().unwrap().remove("status");
    let annotations = parts.snapshot["metadata"]["annotations"].as_object_mut().unwrap();
    let size = annotations.remove("velero.io/csi-volumesnapshot-restore-size");
    annotations.insert("velero.io/vsi-volumesnapshot-restore-size".into(), size.unwrap_or("2Mi".into()));
    let handle = parts.handle().to_owned();
    bed.driver().change(|state| state.snapshots.get_mut(&handle).unwrap().size_bytes = 1 << 20);
    let restoring = Restoring::new(&bed, parts.without_content(), restore("r1", json!({}))).run().await;
    clean(&restoring);
    has_its_data(&bed, &parts, "app").await;
}

#[tokio::test]
async fn c24_a_content_without_handle_is_an_error_that_names_it() {
    let bed = Bed::new().await;
    let whole = lost(&bed).await.as_of_velero();
    let mut parts = whole.clone();
    parts.content.as_object_mut().unwrap().remove("status");
    let restoring = Restoring::new(&bed, parts.archive(), restore("r1", json!({}))).run().await;
    let error = &restoring.errors[0];
    assert!(error.contains(name(&parts.content)) && error.contains("no snapshot handle"), "{error}");
    // The snapshot's annotations have the handle all the same.
    assert_eq!(restoring.errors.len(), 1, "{:?}", restoring.errors);
    has_its_data(&bed, &whole, "app").await;
}

#[tokio::test]
async fn up_to_1_15_the_content_is_made_here_since_the_server_would_take_the_original_for_it() {
    let bed = Bed::new().await;
    let parts = lost(&bed).await;
    // Those servers' own backups leave it in the cluster.
    let mut original = parts.content.clone();
    original["spec"]["volumeSnapshotRef"] = json!({"namespace": "ns-1", "name": "name-1"});
    original["spec"]["source"] = json!({"snapshotHandle": parts.handle()});
    original["metadata"] = json!({"name": name(&parts.content), "labels": {"velero.io/backup-name": "b1"}});
    bed.cluster.apply(original).unwrap();
    let restore = restore("r1", json!({}));
    let restoring =
        Restoring::on(&bed, parts.archive(), restore.clone(), Release::UpTo1_15, Mode::Standalone)
            .run()
            .await;
    clean(&restoring);
    has_its_data(&bed, &parts, "app").await;
    let content = bed.get(CONTENTS, "", &parts.restored_name(&restore)).unwrap();
    assert_eq!(content["metadata"]["labels"]["velero.io/restore-name"], "r1");
}

#[tokio::test]
async fn beside_velero_s_own_actions_only_claims_are_touched_and_only_where_the_names_agree() {
    let bed = Bed::new().await;
    let parts = lost(&bed).await;
    for (release, waits) in
        [(Release::UpTo1_15, false), (Release::From1_16, true), (Release::From1_18_1, true)]
    {
        let target = format!("on-{waits}-{release:?}").to_lowercase().replace('_', "-");
        let spec = json!({"namespaceMapping": {"app": target}});
        let restore = restore(&target, spec);
        let objects = Archive::default().with(CONTENTS, &parts.content).with(SNAPSHOTS, &parts.snapshot);
        let restoring = Restoring::on(&bed, objects, restore.clone(), release, Mode::Alongside).run().await;
        // What was not changed is refused or restored as it stood in the archive: either way it was not renamed.
        drop(restoring);
        assert_eq!(bed.get(SNAPSHOTS, &target, &parts.restored_name(&restore)), None);
        assert_eq!(bed.get(CONTENTS, "", &parts.restored_name(&restore)), None);
        Restoring::on(&bed, parts.claim_only(), restore.clone(), release, Mode::Alongside).run().await;
        let claim = bed.get(CLAIMS, &target, "data").unwrap();
        let source = claim["spec"]["dataSource"]["name"].as_str().map(str::to_owned);
        assert_eq!(source, waits.then(|| parts.restored_name(&restore)), "{release:?}");
    }
}

/// The backup of a claim whose volume is kept when the claim goes. The claim, and the object of the volume, are lost since.
async fn lost_but_retained(bed: &Bed) -> (Parts, Value) {
    let parts = backed_up(bed).await;
    let volume = parts.claim["spec"]["volumeName"].as_str().unwrap();
    let retain = json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}});
    let archived = bed.cluster.patch(VOLUMES, "", volume, &retain).unwrap();
    bed.cluster.delete(CLAIMS, "app", "data").unwrap();
    bed.gone(CLAIMS, "app", "data").await;
    bed.cluster.delete(VOLUMES, "", volume).unwrap();
    if bed.get(VOLUMES, "", volume).is_some() {
        bed.cluster.patch(VOLUMES, "", volume, &json!({"metadata": {"finalizers": null}})).unwrap();
    }
    bed.gone(VOLUMES, "", volume).await;
    (parts, archived)
}

#[tokio::test]
async fn i50_a_retained_volume_stays_out_and_the_claim_has_the_data_of_the_backup() {
    for number in [1, 2] {
        let bed = Bed::new().await;
        let (parts, volume) = lost_but_retained(&bed).await;
        let archive = parts.archive().with(VOLUMES, &volume);
        let spec = if number == 1 { json!({}) } else { json!({"includedNamespaces": ["app"]}) };
        let restoring = Restoring::new(&bed, archive, restore("r1", spec)).run().await;
        clean(&restoring);
        let claim = has_its_data(&bed, &parts, "app").await;
        let [end] = restoring.finished().await.try_into().unwrap();
        assert_eq!(end.failure(), None);
        let volume_now = bed.get(VOLUMES, "", claim["spec"]["volumeName"].as_str().unwrap()).unwrap();
        assert_eq!(volume_now["spec"]["persistentVolumeReclaimPolicy"], "Retain", "as the old one");
        assert_ne!(claim["spec"]["volumeName"], parts.claim["spec"]["volumeName"]);
        assert_eq!(bed.get(VOLUMES, "", name(&volume)), None);
    }
}

#[tokio::test]
async fn i50_keeping_the_new_volume_rides_out_api_trouble_and_fails_where_it_is_not_allowed() {
    for (code, fails) in [(503, false), (403, true)] {
        let bed = Bed::new().await;
        let (parts, volume) = lost_but_retained(&bed).await;
        let archive = parts.archive().with(VOLUMES, &volume);
        let restoring = Restoring::new(&bed, archive, restore("r1", json!({}))).run().await;
        clean(&restoring);
        bed.order([Rule::on("patch").resource(VOLUMES).times(2).fail(code)]);
        let [end] = restoring.finished().await.try_into().unwrap();
        assert_eq!(end.failure().is_some_and(|why| why.contains("by hand")), fails, "{end:?}");
        assert!(bed.hits() > 0);
    }
}

#[tokio::test]
async fn i50_a_retained_volume_that_no_snapshot_was_taken_of_is_restored() {
    let bed = Bed::new().await;
    let (parts, mut volume) = lost_but_retained(&bed).await;
    volume["spec"]["csi"]["volumeHandle"] = "vol-of-another".into();
    let archive = parts.archive().with(VOLUMES, &volume);
    Restoring::new(&bed, archive, restore("r1", json!({}))).run().await;
    assert!(bed.get(VOLUMES, "", name(&volume)).is_some());
}

#[tokio::test]
async fn i50_a_claim_that_would_take_a_reserved_volume_in_place_of_its_snapshot_is_not_made() {
    let bed = Bed::new().await;
    let (parts, mut volume) = lost_but_retained(&bed).await;
    for field in ["uid", "resourceVersion"] {
        volume["metadata"].as_object_mut().unwrap().remove(field);
        volume["spec"]["claimRef"].as_object_mut().unwrap().remove(field);
    }
    bed.cluster.apply(volume.clone()).unwrap();
    let restoring = Restoring::new(&bed, parts.archive(), restore("r1", json!({}))).run().await;
    let [error] = restoring.errors.as_slice() else { panic!("{:?}", restoring.errors) };
    assert!(error.contains("is reserved for it") && error.contains(name(&volume)), "{error}");
    assert_eq!(bed.get(CLAIMS, "app", "data"), None);
}

#[tokio::test]
async fn i51_a_claim_of_another_driver_is_not_made() {
    let bed = Bed::new().await;
    let mut parts = lost(&bed).await;
    for object in [
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "nfs"},
            "provisioner": "nfs.csi"}),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "nfs.csi"}, "spec": {}}),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "wrapped"},
            "provisioner": "wrapper-of-the-driver"}),
    ] {
        bed.cluster.apply(object).unwrap();
    }
    parts.claim["spec"]["storageClassName"] = "nfs".into();
    let restoring = Restoring::new(&bed, parts.archive(), restore("r1", json!({}))).run().await;
    let [error] = restoring.errors.as_slice() else { panic!("{:?}", restoring.errors) };
    assert!(error.contains("nfs.csi") && error.contains(DRIVER), "{error}");
    assert_eq!(bed.get(CLAIMS, "app", "data"), None);
    parts.claim["spec"]["storageClassName"] = "wrapped".into();
    clean(&Restoring::new(&bed, parts.archive(), restore("r2", json!({}))).run().await);
    assert!(bed.get(CLAIMS, "app", "data").is_some());
}

#[tokio::test]
async fn c23_i12_i13_deleting_what_was_restored_keeps_the_data_and_deleting_the_backup_leaves_nothing() {
    for backup_first in [true, false] {
        let bed = Bed::new().await;
        let parts = lost(&bed).await;
        let first = restore("r1", json!({}));
        clean(&Restoring::new(&bed, parts.archive(), first.clone()).run().await);
        has_its_data(&bed, &parts, "app").await;
        let restored = parts.restored_name(&first);
        let delete_backup = async || {
            for result in bed.delete(&[&parts.content], &backup("b1")).await {
                result.unwrap();
            }
        };
        let delete_restored = async || {
            bed.cluster.delete(CLAIMS, "app", "data").unwrap();
            bed.cluster.delete(SNAPSHOTS, "app", &restored).unwrap();
            bed.gone(SNAPSHOTS, "app", &restored).await;
        };
        if backup_first {
            delete_backup().await;
            delete_restored().await;
        } else {
            delete_restored().await;
            assert_eq!(bed.in_storage(), 1, "the backup still has its data");
            delete_backup().await;
        }
        bed.gone(CONTENTS, "", &restored).await;
        assert_eq!(bed.in_storage(), 0);
    }
}

#[tokio::test]
async fn an_item_that_is_tried_twice_meets_what_the_first_time_made() {
    let bed = Bed::new().await;
    let parts = lost(&bed).await;
    // The reply is lost after the object was made.
    for resource in ["volumesnapshotcontents", "volumesnapshots"] {
        bed.order([Rule::on("create").resource(resource).times(1).close().after_effect()]);
    }
    clean(&Restoring::new(&bed, parts.claim_only(), restore("r1", json!({}))).run().await);
    assert_eq!(bed.hits(), 2);
    has_its_data(&bed, &parts, "app").await;
    assert_eq!((bed.list(SNAPSHOTS).len(), bed.list(CONTENTS).len()), (1, 1));
}

fn ready_after(wait: Duration) -> Readiness {
    Readiness::At((std::time::SystemTime::now() + wait).try_into().unwrap())
}
