//! Volumes that stay when their claim goes: archived so that any server restores the claim from its snapshot.

use crate::bed::{Bed, CLAIMS, SAFE, backup, is_untouched, item, name, of, result};
use crate::restoring::{Archive, Restoring, VOLUMES, restore};
use csi_actions::backup::persistentvolume::VolumeBackup;
use csi_actions::settings::Mode;
use serde_json::{Value, json};
use velero_plugin::backup::{BackupItemActionV2 as _, Outcome};

const POLICY: &str = "csi-actions.velero-rs.io/volume-reclaim-policy";

/// A bound claim and its volume, which stays when the claim goes.
async fn retained(bed: &Bed) -> (Value, Value) {
    let claim = bed.claim("data").await;
    let retain = json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}});
    let volume =
        bed.cluster.patch(VOLUMES, "", claim["spec"]["volumeName"].as_str().unwrap(), &retain).unwrap();
    (claim, volume)
}

async fn archived(bed: &Bed, mode: Mode, volume: &Value, backup: &Value) -> Outcome {
    VolumeBackup::new(bed.environment_in(mode)).execute(item(volume), of(backup)).await.unwrap()
}

#[tokio::test]
async fn i50_a_retained_volume_is_archived_as_one_to_provision_anew_and_the_new_one_is_kept() {
    let bed = Bed::new().await;
    let (claim, volume) = retained(&bed).await;
    let backup = backup("b1");
    let archived_volume = result(&archived(&bed, Mode::Standalone, &volume, &backup).await);
    assert_eq!(archived_volume["spec"]["persistentVolumeReclaimPolicy"], "Delete");
    assert_eq!(
        archived_volume["metadata"]["annotations"]["csi-actions.velero-rs.io/reclaim-policy"],
        "Retain"
    );
    let archived = bed.back_up(&claim, &backup).await;
    assert_eq!(archived.claim["metadata"]["annotations"][POLICY], "Retain");
    bed.finished(archived.operation.as_ref().unwrap(), &backup).await;
    let content = bed.finalize(&archived, &backup).await;
    bed.cluster.delete(CLAIMS, "app", "data").unwrap();
    bed.gone(CLAIMS, "app", "data").await;
    assert!(bed.get(VOLUMES, "", name(&volume)).is_some(), "the volume in the cluster stays as it was");

    let archive = Archive::default()
        .with(crate::bed::CONTENTS, &content)
        .with(crate::bed::SNAPSHOTS, &archived.snapshot)
        .with(VOLUMES, &archived_volume)
        .with(CLAIMS, &archived.claim);
    let restoring = Restoring::new(&bed, archive, restore("r1", json!({}))).run().await;
    assert_eq!((&restoring.errors, &restoring.warnings), (&Vec::new(), &Vec::new()));
    let bound = |claim: &Value| claim["status"]["phase"] == "Bound";
    let claim = bed.seen(CLAIMS, "app", "data", bound).await;
    let [end] = tokio::time::timeout(SAFE, restoring.finished()).await.unwrap().try_into().unwrap();
    assert_eq!(end.failure(), None);
    let new = bed.get(VOLUMES, "", claim["spec"]["volumeName"].as_str().unwrap()).unwrap();
    assert_ne!(name(&new), name(&volume));
    assert_eq!(new["spec"]["persistentVolumeReclaimPolicy"], "Retain");
    assert_eq!(claim["metadata"]["annotations"][POLICY], Value::Null);
}

#[tokio::test]
async fn i50_a_volume_stays_as_it_is_where_no_snapshot_of_it_is_certain() {
    let bed = Bed::new().await;
    let (claim, volume) = retained(&bed).await;
    let mut cases = Vec::new();
    for spec in [
        json!({"snapshotVolumes": false}),
        json!({"excludedResources": ["persistentvolumeclaims"]}),
        json!({"resourcePolicy": {"kind": "configmap", "name": "nowhere"}}),
    ] {
        let mut backup = backup("b1");
        backup["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        cases.push((volume.clone(), backup));
    }
    let mut finalizing = backup("b1");
    finalizing["status"]["phase"] = "Finalizing".into();
    cases.push((volume.clone(), finalizing));
    for (field, value) in [
        (["spec", "persistentVolumeReclaimPolicy"], json!("Delete")),
        (["spec", "claimRef"], json!(null)),
        (["spec", "claimRef"], json!({"namespace": "app", "name": "data", "uid": "of an earlier claim"})),
        (["spec", "claimRef"], json!({"namespace": "app", "name": "gone", "uid": "u"})),
        (["metadata", "uid"], json!("of a namesake that the claim is not bound to")),
    ] {
        let mut volume = volume.clone();
        volume[field[0]][field[1]] = value;
        cases.push((volume, backup("b1")));
    }
    for (volume, backup) in &cases {
        assert!(is_untouched(&archived(&bed, Mode::Standalone, volume, backup).await), "{volume} {backup}");
    }
    assert!(
        is_untouched(&archived(&bed, Mode::Alongside, &volume, &backup("b1")).await),
        "Velero knows of the snapshot"
    );
    assert!(!is_untouched(&archived(&bed, Mode::Standalone, &volume, &backup("b1")).await));

    // What the claim says follows the volume.
    let mut filtered = backup("b2");
    filtered["spec"]["orLabelSelectors"] = json!([{"matchLabels": {"tier": "db"}}]);
    assert!(is_untouched(&archived(&bed, Mode::Standalone, &volume, &filtered).await));
    let taken = result(&bed.back_up_claim(&claim, &filtered).await.unwrap());
    assert_eq!(taken["metadata"]["annotations"][POLICY], Value::Null);
}
