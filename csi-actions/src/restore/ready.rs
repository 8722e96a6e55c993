//! Whether a volume can be made from a restored snapshot, from what its objects say.

use serde_json::Value;

use crate::driver_error::{Class, classify, shortened};
use crate::object::{Content, Snapshot, uid};

/// Words of the snapshot controllers about what stays as it is. They carry no code of the driver.
const LASTING: [&str; 3] = [
    // The driver knows no snapshot of this handle.
    "can not find snapshot",
    "is bound to a different snapshot",
    "is dynamically provisioned while expecting a pre-provisioned one",
];

/// The answer to "can the claim be made now?".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// Yes: the provisioner would take the snapshot.
    Ready,
    /// Not now; the text says what is missing.
    NotYet(String),
    /// It will never be; the text says why.
    Failed(String),
}

/// Decides by the restored `snapshot` and its `content`, as far as they are there.
///
/// The provisioner asks for both sides of the binding, so both are looked at.
pub(super) fn decide(snapshot: Option<&Value>, content: Option<&Value>) -> Decision {
    let Some(snapshot) = snapshot else { return Decision::NotYet("it does not exist yet".to_owned()) };
    let is_bound = content.is_some_and(|content| {
        let bound = Content(content).bound_uid();
        bound.is_some() && bound == uid(snapshot)
    });
    if is_bound && Snapshot(snapshot).is_ready() {
        return Decision::Ready;
    }
    let error = content.and_then(|content| Content(content).error()).or_else(|| Snapshot(snapshot).error());
    let source = content.map(source).unwrap_or_default();
    match error.map(|error| error.message) {
        Some(message) if is_lasting(&message) => {
            Decision::Failed(format!("{source}can't be restored from: {message}"))
        }
        Some(message) => Decision::NotYet(format!("{source}is not ready ({})", shortened(&message))),
        None if content.is_none() => Decision::NotYet("its content does not exist yet".to_owned()),
        None if !is_bound => Decision::NotYet(format!("{source}is not bound to it yet")),
        None => Decision::NotYet(format!("{source}is not ready")),
    }
}

fn is_lasting(message: &str) -> bool {
    classify(message) == Class::Permanent || LASTING.iter().any(|words| message.contains(words))
}

/// The snapshot in the storage, as the start of a sentence.
fn source(content: &Value) -> String {
    let content = Content(content);
    format!("snapshot {:?} of driver {:?} ", content.handle().unwrap_or("?"), content.driver())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "a value written at the call reads best")]

    use super::*;
    use serde_json::json;

    fn snapshot(status: Value) -> Value {
        json!({"metadata": {"uid": "u1"}, "status": status})
    }

    fn content(bound: Value, status: Value) -> Value {
        json!({"spec": {"driver": "d.csi", "source": {"snapshotHandle": "snap-1"}, "volumeSnapshotRef": {"uid": bound}},
            "status": status})
    }

    fn error(message: &str) -> Value {
        json!({"readyToUse": false, "error": {"message": message}})
    }

    const NOT_FOUND: &str =
        "failed to list snapshot for content c: \"can not find snapshot for snapshotID snap-1\"";
    const DENIED: &str =
        "failed to list snapshot for content c: \"rpc error: code = PermissionDenied desc = no\"";
    const BUSY: &str = "rpc error: code = Unavailable desc = busy";

    #[test]
    fn i42_i56_ready_takes_a_ready_snapshot_and_a_content_bound_to_this_very_one() {
        let ready = json!({"readyToUse": true});
        let table = [
            (snapshot(ready.clone()), Some(content(json!("u1"), ready.clone())), true),
            (snapshot(ready.clone()), Some(content(json!("u0"), ready.clone())), false),
            (snapshot(ready.clone()), Some(content(json!(null), ready.clone())), false),
            (snapshot(ready.clone()), None, false),
            (snapshot(json!({"readyToUse": false})), Some(content(json!("u1"), ready.clone())), false),
            (
                snapshot(json!({"boundVolumeSnapshotContentName": "c"})),
                Some(content(json!("u1"), json!({}))),
                false,
            ),
            (snapshot(json!(null)), None, false),
            (json!({"metadata": {}, "status": ready}), Some(content(json!(null), json!({}))), false),
        ];
        for (snapshot, content, ready) in table {
            let decision = decide(Some(&snapshot), content.as_ref());
            assert_eq!(decision == Decision::Ready, ready, "{snapshot} {content:?}: {decision:?}");
            assert!(!matches!(decision, Decision::Failed(_)));
        }
        assert!(matches!(decide(None, None), Decision::NotYet(_)));
    }

    #[test]
    fn an_error_that_stays_ends_the_wait_with_handle_driver_and_its_words() {
        for message in [NOT_FOUND, DENIED] {
            let failing = content(json!("u1"), error(message));
            let Decision::Failed(reason) = decide(Some(&snapshot(json!({}))), Some(&failing)) else {
                panic!("still waits for {message}")
            };
            for part in ["snap-1", "d.csi", message] {
                assert!(reason.contains(part), "{part} in {reason}");
            }
        }
        let misbound = snapshot(error("VolumeSnapshotContent [c] is bound to a different snapshot"));
        assert!(matches!(decide(Some(&misbound), None), Decision::Failed(_)));
    }

    #[test]
    fn an_error_that_passes_is_waited_out_and_told() {
        for message in [BUSY, "VolumeSnapshotContent is missing", ""] {
            let decision = decide(Some(&snapshot(json!({}))), Some(&content(json!("u1"), error(message))));
            let Decision::NotYet(why) = decision else { panic!("{decision:?}") };
            assert!(why.contains(message), "{why}");
        }
    }

    #[test]
    fn a_ready_snapshot_is_ready_whatever_error_stands_beside_it() {
        let both = json!({"readyToUse": true, "error": {"message": NOT_FOUND}});
        assert_eq!(decide(Some(&snapshot(both.clone())), Some(&content(json!("u1"), both))), Decision::Ready);
    }
}
