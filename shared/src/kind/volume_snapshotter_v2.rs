//! VolumeSnapshotter, version 2: version 1 with progress. Designed for Velero, in no release yet.

use async_trait::async_trait;
use tonic::{Request, Response, Status};

use super::Handlers;
use super::service::kind_service;
use super::volume_snapshotter::{VolumeSnapshotter, serve};
use crate::error::Result;
use crate::generated::v2 as wire;
use crate::model::Progress;

/// A [`VolumeSnapshotter`] whose snapshots are ready only some time after they were taken.
#[async_trait]
pub trait VolumeSnapshotterV2: VolumeSnapshotter {
    /// How far a snapshot is. Asked in a new process, after [`init`](VolumeSnapshotter::init).
    ///
    /// # Errors
    ///
    /// Only where asking again is pointless. A snapshot that failed is [`Progress::failed`].
    async fn progress(&self, snapshot: &str) -> Result<Progress>;

    /// Gives a snapshot up. The backup still refers to it, so it must not be deleted.
    ///
    /// # Errors
    ///
    /// Seen nowhere.
    async fn cancel(&self, _snapshot: &str) -> Result<()> {
        Ok(())
    }
}

kind_service!(VolumeSnapshotterV2, wire::volume_snapshotter_server::VolumeSnapshotterServer, |_| None);

serve!(wire::volume_snapshotter_server::VolumeSnapshotter, VolumeSnapshotterV2, {
    async fn progress(
        &self,
        request: Request<wire::VolumeSnapshotterProgressRequest>,
    ) -> Result<Response<wire::VolumeSnapshotterProgressResponse>, Status> {
        let wire::VolumeSnapshotterProgressRequest { plugin, snapshot_id } = request.into_inner();
        self.call(&plugin, "progress", |snapshotter| async move {
            let progress = snapshotter.progress(&snapshot_id).await?;
            Ok(wire::VolumeSnapshotterProgressResponse { progress: Some(progress.into_wire()) })
        })
        .await
    }

    async fn cancel(
        &self,
        request: Request<wire::VolumeSnapshotterCancelRequest>,
    ) -> Result<Response<()>, Status> {
        let wire::VolumeSnapshotterCancelRequest { plugin, snapshot_id } = request.into_inner();
        self.call(&plugin, "cancel", |snapshotter| async move { snapshotter.cancel(&snapshot_id).await })
            .await
    }
});
