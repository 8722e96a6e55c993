//! Deleting a namespace deletes what is in it; it goes when nothing is left.

use crate::object;
use crate::rules::update::Part;
use crate::state::{Preconditions, State};
use crate::store::Key;

/// Deletes the content of namespaces that are being deleted, and those that are empty.
pub(crate) fn empty(state: &mut State) {
    let namespaces = "namespaces".into();
    let leaving: Vec<Key> = state
        .store
        .list(&namespaces, "")
        .filter(|(_, namespace)| object::deleting(namespace))
        .map(|(key, _)| key.clone())
        .collect();
    for namespace in leaving {
        let inside = |key: &Key| key.namespace == namespace.name;
        let content: Vec<Key> =
            state.store.iter().filter(|(key, _)| inside(key)).map(|(key, _)| key.clone()).collect();
        for key in content {
            if let Some(kind) = state.kinds.get(&key.resource) {
                // Gone in the meantime is as good.
                let _ = state.delete(&kind, &key, &Preconditions::default());
            }
        }
        if state.store.iter().any(|(key, _)| inside(key)) {
            continue;
        }
        let (Some(kind), Some(object)) = (state.kinds.get(&namespaces), state.store.get(&namespace)) else {
            continue;
        };
        let mut done = serde_json::Value::clone(object);
        done["spec"]["finalizers"] = serde_json::json!([]);
        let _ = state.update(&kind, &namespace, done, Part::Whole);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn goes_after_its_content_and_waits_for_finalizers() {
        let mut state = State::new();
        let namespaces = state.kinds.get(&"namespaces".into()).unwrap();
        let maps = state.kinds.get(&"configmaps".into()).unwrap();
        state.create(&namespaces, "", json!({"metadata": {"name": "a"}}), Part::Main).unwrap();
        let held = json!({"metadata": {"name": "held", "finalizers": ["x.io/hold"]}});
        state.create(&maps, "a", held, Part::Main).unwrap();
        state.create(&maps, "a", json!({"metadata": {"name": "free"}}), Part::Main).unwrap();

        let namespace = crate::state::key(&namespaces, "", "a");
        state.delete(&namespaces, &namespace, &Preconditions::default()).unwrap();
        empty(&mut state);
        assert_eq!(state.store.list(&maps.resource, "a").count(), 1, "only the held one is left");
        let refused =
            state.create(&maps, "a", json!({"metadata": {"name": "late"}}), Part::Main).unwrap_err();
        assert_eq!(refused.code(), 403);

        let key = crate::state::key(&maps, "a", "held");
        let mut object = serde_json::Value::clone(&state.get(&maps, &key).unwrap());
        object["metadata"]["finalizers"] = json!([]);
        state.update(&maps, &key, object, Part::Main).unwrap();
        empty(&mut state);
        assert!(state.store.get(&namespace).is_none());
    }
}
