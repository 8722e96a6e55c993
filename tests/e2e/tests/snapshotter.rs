//! The volume snapshotter in its two versions, and what survives a process that was killed.

use std::collections::HashMap;

use e2e::{Specimen, Start, names};
use serde_json::{Value, json};
use tempfile::TempDir;
use tonic::Status;
use tonic::transport::Channel;
use velero_plugin::client::proto::generated::volume_snapshotter_client::VolumeSnapshotterClient;
use velero_plugin::client::proto::generated::{
    CreateSnapshotRequest, CreateVolumeRequest, DeleteSnapshotRequest, GetVolumeIdRequest,
    GetVolumeInfoRequest, SetVolumeIdRequest, VolumeSnapshotterInitRequest,
};
use velero_plugin::client::proto::v2;
use velero_plugin::client::proto::v2::volume_snapshotter_client::VolumeSnapshotterClient as V2Client;

const SPECIMEN: &str = env!("CARGO_BIN_EXE_specimen");

fn plugin() -> String {
    names::VOLUMES.to_owned()
}

async fn start(folder: &TempDir) -> anyhow::Result<(Specimen, VolumeSnapshotterClient<Channel>)> {
    let specimen = Start::new(SPECIMEN).env(e2e::FOLDER, folder.path()).start().await?;
    let client = VolumeSnapshotterClient::new(specimen.channel());
    Ok((specimen, client))
}

async fn init(client: &mut VolumeSnapshotterClient<Channel>) -> Result<(), Status> {
    let request = VolumeSnapshotterInitRequest { plugin: plugin(), config: HashMap::new() };
    client.init(request).await.map(|_| ())
}

#[tokio::test]
async fn no_number_of_operations_is_zero_on_the_wire_and_back() -> anyhow::Result<()> {
    let folder = TempDir::new()?;
    let (specimen, mut client) = start(&folder).await?;
    init(&mut client).await?;
    for (volume, iops) in [("fast-1", 3000), ("slow-1", 0)] {
        let request = GetVolumeInfoRequest {
            plugin: plugin(),
            volume_id: volume.to_owned(),
            volume_az: "z".to_owned(),
        };
        let info = client.get_volume_info(request).await?.into_inner();
        assert_eq!((info.volume_type.as_str(), info.iops), ("gp3", iops));
    }
    for (iops, told) in [(0, "none"), (100, "100"), (-1, "none")] {
        let request = CreateVolumeRequest {
            plugin: plugin(),
            snapshot_id: "s".to_owned(),
            volume_type: "gp3".to_owned(),
            volume_az: "z".to_owned(),
            iops,
        };
        let volume = client.create_volume_from_snapshot(request).await?.into_inner().volume_id;
        assert_eq!(volume, format!("s|gp3|z|{told}"));
    }
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_volume_of_another_storage_has_the_empty_id_and_is_no_error() -> anyhow::Result<()> {
    let folder = TempDir::new()?;
    let (specimen, mut client) = start(&folder).await?;
    let volume = |spec: Value| json!({"kind": "PersistentVolume", "spec": spec, "n": 1e3}).to_string();
    for (spec, id) in [(json!({"nfs": {}}), ""), (json!({"csi": {"volumeHandle": "h1"}}), "h1")] {
        let request = GetVolumeIdRequest { plugin: plugin(), persistent_volume: volume(spec).into() };
        assert_eq!(client.get_volume_id(request).await?.into_inner().volume_id, id);
    }
    let text = r#"{"kind":"PersistentVolume","n":1e3,"spec":{"csi":{"volumeHandle":"h1","z":1.0}}}"#;
    let request =
        SetVolumeIdRequest { plugin: plugin(), persistent_volume: text.into(), volume_id: "h2".to_owned() };
    let reply = client.set_volume_id(request).await?.into_inner();
    assert_eq!(String::from_utf8(reply.persistent_volume.to_vec())?, text.replace("h1", "h2"));
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_snapshot_of_a_killed_process_is_deleted_by_the_next_after_another_init() -> anyhow::Result<()> {
    let folder = TempDir::new()?;
    let (specimen, mut client) = start(&folder).await?;
    init(&mut client).await?;
    let request = CreateSnapshotRequest {
        plugin: plugin(),
        volume_id: "v".to_owned(),
        volume_az: "z".to_owned(),
        tags: HashMap::from([("velero.io/backup".to_owned(), "nightly".to_owned())]),
    };
    let snapshot = client.create_snapshot(request).await?.into_inner().snapshot_id;
    let kept: Value = serde_json::from_slice(&std::fs::read(folder.path().join(&snapshot))?)?;
    assert_eq!(kept, json!({"tags": {"velero.io/backup": "nightly"}}));
    specimen.kill().await?;

    let (specimen, mut client) = start(&folder).await?;
    let delete = || DeleteSnapshotRequest { plugin: plugin(), snapshot_id: snapshot.clone() };
    let status = client.delete_snapshot(delete()).await.expect_err("init comes first");
    assert!(status.message().contains("init was not called"), "{status:?}");
    init(&mut client).await?;
    client.delete_snapshot(delete()).await?;
    assert!(!folder.path().join(&snapshot).exists());
    client.delete_snapshot(delete()).await?;
    init(&mut client).await?;
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn version_2_is_served_though_not_listed() -> anyhow::Result<()> {
    let folder = TempDir::new()?;
    std::fs::write(folder.path().join("snapshot-v"), "{}")?;
    let specimen = Start::new(SPECIMEN).env(e2e::FOLDER, folder.path()).start().await?;
    let mut client = V2Client::new(specimen.channel());
    let plugin = || names::VOLUMES_V2.to_owned();
    client.init(VolumeSnapshotterInitRequest { plugin: plugin(), config: HashMap::new() }).await?;
    let progress = |snapshot: &str| v2::VolumeSnapshotterProgressRequest {
        plugin: plugin(),
        snapshot_id: snapshot.to_owned(),
    };
    let done = client.progress(progress("snapshot-v")).await?.into_inner().progress.expect("the message");
    assert_eq!((done.completed, done.err.as_str(), done.n_total), (true, "", 10));
    let gone = client.progress(progress("snapshot-w")).await?.into_inner().progress.expect("the message");
    assert_eq!((gone.completed, gone.err.as_str()), (true, "snapshot snapshot-w is gone"));
    client
        .cancel(v2::VolumeSnapshotterCancelRequest { plugin: plugin(), snapshot_id: "snapshot-v".to_owned() })
        .await?;
    assert!(folder.path().join("snapshot-v").exists(), "the backup still refers to it");
    assert!(specimen.list().await?.iter().all(|listed| listed.kind != "VolumeSnapshotterV2"));
    specimen.stop().await?;
    Ok(())
}
