//! What the volume policies of a backup say of one volume.

use std::mem::discriminant;

use super::conditions::Subject;
use super::parse::{Action, Kind, Policy};
use crate::settings::Mode;

/// What the policies of a backup say of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// Take a snapshot.
    Take,
    /// Take a snapshot, and nobody else does: the policy names this plugin.
    TakeAlone,
    /// Take none; the action of the policy.
    Leave(&'static str),
    /// Nothing: no policy matches.
    Nothing,
}

/// The word of the first of the `policies` that matches. The error is what is not understood, if that makes a difference.
pub(super) fn word(policies: &[Policy], subject: Subject<'_>, mode: Mode) -> Result<Word, String> {
    let (mut words, mut unknown) = (Vec::new(), Vec::new());
    let mut decided = false;
    for policy in policies {
        let held: Vec<Option<bool>> = policy.conditions.iter().map(|each| each.matches(subject)).collect();
        if held.contains(&Some(false)) {
            continue;
        }
        if held.contains(&None) {
            unknown.push("the capacity of the volume".to_owned());
        }
        let is_sure = policy.unknown.is_empty() && !held.contains(&None);
        unknown.extend(policy.unknown.iter().cloned());
        words.push(word_of(&policy.action, mode)?);
        if is_sure {
            decided = true;
            break;
        }
    }
    if !decided {
        words.push(if mode == Mode::Alongside { Word::Leave("none of ours") } else { Word::Nothing });
    }
    // A policy that may match or not is no trouble where it comes to the same as the others.
    let same = |one: &Word, other: &Word| discriminant(one) == discriminant(other);
    match words.as_slice() {
        [first, others @ ..] if others.iter().all(|other| same(first, other)) => Ok(*first),
        _ => Err(unknown.join("; ")),
    }
}

fn word_of(action: &Action, mode: Mode) -> Result<Word, String> {
    Ok(match (&action.kind, mode) {
        // Before 1.18.1 Velero refuses `custom`; `skip` keeps its own action away as well.
        (Kind::Custom | Kind::Skip, _) if action.is_ours => Word::TakeAlone,
        (Kind::Unknown(what), Mode::Alongside) if action.is_ours => return Err(what.clone()),
        (_, Mode::Alongside) => Word::Leave("none of ours"),
        (Kind::Snapshot, _) => Word::Take,
        (Kind::Skip, _) => Word::Leave("skip"),
        (Kind::FsBackup, _) => Word::Leave("fs-backup"),
        (Kind::Custom, _) => Word::Leave("custom, for another provider"),
        (Kind::Unknown(what), _) => return Err(what.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse::policies;
    use super::*;
    use serde_json::json;

    /// The word of these policies, each in YAML's flow style.
    fn said(list: &[&str], mode: Mode) -> Result<Word, String> {
        let yaml = format!("version: v1\nvolumePolicies:\n- {}", list.join("\n- "));
        let policies = policies(&yaml).unwrap();
        let claim = json!({"metadata": {"labels": {"tier": "db"}}});
        let volume = json!({"spec": {"storageClassName": "gold", "csi": {"driver": "d.csi"}}});
        word(&policies, Subject { claim: &claim, volume: Some(&volume) }, mode)
    }

    const OURS: &str = "parameters: {provider: csi-actions.velero-rs.io}";

    #[test]
    fn c44_the_first_policy_that_matches_says_the_word() {
        let on_gold = "{conditions: {storageClass: [gold]}, action: {type: skip}}";
        let on_silver = "{conditions: {storageClass: [silver]}, action: {type: fs-backup}}";
        let on_all = "{action: {type: snapshot}}";
        let (custom, ours) =
            ("{action: {type: custom}}".to_owned(), format!("{{action: {{type: custom, {OURS}}}}}"));
        let skip_ours = format!("{{action: {{type: skip, {OURS}}}}}");
        let fs_ours = format!("{{action: {{type: fs-backup, {OURS}}}}}");
        let of_another = "{action: {type: custom, parameters: {provider: another}}}";
        // Alongside everything but a policy that names this plugin is Velero's own.
        let theirs = Word::Leave("none of ours");
        for (list, standalone, alongside) in [
            (vec![on_gold, on_all], Word::Leave("skip"), theirs),
            (vec![on_all, on_gold], Word::Take, theirs),
            (vec![on_silver, on_all], Word::Take, theirs),
            (vec![on_silver], Word::Nothing, theirs),
            (
                vec!["{conditions: {pvcLabels: {tier: db}}, action: {type: fs-backup}}"],
                Word::Leave("fs-backup"),
                theirs,
            ),
            (vec![custom.as_str()], Word::Leave("custom, for another provider"), theirs),
            (vec![of_another], Word::Leave("custom, for another provider"), theirs),
            (vec![ours.as_str()], Word::TakeAlone, Word::TakeAlone),
            (vec![skip_ours.as_str()], Word::TakeAlone, Word::TakeAlone),
            (vec![on_gold, ours.as_str()], Word::Leave("skip"), theirs),
            (vec![fs_ours.as_str()], Word::Leave("fs-backup"), theirs),
        ] {
            assert_eq!(said(&list, Mode::Standalone), Ok(standalone), "{list:?}");
            assert_eq!(said(&list, Mode::Alongside), Ok(alongside), "{list:?}");
        }
    }

    #[test]
    fn what_is_not_understood_is_an_error_where_it_makes_a_difference_and_only_there() {
        let unknown = "{conditions: {nodes: [n1]}, action: {type: skip}}";
        let elsewhere = "{conditions: {nodes: [n1], storageClass: [silver]}, action: {type: skip}}";
        let (skip, take) = ("{action: {type: skip}}", "{action: {type: snapshot}}");
        let (standalone, alongside) = (Mode::Standalone, Mode::Alongside);
        for list in [vec![unknown], vec![unknown, take], vec!["{action: {type: move}}"]] {
            let what = said(&list, standalone).unwrap_err();
            assert!(what.contains("nodes") || what.contains("move"), "{what}");
            assert_eq!(
                said(&list, alongside),
                Ok(Word::Leave("none of ours")),
                "Velero knows what it means: {list:?}"
            );
        }
        assert_eq!(said(&[unknown, skip], standalone), Ok(Word::Leave("skip")), "the same either way");
        let copy = "{action: {type: fs-backup}}";
        assert_eq!(said(&[unknown, copy], standalone), Ok(Word::Leave("skip")), "no snapshot either way");
        assert_eq!(said(&[take, unknown], standalone), Ok(Word::Take), "never reached");
        assert_eq!(said(&[elsewhere, take], standalone), Ok(Word::Take), "can't match");
        let ours = format!("{{conditions: {{nodes: [n1]}}, action: {{type: skip, {OURS}}}}}");
        assert!(said(&[&ours], alongside).is_err());
        let moved = format!("{{action: {{type: move, {OURS}}}}}");
        assert!(said(&[&moved], alongside).is_err());
    }
}
