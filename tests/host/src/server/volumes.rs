//! What is noted of the volumes that went through a backup.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::store::{VolumeInfo, VolumeKept};

/// The entry of a persistent volume that nothing of the server's own took a snapshot of.
pub(crate) fn skipped(volume: &Value) -> VolumeInfo {
    let text = |pointer| volume.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let labels = volume.pointer("/metadata/labels").and_then(Value::as_object);
    let label = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    let labels: Option<BTreeMap<_, _>> = labels.map(|labels| labels.iter().filter_map(label).collect());
    VolumeInfo {
        pvc_name: text("/spec/claimRef/name"),
        pvc_namespace: text("/spec/claimRef/namespace"),
        pv_name: text("/metadata/name"),
        snapshot_data_moved: false,
        preserve_local_snapshot: false,
        skipped: true,
        skipped_reason: "volumeSnapshot: no applicable volumesnapshotter found;".to_owned(),
        start_timestamp: None,
        pv_info: Some(VolumeKept { reclaim_policy: text("/spec/persistentVolumeReclaimPolicy"), labels }),
    }
}
