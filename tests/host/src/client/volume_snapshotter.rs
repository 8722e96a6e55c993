//! Snapshots of volumes by a plugin.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::Value;
use velero_plugin::client::proto::generated as wire;
use velero_plugin::client::proto::generated::volume_snapshotter_client::VolumeSnapshotterClient as Client;

use super::error::CallError;
use super::plugin::{Initialized, Plugin, connect};
use crate::go::json;

/// A volume snapshotter that is initialised in every process that serves it.
pub struct VolumeSnapshotter {
    plugin: Plugin,
    config: HashMap<String, String>,
    initialized: Initialized,
}

/// What a volume is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeInfo {
    /// Its type, in the provider's words.
    pub volume_type: String,
    /// Its provisioned operations per second; 0 on the wire is none.
    pub iops: Option<i64>,
}

impl VolumeSnapshotter {
    /// A snapshotter with the configuration of its location. It is initialised before the first call.
    pub fn new(plugin: Plugin, config: BTreeMap<String, String>) -> Self {
        Self { plugin, config: config.into_iter().collect(), initialized: Initialized::default() }
    }

    /// Calls `Init` when this process has not seen it.
    ///
    /// # Errors
    ///
    /// When the plugin refuses the configuration.
    pub async fn init(&self) -> Result<(), CallError> {
        let config = self.config.clone();
        let init = |plugin: Plugin| async move {
            let call = |channel, plugin| async move {
                connect!(Client<_>, channel)
                    .init(wire::VolumeSnapshotterInitRequest { plugin, config })
                    .await?;
                Ok(())
            };
            plugin.call("Init", call).await
        };
        self.initialized.ensure(&self.plugin, init).await
    }

    /// The provider's id of a persistent volume; empty when the volume is not of this provider.
    ///
    /// # Errors
    ///
    /// When the call failed; the server asks the next location.
    pub async fn get_volume_id(&self, persistent_volume: &Value) -> Result<String, CallError> {
        self.init().await?;
        let persistent_volume = json::compact(persistent_volume).into();
        let call = |channel, plugin| async move {
            let request = wire::GetVolumeIdRequest { plugin, persistent_volume };
            Ok(connect!(Client<_>, channel).get_volume_id(request).await?.into_inner().volume_id)
        };
        self.plugin.call("GetVolumeID", call).await
    }

    /// The persistent volume with another volume behind it.
    ///
    /// # Errors
    ///
    /// When the call failed or the reply holds no object.
    pub async fn set_volume_id(
        &self,
        persistent_volume: &Value,
        volume_id: &str,
    ) -> Result<Value, CallError> {
        self.init().await?;
        let persistent_volume = json::compact(persistent_volume).into();
        let volume_id = volume_id.to_owned();
        let call = |channel, plugin| async move {
            let request = wire::SetVolumeIdRequest { plugin, persistent_volume, volume_id };
            let reply = connect!(Client<_>, channel).set_volume_id(request).await?.into_inner();
            Ok(json::object(&reply.persistent_volume)?)
        };
        self.plugin.call("SetVolumeID", call).await
    }

    /// What a volume is.
    ///
    /// # Errors
    ///
    /// When the call failed; the volume's item fails then.
    pub async fn get_volume_info(&self, volume_id: &str, zone: &str) -> Result<VolumeInfo, CallError> {
        self.init().await?;
        let (volume_id, volume_az) = (volume_id.to_owned(), zone.to_owned());
        let call = |channel, plugin| async move {
            let request = wire::GetVolumeInfoRequest { plugin, volume_id, volume_az };
            let reply = connect!(Client<_>, channel).get_volume_info(request).await?.into_inner();
            let iops = Some(reply.iops).filter(|&iops| iops != 0);
            Ok(VolumeInfo { volume_type: reply.volume_type, iops })
        };
        self.plugin.call("GetVolumeInfo", call).await
    }

    /// Takes a snapshot and gives back its id.
    ///
    /// # Errors
    ///
    /// When the call failed; the volume's item fails then.
    pub async fn create_snapshot(
        &self,
        volume_id: &str,
        zone: &str,
        tags: &BTreeMap<String, String>,
    ) -> Result<String, CallError> {
        self.init().await?;
        let (volume_id, volume_az) = (volume_id.to_owned(), zone.to_owned());
        let tags = tags.clone().into_iter().collect();
        let call = |channel, plugin| async move {
            let request = wire::CreateSnapshotRequest { plugin, volume_id, volume_az, tags };
            Ok(connect!(Client<_>, channel).create_snapshot(request).await?.into_inner().snapshot_id)
        };
        self.plugin.call("CreateSnapshot", call).await
    }

    /// Deletes a snapshot; also called with an empty id, for one that failed.
    ///
    /// # Errors
    ///
    /// When the call failed.
    pub async fn delete_snapshot(&self, snapshot_id: &str) -> Result<(), CallError> {
        self.init().await?;
        let snapshot_id = snapshot_id.to_owned();
        let call = |channel, plugin| async move {
            let request = wire::DeleteSnapshotRequest { plugin, snapshot_id };
            connect!(Client<_>, channel).delete_snapshot(request).await?;
            Ok(())
        };
        self.plugin.call("DeleteSnapshot", call).await
    }

    /// Makes a volume of a snapshot and gives back its id.
    ///
    /// # Errors
    ///
    /// When the call failed; the volume is not restored then.
    pub async fn create_volume_from_snapshot(
        &self,
        snapshot_id: &str,
        volume_type: &str,
        zone: &str,
        iops: Option<i64>,
    ) -> Result<String, CallError> {
        self.init().await?;
        let (snapshot_id, volume_type) = (snapshot_id.to_owned(), volume_type.to_owned());
        let (volume_az, iops) = (zone.to_owned(), iops.unwrap_or_default());
        let call = |channel, plugin| async move {
            let request = wire::CreateVolumeRequest { plugin, snapshot_id, volume_type, volume_az, iops };
            Ok(connect!(Client<_>, channel)
                .create_volume_from_snapshot(request)
                .await?
                .into_inner()
                .volume_id)
        };
        self.plugin.call("CreateVolumeFromSnapshot", call).await
    }
}
