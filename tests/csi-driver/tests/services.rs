//! The services as a sidecar sees them, over a unix socket.

mod support;

use std::fs;

use csi_driver::csi::volume_content_source::{SnapshotSource, Type, VolumeSource};
use csi_driver::csi::{
    ControllerGetCapabilitiesRequest, CreateVolumeGroupSnapshotRequest, DeleteSnapshotRequest,
    DeleteVolumeGroupSnapshotRequest, DeleteVolumeRequest, GetPluginInfoRequest,
    GetVolumeGroupSnapshotRequest, ListSnapshotsRequest, VolumeContentSource,
};
use support::Harness;
use tonic::Code;

fn from_snapshot(id: &str) -> VolumeContentSource {
    let source = SnapshotSource { snapshot_id: id.to_owned() };
    VolumeContentSource { r#type: Some(Type::Snapshot(source)) }
}

#[tokio::test]
async fn the_driver_has_a_name_and_a_version() {
    let driver = Harness::start().await;
    let info = driver.identity().get_plugin_info(GetPluginInfoRequest {}).await.expect("info").into_inner();
    assert_eq!(info.name, "csi.velero-rs.test");
    assert!(!info.vendor_version.is_empty(), "sidecars end without a version");
    let request = ControllerGetCapabilitiesRequest {};
    let reply = driver.controller().controller_get_capabilities(request).await.expect("capabilities");
    assert_eq!(reply.into_inner().capabilities.len(), 8);
}

#[tokio::test]
async fn data_comes_back_from_a_snapshot_after_its_volume_is_gone() {
    let driver = Harness::start().await;
    let volume = driver.volume("original").await;
    fs::write(driver.content(&volume.volume_id).join("file"), b"first").expect("write");
    let snapshot = driver.snapshot("s", &volume.volume_id).await.expect("snapshot");
    fs::write(driver.content(&volume.volume_id).join("file"), b"second").expect("write");
    let request = DeleteVolumeRequest { volume_id: volume.volume_id.clone(), ..Default::default() };
    driver.controller().delete_volume(request).await.expect("delete");
    assert!(!driver.content(&volume.volume_id).exists());

    let driver = driver.restart().await;
    let restored =
        driver.create_volume("copy", Some(from_snapshot(&snapshot.snapshot_id))).await.expect("restore");
    assert_eq!(restored.content_source, Some(from_snapshot(&snapshot.snapshot_id)));
    assert_eq!(restored.capacity_bytes, snapshot.size_bytes);
    assert_eq!(fs::read(driver.content(&restored.volume_id).join("file")).expect("read"), b"first");
}

#[tokio::test]
async fn a_clone_is_independent_of_its_source() {
    let driver = Harness::start().await;
    let volume = driver.volume("original").await;
    fs::write(driver.content(&volume.volume_id).join("file"), b"first").expect("write");
    let source = VolumeSource { volume_id: volume.volume_id.clone() };
    let source = VolumeContentSource { r#type: Some(Type::Volume(source)) };
    let clone = driver.create_volume("clone", Some(source)).await.expect("clone");
    fs::write(driver.content(&clone.volume_id).join("file"), b"second").expect("write");
    assert_eq!(fs::read(driver.content(&volume.volume_id).join("file")).expect("read"), b"first");
}

#[tokio::test]
async fn a_restarted_driver_knows_what_it_created() {
    let driver = Harness::start().await;
    let volume = driver.volume("v").await;
    let snapshot = driver.snapshot("s", &volume.volume_id).await.expect("snapshot");
    let driver = driver.restart().await;
    assert_eq!(driver.volume("v").await, volume);
    assert_eq!(driver.snapshot("s", &volume.volume_id).await.expect("repeat"), snapshot);
    let counters = driver.control.counters().await.expect("counters");
    assert_eq!((counters.volumes_created, counters.snapshots_created), (1, 1));
}

#[tokio::test]
async fn simultaneous_requests_with_one_name_make_one_snapshot() {
    let driver = Harness::start().await;
    let volume = driver.volume("v").await;
    let requests = (0..8).map(|_| driver.snapshot("s", &volume.volume_id));
    let mut ids = Vec::new();
    for reply in futures::future::join_all(requests).await {
        ids.push(reply.expect("snapshot").snapshot_id);
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    assert_eq!(driver.control.counters().await.expect("counters").snapshots_created, 1);
}

#[tokio::test]
async fn snapshots_are_listed_in_pages() {
    let driver = Harness::start().await;
    let volume = driver.volume("v").await;
    let mut expected = Vec::new();
    for name in ["a", "b", "c"] {
        expected.push(driver.snapshot(name, &volume.volume_id).await.expect("snapshot").snapshot_id);
    }
    let mut found = Vec::new();
    let mut request = ListSnapshotsRequest { max_entries: 2, ..Default::default() };
    loop {
        let page = driver.controller().list_snapshots(request.clone()).await.expect("page").into_inner();
        found.extend(page.entries.into_iter().filter_map(|entry| entry.snapshot).map(|s| s.snapshot_id));
        if page.next_token.is_empty() {
            break;
        }
        request.starting_token = page.next_token;
    }
    assert_eq!(found, expected, "in the order of creation");
    let wrong = ListSnapshotsRequest { starting_token: "x".into(), ..Default::default() };
    assert_eq!(driver.controller().list_snapshots(wrong).await.expect_err("token").code(), Code::Aborted);
}

#[tokio::test]
async fn a_group_is_taken_and_deleted_as_one() {
    let driver = Harness::start().await;
    let volumes = [driver.volume("v").await, driver.volume("w").await].map(|volume| volume.volume_id);
    let request = CreateVolumeGroupSnapshotRequest {
        name: "g".to_owned(),
        source_volume_ids: volumes.to_vec(),
        ..Default::default()
    };
    let group = driver.groups().create_volume_group_snapshot(request).await.expect("group").into_inner();
    let group = group.group_snapshot.expect("group in the reply");
    assert!(group.ready_to_use);
    let sources: Vec<&String> = group.snapshots.iter().map(|member| &member.source_volume_id).collect();
    assert_eq!(sources, volumes.iter().collect::<Vec<_>>());
    assert!(group.snapshots.iter().all(|member| member.group_snapshot_id == group.group_snapshot_id));

    let member = group.snapshots[0].snapshot_id.clone();
    let alone = DeleteSnapshotRequest { snapshot_id: member.clone(), ..Default::default() };
    let refused = driver.controller().delete_snapshot(alone).await.expect_err("member");
    assert_eq!(refused.code(), Code::InvalidArgument);

    let id = group.group_snapshot_id;
    let request = GetVolumeGroupSnapshotRequest {
        group_snapshot_id: id.clone(),
        snapshot_ids: vec![member],
        ..Default::default()
    };
    let mismatch = driver.groups().get_volume_group_snapshot(request).await.expect_err("mismatch");
    assert_eq!(mismatch.code(), Code::InvalidArgument);

    let request = DeleteVolumeGroupSnapshotRequest { group_snapshot_id: id, ..Default::default() };
    driver.groups().delete_volume_group_snapshot(request).await.expect("delete");
    assert!(driver.control.snapshots().await.expect("snapshots").is_empty());
}
