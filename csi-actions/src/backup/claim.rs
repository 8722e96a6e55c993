//! Whether a claim is one to take a snapshot of, as far as the claim and the backup tell.

use serde_json::Value;
use velero_plugin::Backup;

use crate::object::text;
use crate::quantity;

/// What to do with a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision<'a> {
    /// Take a snapshot if this volume is of a CSI driver.
    Take {
        /// The volume's name.
        volume: &'a str,
    },
    /// Archive the claim as it is; the text says why.
    Leave(&'static str),
    /// Archive it as it is, and tell the user: it has no volume yet, so there is no data to back up.
    Pending,
    /// Fail the item: its volume is gone, so there is nothing to back up although there should be.
    Lost,
}

/// Decides about `claim` in `backup`.
pub(super) fn decide<'a>(claim: &'a Value, backup: &Backup) -> Decision<'a> {
    if backup.phase().is_finalizing() {
        return Decision::Leave("the backup is being finalized");
    }
    if backup.snapshot_move_data() {
        return Decision::Leave("snapshotMoveData: a data mover takes the snapshots of this backup");
    }
    if backup.snapshot_volumes() == Some(false) {
        return Decision::Leave("snapshotVolumes is false");
    }
    let phase = text(claim, &["status", "phase"]).unwrap_or_default();
    match (phase, text(claim, &["spec", "volumeName"])) {
        ("Lost", _) => Decision::Lost,
        ("Bound", Some(volume)) => Decision::Take { volume },
        _ => Decision::Pending,
    }
}

/// The capacity of the volume in bytes, as the volume says it, else the claim.
pub(super) fn capacity(volume: &Value, claim: &Value) -> Option<u64> {
    let places = [
        (volume, ["spec", "capacity"].as_slice()),
        (claim, &["status", "capacity"]),
        (claim, &["spec", "resources", "requests"]),
    ];
    places.into_iter().find_map(|(object, path)| {
        let path: Vec<&str> = path.iter().copied().chain(["storage"]).collect();
        quantity::bytes(text(object, &path)?)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "a value written at the call reads best")]

    use super::*;
    use serde_json::json;

    fn claim() -> Value {
        json!({"metadata": {"name": "data", "namespace": "a", "uid": "c1"},
            "spec": {"volumeName": "pv1", "resources": {"requests": {"storage": "1Gi"}}}, "status": {"phase": "Bound"}})
    }

    fn decide_in(backup: Value) -> Decision<'static> {
        let claim: &'static Value = Box::leak(Box::new(claim()));
        decide(claim, &Backup::from(backup))
    }

    #[test]
    fn a_bound_claim_is_taken_also_without_a_storage_class() {
        assert_eq!(decide_in(json!({})), Decision::Take { volume: "pv1" });
        assert_eq!(decide_in(json!({"spec": {"snapshotVolumes": true}})), Decision::Take { volume: "pv1" });
    }

    #[test]
    fn c14_c44_data_movers_finalizing_and_snapshot_volumes_false_leave_the_claim_alone() {
        for backup in [
            json!({"spec": {"snapshotMoveData": true}}),
            json!({"spec": {"snapshotVolumes": false}}),
            json!({"status": {"phase": "Finalizing"}}),
            json!({"status": {"phase": "FinalizingPartiallyFailed"}}),
        ] {
            assert!(matches!(decide_in(backup.clone()), Decision::Leave(_)), "{backup}");
        }
    }

    #[test]
    fn i32_a_pending_claim_is_no_error_and_a_lost_one_is() {
        let backup = Backup::from(json!({}));
        for (phase, decision) in
            [("Pending", Decision::Pending), ("", Decision::Pending), ("Lost", Decision::Lost)]
        {
            let mut claim = claim();
            claim["status"]["phase"] = phase.into();
            assert_eq!(decide(&claim, &backup), decision, "{phase}");
        }
        let mut unbound = claim();
        unbound["spec"]["volumeName"] = "".into();
        assert_eq!(decide(&unbound, &backup), Decision::Pending);
    }

    #[test]
    fn the_capacity_is_that_of_the_volume() {
        let volume = json!({"spec": {"capacity": {"storage": "2Gi"}}});
        assert_eq!(capacity(&volume, &claim()), Some(2 << 30));
        assert_eq!(capacity(&json!({}), &claim()), Some(1 << 30));
        assert_eq!(capacity(&json!({}), &json!({})), None);
    }
}
