//! The volume snapshotter, in both versions: snapshots are files of the folder, so they outlive the process.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::json;
use velero_plugin::storage::{VolumeInfo, VolumeSnapshotter, VolumeSnapshotterV2};
use velero_plugin::{Error, Item, Progress, Result, async_trait};

use crate::folder;

#[derive(Default)]
pub(crate) struct Volumes {
    initialised: OnceLock<()>,
}

impl Volumes {
    fn ready(&self) -> Result<()> {
        self.initialised.get().copied().ok_or_else(|| Error::new("init was not called in this process"))
    }
}

#[async_trait]
impl VolumeSnapshotter for Volumes {
    async fn init(&self, _: BTreeMap<String, String>) -> Result<()> {
        self.initialised.get_or_init(|| ());
        Ok(())
    }

    async fn create_volume_from_snapshot(
        &self,
        snapshot: &str,
        info: VolumeInfo,
        zone: &str,
    ) -> Result<String> {
        self.ready()?;
        let iops = info.iops.map_or_else(|| "none".to_owned(), |iops| iops.to_string());
        Ok(format!("{snapshot}|{}|{zone}|{iops}", info.volume_type))
    }

    /// A volume called `panic` panics; one called `slow-…` has no number of operations.
    async fn volume_info(&self, volume: &str, _: &str) -> Result<VolumeInfo> {
        self.ready()?;
        assert_ne!(volume, "panic", "no such volume");
        let iops = (!volume.starts_with("slow")).then_some(3000);
        Ok(VolumeInfo { volume_type: "gp3".to_owned(), iops })
    }

    async fn create_snapshot(&self, volume: &str, _: &str, tags: BTreeMap<String, String>) -> Result<String> {
        self.ready()?;
        let id = format!("snapshot-{volume}");
        folder::write(&id, &json!({"tags": tags}))?;
        Ok(id)
    }

    async fn delete_snapshot(&self, snapshot: &str) -> Result<()> {
        self.ready()?;
        folder::remove(snapshot)
    }

    async fn volume_id(&self, volume: Item) -> Result<Option<String>> {
        Ok(volume.text_at(&["spec", "csi", "volumeHandle"]).map(str::to_owned))
    }

    async fn set_volume_id(&self, volume: Item, id: &str) -> Result<Item> {
        Ok(volume.edited(|volume| volume.set(&["spec", "csi", "volumeHandle"], id))?)
    }
}

#[async_trait]
impl VolumeSnapshotterV2 for Volumes {
    async fn progress(&self, snapshot: &str) -> Result<Progress> {
        self.ready()?;
        match folder::read(snapshot)? {
            Some(_) => Ok(Progress::completed().amount(10, 10, "Bytes")),
            None => Ok(Progress::failed(format!("snapshot {snapshot} is gone"))),
        }
    }
}
