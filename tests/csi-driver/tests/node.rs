//! Volumes in pods: bind mounts, which need the right to mount.

mod support;

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use csi_driver::csi::{DeleteVolumeRequest, NodePublishVolumeRequest, NodeUnpublishVolumeRequest};
use support::{Harness, mount};
use tonic::Code;

fn publish(volume_id: &str, target: &Path, readonly: bool) -> NodePublishVolumeRequest {
    NodePublishVolumeRequest {
        volume_id: volume_id.to_owned(),
        target_path: target.display().to_string(),
        volume_capability: Some(mount()),
        readonly,
        ..Default::default()
    }
}

/// Unmounts also when an assertion fails.
struct Unmount<'a>(&'a Path);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

#[tokio::test]
async fn a_published_volume_shows_its_content_and_can_not_be_deleted() -> io::Result<()> {
    let driver = Harness::start().await;
    let volume = driver.volume("v").await.volume_id;
    fs::write(driver.content(&volume).join("file"), b"data")?;
    let pod = tempfile::tempdir()?;
    let target = pod.path().join("mount");
    let _unmount = Unmount(&target);
    match driver.node().node_publish_volume(publish(&volume, &target, true)).await {
        Err(status) if status.message().contains("Operation not permitted") => {
            return writeln!(io::stderr(), "SKIPPED node test: {}", status.message());
        }
        reply => reply.expect("publish"),
    };
    driver.node().node_publish_volume(publish(&volume, &target, true)).await.expect("publish again");
    assert_eq!(fs::read(target.join("file"))?, b"data");
    let error = fs::write(target.join("file"), b"other").expect_err("read-only");
    assert_eq!(error.kind(), io::ErrorKind::ReadOnlyFilesystem);
    let other = driver.node().node_publish_volume(publish(&volume, &target, false)).await;
    assert_eq!(other.expect_err("other flag").code(), Code::AlreadyExists);

    let delete = DeleteVolumeRequest { volume_id: volume.clone(), ..Default::default() };
    let refused = driver.controller().delete_volume(delete.clone()).await.expect_err("in use");
    assert_eq!(refused.code(), Code::FailedPrecondition);

    let target_path = target.display().to_string();
    let request = NodeUnpublishVolumeRequest { volume_id: volume, target_path };
    driver.node().node_unpublish_volume(request.clone()).await.expect("unpublish");
    driver.node().node_unpublish_volume(request).await.expect("unpublish again");
    assert!(!target.exists());
    driver.controller().delete_volume(delete).await.expect("delete");
    Ok(())
}
