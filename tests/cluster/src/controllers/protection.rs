//! Storage protection: a claim is held while a pod uses it, a volume while a claim is bound to it.

use serde_json::Value;

use crate::object::{self, text};
use crate::rules::defaults::{CLAIM_PROTECTION, VOLUME_PROTECTION};
use crate::rules::update::Part;
use crate::state::State;
use crate::store::Key;

/// Takes the protection from deleted claims and volumes that nobody uses.
pub(crate) fn release(state: &mut State) {
    let free = |state: &State, key: &Key, object: &Value, used: fn(&State, &Key, &Value) -> bool| {
        object::deleting(object) && !used(state, key, object)
    };
    for (resource, finalizer, used) in [
        ("persistentvolumeclaims", CLAIM_PROTECTION, claim_used as fn(&State, &Key, &Value) -> bool),
        ("persistentvolumes", VOLUME_PROTECTION, volume_used),
    ] {
        let resource = resource.into();
        let unused: Vec<Key> = state
            .store
            .list(&resource, "")
            .filter(|(key, object)| free(state, key, object, used))
            .map(|(key, _)| key.clone())
            .collect();
        for key in unused {
            let Some(mut object) = state.store.get(&key).map(|object| Value::clone(object)) else { continue };
            if object::set_finalizer(&mut object, finalizer, false)
                && let Some(kind) = state.kinds.get(&resource)
            {
                // Written under this very lock: it can't be refused for being stale.
                let _ = state.update(&kind, &key, object, Part::Whole);
            }
        }
    }
}

fn claim_used(state: &State, claim: &Key, _: &Value) -> bool {
    let pods = "pods".into();
    state.store.list(&pods, &claim.namespace).any(|(_, pod)| {
        let over = ["Succeeded", "Failed"].contains(&text(pod, "/status/phase"));
        let mut volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
        !over && volumes.any(|volume| text(volume, "/persistentVolumeClaim/claimName") == claim.name)
    })
}

fn volume_used(_: &State, _: &Key, volume: &Value) -> bool {
    text(volume, "/status/phase") == "Bound"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::{Preconditions, key};

    #[test]
    fn claim_stays_while_a_pod_uses_it() {
        let mut state = State::new();
        let claims = state.kinds.get(&"persistentvolumeclaims".into()).unwrap();
        let pods = state.kinds.get(&"pods".into()).unwrap();
        state.create(&claims, "default", json!({"metadata": {"name": "c"}}), Part::Main).unwrap();
        let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]);
        let pod = json!({"metadata": {"name": "p"}, "spec": {"volumes": volumes}});
        state.create(&pods, "default", pod, Part::Main).unwrap();

        let claim = key(&claims, "default", "c");
        state.delete(&claims, &claim, &Preconditions::default()).unwrap();
        release(&mut state);
        assert!(state.store.get(&claim).is_some());
        state.delete(&pods, &key(&pods, "default", "p"), &Preconditions::default()).unwrap();
        release(&mut state);
        assert!(state.store.get(&claim).is_none());
    }
}
