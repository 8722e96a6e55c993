//! What is done with a claim: the rules, in Velero's own order.
//!
//! 1. A volume policy that matches decides, whatever else is set.
//! 2. A volume that file-system backup copies gets no snapshot.
//! 3. `snapshotVolumes: false` takes none.

use serde_json::Value;
use velero_plugin::Backup;

use super::word::Word;
use crate::object::{annotation, name, text};

/// What to do with a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Take a snapshot of this volume, which is of a CSI driver.
    Take(Value),
    /// Archive the claim as it is.
    Leave {
        /// Why.
        why: String,
        /// Who should know.
        told: Told,
    },
}

/// How loudly it is said that a claim gets no snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// It is as the user ordered.
    Quietly,
    /// There is nothing to take a snapshot of.
    Plainly,
    /// The user may expect otherwise.
    AsWarning,
}

/// Why a claim can't be archived although it should have a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The volume of the claim is gone.
    #[error("its volume is lost, so there is no data to back up")]
    Lost,
    /// The volume of the claim can't be found.
    #[error("its PersistentVolume {0} does not exist, so there is no data to back up")]
    NoVolume(String),
    /// Data movement was ordered for a volume that nobody moves.
    #[error(
        "a volume policy leaves it to this plugin, which takes snapshots and moves no data: set snapshotMoveData of the \
         backup to false, or leave the volume to Velero"
    )]
    NotMoved,
}

/// All that the decision depends on but the pods.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'a> {
    pub claim: &'a Value,
    /// The volume that a bound claim names, if it exists.
    pub volume: Option<&'a Value>,
    pub backup: &'a Backup,
    pub word: Word,
}

/// What follows from the facts.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Verdict {
    /// All is decided.
    Decided(Decision),
    /// Take a snapshot of this volume unless file-system backup copies it.
    UnlessCopied(Value),
}

/// The name of the volume that the claim is bound to.
pub(super) fn bound_volume(claim: &Value) -> Option<&str> {
    text(claim, &["spec", "volumeName"]).filter(|_| text(claim, &["status", "phase"]) == Some("Bound"))
}

/// What can be said without reading anything from the cluster, where no policy can speak.
pub(super) fn at_once(claim: &Value, backup: &Backup) -> Result<Option<Decision>, Refusal> {
    if let Some(decision) = by_backup(backup, Word::Nothing)? {
        return Ok(Some(decision));
    }
    by_phase(claim)
}

/// Decides. The order matters: an order for this volume goes before one for all volumes of the backup.
pub(super) fn decide(facts: Facts<'_>) -> Result<Verdict, Refusal> {
    let Facts { claim, volume, backup, word } = facts;
    if let Word::Leave(action) = word {
        return Ok(Verdict::Decided(quietly(&format!("the volume policy says {action}"))));
    }
    if let Some(decision) = by_backup(backup, word)? {
        return Ok(Verdict::Decided(decision));
    }
    if let Some(decision) = by_phase(claim)? {
        return Ok(Verdict::Decided(decision));
    }
    let Some(volume) = volume else {
        return Err(Refusal::NoVolume(bound_volume(claim).unwrap_or_default().to_owned()));
    };
    if text(volume, &["spec", "csi", "driver"]).is_none() {
        return Ok(Verdict::Decided(without_driver(volume, word)));
    }
    match word {
        Word::Nothing => Ok(Verdict::UnlessCopied(volume.clone())),
        _ => Ok(Verdict::Decided(Decision::Take(volume.clone()))),
    }
}

/// What the backup says of all its volumes. A policy for one of them goes before `snapshotVolumes`.
fn by_backup(backup: &Backup, word: Word) -> Result<Option<Decision>, Refusal> {
    if backup.snapshot_move_data() {
        if word == Word::TakeAlone {
            return Err(Refusal::NotMoved);
        }
        // Only asked in standalone mode, where Velero's own data movement is off as well.
        let why = "this plugin takes no snapshots of a backup with snapshotMoveData, and Velero moves data with EnableCSI only: unless \
                   another plugin does, the data is not backed up";
        return Ok(Some(Decision::Leave { why: why.to_owned(), told: Told::AsWarning }));
    }
    let is_off = word == Word::Nothing && backup.snapshot_volumes() == Some(false);
    Ok(is_off.then(|| quietly("snapshotVolumes is false")))
}

fn by_phase(claim: &Value) -> Result<Option<Decision>, Refusal> {
    if text(claim, &["status", "phase"]) == Some("Lost") {
        return Err(Refusal::Lost);
    }
    let why = "it is bound to no volume, so it is backed up without data".to_owned();
    Ok(bound_volume(claim).is_none().then_some(Decision::Leave { why, told: Told::Plainly }))
}

fn without_driver(volume: &Value, word: Word) -> Decision {
    let migrated = annotation(volume, "pv.kubernetes.io/migrated-to");
    let migrated =
        migrated.map(|driver| format!(" (though Kubernetes hands it to {driver})")).unwrap_or_default();
    let why = format!("volume {} is of no CSI driver{migrated}", name(volume));
    let told = if word == Word::TakeAlone { Told::AsWarning } else { Told::Plainly };
    Decision::Leave { why, told }
}

pub(super) fn quietly(why: &str) -> Decision {
    Decision::Leave { why: why.to_owned(), told: Told::Quietly }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "a value written at the call reads best")]

    use super::*;
    use serde_json::json;

    fn claim() -> Value {
        json!({"metadata": {"labels": {"tier": "db"}}, "spec": {"volumeName": "pv1"}, "status": {"phase": "Bound"}})
    }

    fn volume() -> Value {
        json!({"metadata": {"name": "pv1"}, "spec": {"storageClassName": "gold", "csi": {"driver": "d.csi"}}})
    }

    fn decided(spec: Value, claim: &Value, word: Word) -> Result<Verdict, Refusal> {
        let backup = Backup::from(json!({"spec": spec}));
        decide(Facts { claim, volume: Some(&volume()), backup: &backup, word })
    }

    fn leaves(verdict: &Result<Verdict, Refusal>, how: Told) -> bool {
        matches!(verdict, Ok(Verdict::Decided(Decision::Leave { told, .. })) if *told == how)
    }

    #[test]
    fn c44_a_policy_goes_before_snapshot_volumes_and_pods_come_after_it() {
        let (claim, off) = (claim(), json!({"snapshotVolumes": false}));
        let take = Ok(Verdict::Decided(Decision::Take(volume())));
        assert_eq!(decided(off.clone(), &claim, Word::Take), take);
        assert_eq!(decided(off.clone(), &claim, Word::TakeAlone), take);
        assert!(leaves(&decided(off, &claim, Word::Nothing), Told::Quietly));
        assert_eq!(decided(json!({}), &claim, Word::Nothing), Ok(Verdict::UnlessCopied(volume())));
        assert_eq!(
            decided(json!({"snapshotVolumes": true}), &claim, Word::Nothing),
            Ok(Verdict::UnlessCopied(volume()))
        );
        assert!(leaves(&decided(json!({}), &claim, Word::Leave("skip")), Told::Quietly));
    }

    #[test]
    fn data_movement_is_left_to_others_with_a_warning_but_not_for_a_volume_that_only_we_take() {
        let moved = json!({"snapshotMoveData": true});
        for word in [Word::Take, Word::Nothing] {
            assert!(leaves(&decided(moved.clone(), &claim(), word), Told::AsWarning), "{word:?}");
        }
        assert!(leaves(&decided(moved.clone(), &claim(), Word::Leave("skip")), Told::Quietly));
        assert_eq!(decided(moved, &claim(), Word::TakeAlone), Err(Refusal::NotMoved));
    }

    #[test]
    fn i32_a_pending_claim_is_no_error_and_a_lost_one_is_unless_a_policy_skips_it() {
        for (phase, volume_name) in [("Pending", "pv1"), ("", "pv1"), ("Bound", "")] {
            let mut claim = claim();
            (claim["status"]["phase"], claim["spec"]["volumeName"]) = (phase.into(), volume_name.into());
            for word in [Word::Nothing, Word::Take] {
                assert!(leaves(&decided(json!({}), &claim, word), Told::Plainly), "{phase} {volume_name}");
            }
            assert!(leaves(&decided(json!({}), &claim, Word::Leave("skip")), Told::Quietly));
        }
        let mut lost = claim();
        lost["status"]["phase"] = "Lost".into();
        assert_eq!(decided(json!({}), &lost, Word::Nothing), Err(Refusal::Lost));
        assert!(leaves(&decided(json!({}), &lost, Word::Leave("skip")), Told::Quietly));
        let backup = Backup::from(json!({}));
        let gone = decide(Facts { claim: &claim(), volume: None, backup: &backup, word: Word::Nothing });
        assert_eq!(gone, Err(Refusal::NoVolume("pv1".to_owned())));
    }

    #[test]
    fn a_volume_without_a_driver_is_a_warning_only_where_a_policy_left_it_to_this_plugin() {
        let backup = Backup::from(json!({}));
        let nfs = json!({"metadata": {"name": "pv1"}, "spec": {"nfs": {"server": "s", "path": "/"}}});
        for (word, told) in
            [(Word::Nothing, Told::Plainly), (Word::Take, Told::Plainly), (Word::TakeAlone, Told::AsWarning)]
        {
            let verdict = decide(Facts { claim: &claim(), volume: Some(&nfs), backup: &backup, word });
            assert!(leaves(&verdict, told), "{word:?}");
        }
    }
}
