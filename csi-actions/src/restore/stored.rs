//! A snapshot in the storage as the archive tells of it: enough to make the objects that a restore needs.

use serde_json::Value;

use crate::keys;
use crate::object::{Content, annotation};
use crate::quantity;

/// A snapshot in the storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredSnapshot {
    /// The driver.
    pub driver: String,
    /// Its handle for the snapshot.
    pub handle: String,
    /// The class that it was taken with.
    pub class: Option<String>,
}

impl StoredSnapshot {
    /// As our backup wrote it on the claim.
    pub(super) fn of_claim(claim: &Value) -> Option<Self> {
        if !tells_of_its_snapshot(claim) {
            return None;
        }
        Self::of_annotations(claim, keys::CLAIM_DRIVER, keys::CLAIM_HANDLE)
            .map(|stored| Self { class: annotation(claim, keys::CLAIM_CLASS).map(str::to_owned), ..stored })
    }

    /// As Velero's actions, the plugin before them and ours write it on the snapshot.
    pub(super) fn of_snapshot(snapshot: &Value) -> Option<Self> {
        Self::of_annotations(snapshot, keys::DRIVER_NAME, keys::SNAPSHOT_HANDLE)
    }

    fn of_annotations(object: &Value, driver: &str, handle: &str) -> Option<Self> {
        let (driver, handle) = (annotation(object, driver)?, annotation(object, handle)?);
        Some(Self { driver: driver.to_owned(), handle: handle.to_owned(), class: None })
    }
}

/// The policy that our backup wrote for the volume made from the snapshot.
pub(super) fn reclaim_policy(claim: &Value) -> Option<&str> {
    annotation(claim, keys::CLAIM_RECLAIM_POLICY).filter(|_| tells_of_its_snapshot(claim))
}

/// Whether what our backup wrote on the claim is of the snapshot that the claim names. What an earlier backup wrote would
/// be the data of another day.
fn tells_of_its_snapshot(claim: &Value) -> bool {
    let snapshot = annotation(claim, keys::CLAIM_SNAPSHOT);
    snapshot.is_some() && snapshot == annotation(claim, keys::VOLUME_SNAPSHOT_NAME)
}

/// The least size in bytes of a volume for a claim that is made from a snapshot: the largest that the archived claim,
/// the restored snapshot and its content tell.
///
/// Where none of them tells the snapshot's size, it is the capacity that the claim had; a driver may have given more than
/// was asked for, and the snapshot then is as large.
pub(super) fn needed_size(claim: &Value, snapshot: Option<&Value>, content: Option<&Value>) -> Option<u64> {
    let told = |object: Option<&Value>, key: &str| quantity::bytes(annotation(object?, key)?);
    let of_snapshot = [
        told(Some(claim).filter(|claim| tells_of_its_snapshot(claim)), keys::CLAIM_SIZE),
        told(snapshot, keys::RESTORE_SIZE),
        told(snapshot, keys::RESTORE_SIZE_BEFORE),
        content.and_then(|content| Content(content).restore_size()),
    ];
    let largest = of_snapshot.into_iter().flatten().filter(|size| *size > 0).max();
    largest.or_else(|| {
        let capacity = claim.pointer("/status/capacity/storage").and_then(Value::as_str)?;
        quantity::bytes(capacity)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn i41_a_claim_of_ours_tells_all_and_one_of_velero_s_own_nothing() {
        let mut ours = json!({"metadata": {"annotations": {
            "velero.io/volume-snapshot-name": "s", "csi-actions.velero-rs.io/snapshot-name": "s",
            "csi-actions.velero-rs.io/snapshot-driver": "d.csi", "csi-actions.velero-rs.io/snapshot-handle": "h",
            "csi-actions.velero-rs.io/snapshot-class": "k"}}});
        let stored = StoredSnapshot::of_claim(&ours).unwrap();
        assert_eq!(
            (stored.driver.as_str(), stored.handle.as_str(), stored.class.as_deref()),
            ("d.csi", "h", Some("k"))
        );
        let stock = json!({"metadata": {"annotations": {"velero.io/volume-snapshot-name": "s"}}});
        assert_eq!(StoredSnapshot::of_claim(&stock), None);
        ours["metadata"]["annotations"]["velero.io/volume-snapshot-name"] = "of a later backup".into();
        assert_eq!(StoredSnapshot::of_claim(&ours), None, "never the data of another day");
    }

    #[test]
    fn i50_the_policy_of_the_new_volume_is_that_of_the_snapshot_s_own_backup() {
        let claim = |named: &str| {
            json!({"metadata": {"annotations": {"csi-actions.velero-rs.io/volume-reclaim-policy": "Retain",
                "csi-actions.velero-rs.io/snapshot-name": "s", "velero.io/volume-snapshot-name": named}}})
        };
        assert_eq!(reclaim_policy(&claim("s")), Some("Retain"));
        assert_eq!(reclaim_policy(&claim("of a later backup")), None);
        assert_eq!(reclaim_policy(&json!({})), None);
    }

    #[test]
    fn i53_a_snapshot_tells_driver_and_handle_or_nothing() {
        let snapshot = |annotations: Value| json!({"metadata": {"annotations": annotations}});
        let both = json!({"velero.io/csi-driver-name": "d.csi", "velero.io/csi-volumesnapshot-handle": "h"});
        assert_eq!(StoredSnapshot::of_snapshot(&snapshot(both)).unwrap().handle, "h");
        for half in
            [json!({"velero.io/csi-driver-name": "d"}), json!({"velero.io/csi-volumesnapshot-handle": "h"})]
        {
            assert_eq!(StoredSnapshot::of_snapshot(&snapshot(half)), None);
        }
        assert_eq!(StoredSnapshot::of_snapshot(&json!({"metadata": {}})), None);
    }

    #[test]
    fn i45_c28_c29_the_size_is_the_largest_that_is_told_else_the_capacity_of_the_claim() {
        let claim = |size: &str| {
            json!({"metadata": {"annotations": {"csi-actions.velero-rs.io/restore-size": size,
                    "velero.io/volume-snapshot-name": "s", "csi-actions.velero-rs.io/snapshot-name": "s"}},
                "status": {"capacity": {"storage": "3Gi"}}})
        };
        let snapshot = |key: &str, size: &str| json!({"metadata": {"annotations": {(format!("velero.io/{key}")): size}}});
        let now = |size| snapshot("csi-volumesnapshot-restore-size", size);
        let before = snapshot("vsi-volumesnapshot-restore-size", "2Gi");
        let content = |size: u64| json!({"status": {"restoreSize": size}});
        let bare = json!({});
        assert_eq!(needed_size(&claim("1Gi"), None, None), Some(1 << 30));
        assert_eq!(needed_size(&claim("1Gi"), Some(&now("2Gi")), None), Some(2 << 30));
        assert_eq!(needed_size(&bare, Some(&before), None), Some(2 << 30));
        assert_eq!(needed_size(&bare, Some(&now("1Gi")), Some(&content(5 << 30))), Some(5 << 30));
        assert_eq!(needed_size(&bare, None, Some(&content(0))), None);
        assert_eq!(needed_size(&claim("0"), None, Some(&content(0))), Some(3 << 30));
        assert_eq!(needed_size(&claim("odd"), None, None), Some(3 << 30));
        assert_eq!(needed_size(&bare, None, None), None);
        let mut stale = claim("9Gi");
        stale["metadata"]["annotations"]["csi-actions.velero-rs.io/snapshot-name"] =
            "of an earlier backup".into();
        assert_eq!(needed_size(&stale, None, None), Some(3 << 30));
    }
}
