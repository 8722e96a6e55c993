//! Garbage collection: an object goes when all its owners are gone. Always in the background.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::object::{self, text};
use crate::state::{Preconditions, State};
use crate::store::Key;

/// Deletes the objects whose owners are all gone.
pub(crate) fn collect(state: &mut State) {
    let uids: BTreeSet<&str> = state.store.iter().map(|(_, object)| object::uid(object)).collect();
    let orphaned = |object: &Value| {
        let owners = object["metadata"]["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
        !owners.is_empty() && owners.iter().all(|owner| !uids.contains(text(owner, "/uid")))
    };
    let orphans: Vec<Key> = state
        .store
        .iter()
        .filter(|(_, object)| !object::deleting(object) && orphaned(object))
        .map(|(key, _)| key.clone())
        .collect();
    for key in orphans {
        if let Some(kind) = state.kinds.get(&key.resource) {
            // Gone in the meantime is as good.
            let _ = state.delete(&kind, &key, &Preconditions::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::update::Part;

    #[test]
    fn goes_with_the_last_of_its_owners() {
        let mut state = State::new();
        let kind = state.kinds.get(&"configmaps".into()).unwrap();
        let owner =
            state.create(&kind, "default", json!({"metadata": {"name": "owner"}}), Part::Main).unwrap();
        let reference =
            |uid: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid});
        for (name, references) in [
            ("owned", json!([reference(object::uid(&owner))])),
            ("half", json!([reference(object::uid(&owner)), reference("gone")])),
            ("orphan", json!([reference("gone")])),
        ] {
            let object = json!({"metadata": {"name": name, "ownerReferences": references}});
            state.create(&kind, "default", object, Part::Main).unwrap();
        }
        collect(&mut state);
        let names = |state: &State| -> Vec<String> {
            state.store.list(&kind.resource, "").map(|(key, _)| key.name.clone()).collect()
        };
        assert_eq!(names(&state), ["half", "owned", "owner"]);
        let owner = crate::state::key(&kind, "default", "owner");
        state.delete(&kind, &owner, &Preconditions::default()).unwrap();
        collect(&mut state);
        assert!(names(&state).is_empty());
    }
}
