//! Whether a restored claim has its new volume, so that what the old one was told can be told to the new one.

use std::time::Duration;

use serde_json::Value;

use crate::object::text;

/// How long a claim that no pod uses yet is waited for.
const UNUSED: Duration = Duration::from_mins(10);

/// How far a claim is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Binding {
    /// It has this volume.
    Bound(String),
    /// Ask again; the text says what is awaited.
    Awaited(String),
    /// Asking again is pointless; the text says why, and what is left to do.
    Left(String),
}

/// Decides by the restored `claim`, its class, and how long it is awaited.
pub(super) fn decide(claim: Option<&Value>, class: Option<&Value>, age: Duration) -> Binding {
    let Some(claim) = claim else {
        return if age < UNUSED {
            Binding::Awaited("the claim does not exist yet".to_owned())
        } else {
            Binding::Left("the claim was not restored, so there is no volume to keep".to_owned())
        };
    };
    match (text(claim, &["status", "phase"]), text(claim, &["spec", "volumeName"])) {
        (Some("Bound"), Some(volume)) => Binding::Bound(volume.to_owned()),
        _ if !waits_for_consumer(class) || age < UNUSED => {
            Binding::Awaited("the claim is not bound to its new volume yet".to_owned())
        }
        _ => Binding::Left(
            "no pod uses the claim, so it has no volume yet: set persistentVolumeReclaimPolicy of the one that it gets to \
             Retain"
                .to_owned(),
        ),
    }
}

fn waits_for_consumer(class: Option<&Value>) -> bool {
    class.and_then(|class| text(class, &["volumeBindingMode"])) == Some("WaitForFirstConsumer")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_claim_is_awaited_until_it_is_bound_or_nobody_will_use_it() {
        let bound = json!({"spec": {"volumeName": "pv2"}, "status": {"phase": "Bound"}});
        let pending = json!({"spec": {}, "status": {"phase": "Pending"}});
        let (first_use, at_once) =
            (json!({"volumeBindingMode": "WaitForFirstConsumer"}), json!({"volumeBindingMode": "Immediate"}));
        let (soon, late) = (Duration::from_secs(10), Duration::from_hours(1));
        assert_eq!(decide(Some(&bound), None, late), Binding::Bound("pv2".to_owned()));
        for (claim, class, age, awaited) in [
            (Some(&pending), Some(&first_use), soon, true),
            (Some(&pending), Some(&first_use), late, false),
            (Some(&pending), Some(&at_once), late, true),
            (Some(&pending), None, late, true),
            (None, None, soon, true),
            (None, None, late, false),
        ] {
            let decision = decide(claim, class, age);
            assert_eq!(matches!(decision, Binding::Awaited(_)), awaited, "{claim:?} {class:?} {age:?}");
            assert!(!matches!(decision, Binding::Bound(_)));
        }
    }
}
