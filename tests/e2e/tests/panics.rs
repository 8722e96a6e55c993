//! Panics: each fails one call, tells why, and is the only one to suffer.

use std::process::Command;

use e2e::item::pod;
use e2e::{Specimen, Start, names};
use tonic::{Code, Status};
use velero_host::log::Level;
use velero_plugin::client::Place;
use velero_plugin::client::proto::generated::backup_item_action_client::BackupItemActionClient;
use velero_plugin::client::proto::generated::delete_item_action_client::DeleteItemActionClient;
use velero_plugin::client::proto::generated::object_store_client::ObjectStoreClient;
use velero_plugin::client::proto::generated::restore_item_action_client::RestoreItemActionClient as RestoreV1Client;
use velero_plugin::client::proto::generated::volume_snapshotter_client::VolumeSnapshotterClient;
use velero_plugin::client::proto::v1::item_block_action_client::ItemBlockActionClient;
use velero_plugin::client::proto::v2::restore_item_action_client::RestoreItemActionClient;
use velero_plugin::client::proto::{generated, v1, v2};

const SPECIMEN: &str = env!("CARGO_BIN_EXE_specimen");

#[tokio::test]
async fn a_panic_fails_one_call_and_the_process_lives() -> anyhow::Result<()> {
    let specimen = Start::bare(SPECIMEN).start().await?;
    let status = specimen.execute(pod("a").doing("panic")).await.expect_err("a panic");
    assert_eq!((status.code(), status.message()), (Code::Aborted, "plugin panicked: boom 7"));
    let place = Place::of(&status).expect("a place");
    assert!(place.file.ends_with("specimen/order.rs") && place.line > 0, "{place:?}");
    assert!(place.function.ends_with("Backup::execute"), "{place:?}");
    assert_eq!(specimen.execute(pod("b")).await?.item, pod("b").bytes());

    let (stopped, log) = specimen.stop().await?;
    assert!(stopped.status.success());
    let entries = e2e::specimen::entries(&log)?;
    let errors: Vec<_> = entries.iter().filter(|entry| entry.level >= Level::Warn).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!((errors[0].level, errors[0].message.as_str()), (Level::Error, "plugin panicked: boom 7"));
    Ok(())
}

#[tokio::test]
async fn a_panic_leaves_the_calls_beside_it_alone() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let slow = pod("slow").doing("sleep").with("500");
    let beside = specimen.execute(slow.clone());
    let panics = async {
        for _ in 0..20 {
            specimen.execute(pod("a").doing("panic")).await.expect_err("a panic");
        }
    };
    let (beside, ()) = tokio::join!(beside, panics);
    assert_eq!(beside?.item, slow.bytes());
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_panic_without_a_text_is_told_as_one() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let status = specimen.execute(pod("a").doing("panic-any")).await.expect_err("a panic");
    assert_eq!((status.code(), status.message()), (Code::Aborted, "plugin panicked: (no text)"));
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_panic_in_the_middle_of_logging_is_told_too() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let call = specimen.execute(pod("a").doing("panic-in-field"));
    let status = tokio::time::timeout(std::time::Duration::from_secs(20), call).await?.expect_err("a panic");
    assert_eq!((status.code(), status.message()), (Code::Aborted, "plugin panicked: unprintable"));
    specimen.execute(pod("b")).await?;
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_maker_that_panics_fails_its_call_and_is_tried_again() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).env(e2e::REGISTERS, "unmakeable").start().await?;
    let request = || v2::ExecuteRequest {
        plugin: names::UNMAKEABLE.to_owned(),
        item: pod("a").bytes(),
        ..Default::default()
    };
    let mut client = specimen.backup_actions();
    let status = client.execute(request()).await.expect_err("a panic");
    assert_eq!((status.code(), status.message()), (Code::Aborted, "plugin panicked: no config yet"));
    client.execute(request()).await?;
    specimen.stop().await?;
    Ok(())
}

/// What each kind answers when its action panics.
async fn panics(specimen: &Specimen) -> Vec<(&'static str, Status)> {
    let channel = || specimen.channel();
    let item = || pod("a").doing("panic").bytes();
    let mut statuses = Vec::new();
    let mut failed = |kind: &'static str, status: Option<Status>| {
        statuses.push((kind, status.unwrap_or_else(|| Status::ok("no panic"))));
    };
    let request =
        generated::ExecuteRequest { plugin: names::BACKUP_V1.into(), item: item(), ..Default::default() };
    failed("BackupItemAction", BackupItemActionClient::new(channel()).execute(request).await.err());
    let request = generated::RestoreItemActionExecuteRequest {
        plugin: names::RESTORE_V1.into(),
        item: item(),
        ..Default::default()
    };
    failed("RestoreItemAction", RestoreV1Client::new(channel()).execute(request).await.err());
    let request = v2::RestoreItemActionExecuteRequest {
        plugin: names::RESTORE.into(),
        item: item(),
        ..Default::default()
    };
    failed("RestoreItemActionV2", RestoreItemActionClient::new(channel()).execute(request).await.err());
    let request = generated::DeleteItemActionExecuteRequest {
        plugin: names::DELETE.into(),
        item: item(),
        ..Default::default()
    };
    failed("DeleteItemAction", DeleteItemActionClient::new(channel()).execute(request).await.err());
    let request = v1::ItemBlockActionGetRelatedItemsRequest {
        plugin: names::RELATED.into(),
        item: item(),
        ..Default::default()
    };
    failed("ItemBlockAction", ItemBlockActionClient::new(channel()).get_related_items(request).await.err());
    let request = v2::BackupItemActionProgressRequest {
        plugin: names::BACKUP.into(),
        operation_id: "op-panic".into(),
        ..Default::default()
    };
    failed("BackupItemActionV2 progress", specimen.backup_actions().progress(request).await.err());
    let mut volumes = VolumeSnapshotterClient::new(channel());
    let init =
        generated::VolumeSnapshotterInitRequest { plugin: names::VOLUMES.into(), ..Default::default() };
    volumes.init(init).await.expect("a snapshotter");
    let request = generated::GetVolumeInfoRequest {
        plugin: names::VOLUMES.into(),
        volume_id: "panic".into(),
        ..Default::default()
    };
    failed("VolumeSnapshotter", volumes.get_volume_info(request).await.err());
    let mut objects = ObjectStoreClient::new(channel());
    let put = generated::PutObjectRequest {
        plugin: names::OBJECTS.into(),
        key: "panic/x".into(),
        body: "x".into(),
        ..Default::default()
    };
    failed("ObjectStore put", objects.put_object(futures_util::stream::iter([put])).await.err());
    let get = generated::GetObjectRequest {
        plugin: names::OBJECTS.into(),
        key: "panic-in-stream/x".into(),
        ..Default::default()
    };
    let mut stream = objects.get_object(get).await.expect("a stream").into_inner();
    assert_eq!(stream.message().await.expect("a piece").expect("a piece").data, "first");
    failed("ObjectStore get", stream.message().await.err());
    statuses
}

#[tokio::test]
async fn panics_of_every_kind_are_told_alike() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("op-panic"), r#"{"panic":true}"#)?;
    let specimen = Start::new(SPECIMEN).env(e2e::FOLDER, folder.path()).start().await?;
    for (kind, status) in panics(&specimen).await {
        assert_eq!(status.code(), Code::Aborted, "{kind}: {status:?}");
        assert!(status.message().starts_with("plugin panicked: "), "{kind}: {status:?}");
        assert!(
            Place::of(&status).is_some_and(|place| place.file.contains("specimen/")),
            "{kind}: {status:?}"
        );
    }
    specimen.execute(pod("b")).await?;
    specimen.stop().await?;
    Ok(())
}

/// That a build which unwinds is not refused shows in that these tests run.
#[test]
fn a_build_that_aborts_on_panic_is_refused() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    // The crate's dependencies are not given, so this never compiles; the refusal stands among the other errors.
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args([
            "--edition=2024",
            "--crate-type=lib",
            "--emit=metadata",
            "-Cpanic=abort",
            "--error-format=short",
        ])
        .arg("--out-dir")
        .arg(folder.path())
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/src/lib.rs"))
        .output()?;
    let stderr = String::from_utf8(output.stderr)?;
    assert!(stderr.contains("build with panic = \"unwind\""), "{stderr:.2000}");
    Ok(())
}
