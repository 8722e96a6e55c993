//! VolumeSnapshotter: snapshots of the volumes behind PersistentVolumes, by the storage's own API.

use std::collections::BTreeMap;

use async_trait::async_trait;
use tonic::{Request, Response, Status};

use super::service::kind_service;
use super::{Handlers, item};
use crate::error::Result;
use crate::generated::generated as wire;
use crate::model::Item;

/// What a volume must be like when it is made again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VolumeInfo {
    /// The storage's name for the kind of volume.
    pub volume_type: String,
    /// The I/O operations per second that were asked for, where the kind of volume has such a number.
    pub iops: Option<u64>,
}

/// Takes and restores snapshots of volumes. Every method may be called after the process died, so after another
/// [`init`](Self::init) in a new one.
#[async_trait]
pub trait VolumeSnapshotter: Send + Sync + 'static {
    /// The volume snapshot location's `config` (and `credentialsFile`, a path, where set); may be empty. Velero calls it
    /// again on one instance when there are several locations; the newest configuration holds.
    ///
    /// # Errors
    ///
    /// The volume is not snapshotted or restored.
    async fn init(&self, config: BTreeMap<String, String>) -> Result<()>;

    /// Makes a volume of the given kind from a snapshot, in `zone`; its id.
    ///
    /// # Errors
    ///
    /// The PersistentVolume is not restored.
    async fn create_volume_from_snapshot(
        &self,
        snapshot: &str,
        info: VolumeInfo,
        zone: &str,
    ) -> Result<String>;

    /// What a volume is like, so that it can be made again.
    ///
    /// # Errors
    ///
    /// The volume is not snapshotted and the backup becomes `PartiallyFailed`.
    async fn volume_info(&self, volume: &str, zone: &str) -> Result<VolumeInfo>;

    /// Takes a snapshot; its id. `tags` are the backup's labels, `velero.io/backup` and `velero.io/pv`.
    ///
    /// # Errors
    ///
    /// The backup becomes `PartiallyFailed`.
    async fn create_snapshot(
        &self,
        volume: &str,
        zone: &str,
        tags: BTreeMap<String, String>,
    ) -> Result<String>;

    /// Deletes a snapshot. One that doesn't exist is fine.
    ///
    /// # Errors
    ///
    /// The deletion of the backup fails.
    async fn delete_snapshot(&self, snapshot: &str) -> Result<()>;

    /// The id of the volume behind a PersistentVolume; `None` where it is another storage's.
    ///
    /// # Errors
    ///
    /// The backup becomes `PartiallyFailed`.
    async fn volume_id(&self, volume: Item) -> Result<Option<String>>;

    /// The PersistentVolume with another volume behind it.
    ///
    /// # Errors
    ///
    /// The PersistentVolume is not restored.
    async fn set_volume_id(&self, volume: Item, id: &str) -> Result<Item>;
}

kind_service!(VolumeSnapshotter, wire::volume_snapshotter_server::VolumeSnapshotterServer, |_| None);

/// The calls that both versions share, so that each service is only their list.
impl<T: VolumeSnapshotter + ?Sized> Handlers<T> {
    pub(super) async fn init_any(
        &self,
        request: wire::VolumeSnapshotterInitRequest,
    ) -> Result<Response<wire::Empty>, Status> {
        self.call(&request.plugin, "init", |snapshotter| async move {
            snapshotter.init(request.config.into_iter().collect()).await?;
            Ok(wire::Empty {})
        })
        .await
    }

    pub(super) async fn create_volume_any(
        &self,
        request: wire::CreateVolumeRequest,
    ) -> Result<Response<wire::CreateVolumeResponse>, Status> {
        let wire::CreateVolumeRequest { plugin, snapshot_id, volume_type, volume_az, iops } = request;
        let info = VolumeInfo { volume_type, iops: u64::try_from(iops).ok().filter(|&iops| iops > 0) };
        self.call(&plugin, "create_volume_from_snapshot", |snapshotter| async move {
            let volume_id = snapshotter.create_volume_from_snapshot(&snapshot_id, info, &volume_az).await?;
            Ok(wire::CreateVolumeResponse { volume_id })
        })
        .await
    }

    pub(super) async fn volume_info_any(
        &self,
        request: wire::GetVolumeInfoRequest,
    ) -> Result<Response<wire::GetVolumeInfoResponse>, Status> {
        let wire::GetVolumeInfoRequest { plugin, volume_id, volume_az } = request;
        self.call(&plugin, "volume_info", |snapshotter| async move {
            let VolumeInfo { volume_type, iops } = snapshotter.volume_info(&volume_id, &volume_az).await?;
            let iops = i64::try_from(iops.unwrap_or_default()).unwrap_or(i64::MAX);
            Ok(wire::GetVolumeInfoResponse { volume_type, iops })
        })
        .await
    }

    pub(super) async fn create_snapshot_any(
        &self,
        request: wire::CreateSnapshotRequest,
    ) -> Result<Response<wire::CreateSnapshotResponse>, Status> {
        let wire::CreateSnapshotRequest { plugin, volume_id, volume_az, tags } = request;
        self.call(&plugin, "create_snapshot", |snapshotter| async move {
            let tags = tags.into_iter().collect();
            let snapshot_id = snapshotter.create_snapshot(&volume_id, &volume_az, tags).await?;
            Ok(wire::CreateSnapshotResponse { snapshot_id })
        })
        .await
    }

    pub(super) async fn delete_snapshot_any(
        &self,
        request: wire::DeleteSnapshotRequest,
    ) -> Result<Response<wire::Empty>, Status> {
        self.call(&request.plugin, "delete_snapshot", |snapshotter| async move {
            snapshotter.delete_snapshot(&request.snapshot_id).await?;
            Ok(wire::Empty {})
        })
        .await
    }

    pub(super) async fn volume_id_any(
        &self,
        request: wire::GetVolumeIdRequest,
    ) -> Result<Response<wire::GetVolumeIdResponse>, Status> {
        self.call(&request.plugin, "volume_id", |snapshotter| async move {
            let id = snapshotter.volume_id(item(request.persistent_volume)?).await?;
            // "" is the wire's word for another storage's volume.
            Ok(wire::GetVolumeIdResponse { volume_id: id.unwrap_or_default() })
        })
        .await
    }

    pub(super) async fn set_volume_id_any(
        &self,
        request: wire::SetVolumeIdRequest,
    ) -> Result<Response<wire::SetVolumeIdResponse>, Status> {
        let wire::SetVolumeIdRequest { plugin, persistent_volume, volume_id } = request;
        self.call(&plugin, "set_volume_id", |snapshotter| async move {
            let volume = snapshotter.set_volume_id(item(persistent_volume)?, &volume_id).await?;
            Ok(wire::SetVolumeIdResponse { persistent_volume: volume.into_bytes() })
        })
        .await
    }
}

/// Serves one version: the seven calls that both have, passed on to those above, and `$more`.
macro_rules! serve {
    ($service:path, $plugin:path, { $($more:tt)* }) => {
        #[async_trait]
        impl $service for Handlers<dyn $plugin> {
            async fn init(
                &self,
                request: Request<crate::generated::generated::VolumeSnapshotterInitRequest>,
            ) -> Result<Response<crate::generated::generated::Empty>, Status> {
                self.init_any(request.into_inner()).await
            }

            async fn create_volume_from_snapshot(
                &self,
                request: Request<crate::generated::generated::CreateVolumeRequest>,
            ) -> Result<Response<crate::generated::generated::CreateVolumeResponse>, Status> {
                self.create_volume_any(request.into_inner()).await
            }

            async fn get_volume_info(
                &self,
                request: Request<crate::generated::generated::GetVolumeInfoRequest>,
            ) -> Result<Response<crate::generated::generated::GetVolumeInfoResponse>, Status> {
                self.volume_info_any(request.into_inner()).await
            }

            async fn create_snapshot(
                &self,
                request: Request<crate::generated::generated::CreateSnapshotRequest>,
            ) -> Result<Response<crate::generated::generated::CreateSnapshotResponse>, Status> {
                self.create_snapshot_any(request.into_inner()).await
            }

            async fn delete_snapshot(
                &self,
                request: Request<crate::generated::generated::DeleteSnapshotRequest>,
            ) -> Result<Response<crate::generated::generated::Empty>, Status> {
                self.delete_snapshot_any(request.into_inner()).await
            }

            async fn get_volume_id(
                &self,
                request: Request<crate::generated::generated::GetVolumeIdRequest>,
            ) -> Result<Response<crate::generated::generated::GetVolumeIdResponse>, Status> {
                self.volume_id_any(request.into_inner()).await
            }

            async fn set_volume_id(
                &self,
                request: Request<crate::generated::generated::SetVolumeIdRequest>,
            ) -> Result<Response<crate::generated::generated::SetVolumeIdResponse>, Status> {
                self.set_volume_id_any(request.into_inner()).await
            }

            $($more)*
        }
    };
}
pub(super) use serve;

serve!(wire::volume_snapshotter_server::VolumeSnapshotter, VolumeSnapshotter, {});
