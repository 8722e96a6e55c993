//! The volume controller: binds claims and volumes, and lets volumes go when their claim is gone.

use std::sync::Arc;

use serde_json::{Value, json};

use super::context::{annotation, set};
use super::keys::{CLAIMS, STORAGE_CLASSES, VOLUMES};
use super::quantity;
use crate::api::Api;
use crate::object::{self, text};
use crate::rules::update::Part;
use crate::state::State;
use crate::store::Key;

const BOUND: &str = "pv.kubernetes.io/bind-completed";
const BOUND_HERE: &str = "pv.kubernetes.io/bound-by-controller";
/// Tells a provisioner that a claim is for it.
pub(super) const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// Set by the scheduler, for classes that wait for a pod.
pub(super) const NODE: &str = "volume.kubernetes.io/selected-node";

/// Binds after every change, until the task is aborted.
pub(super) async fn run(api: Arc<Api>) {
    let mut changes = api.subscribe();
    loop {
        bind(&mut api.state());
        if changes.changed().await.is_err() {
            return;
        }
    }
}

fn bind(state: &mut State) {
    for (key, claim) in all(state, CLAIMS) {
        match text(&claim, "/status/phase") {
            "Pending" if !object::deleting(&claim) => bind_claim(state, &key, &claim),
            "Bound" => {
                let volume = text(&claim, "/spec/volumeName");
                if state.store.get(&volume_key(volume)).is_none() {
                    write(state, &key, |claim| claim["status"]["phase"] = "Lost".into());
                }
            }
            _ => {}
        }
    }
    for (key, volume) in all(state, VOLUMES) {
        let reference = &volume["spec"]["claimRef"];
        let claim =
            state.store.get(&Key::new(CLAIMS, text(reference, "/namespace"), text(reference, "/name")));
        let phase = match set(reference, "/uid") {
            Some(uid) if claim.is_none_or(|claim| object::uid(claim) != uid) => "Released",
            None if reference.is_null() => "Available",
            _ => continue,
        };
        if text(&volume, "/status/phase") != phase {
            write(state, &key, |volume| volume["status"]["phase"] = phase.into());
        }
    }
}

fn bind_claim(state: &mut State, key: &Key, claim: &Arc<Value>) {
    let found = all(state, VOLUMES)
        .into_iter()
        .filter(|(_, volume)| !object::deleting(volume) && fits(volume, claim))
        // A volume that was made for the claim before others, then the smallest.
        .min_by_key(|(_, volume)| (volume["spec"]["claimRef"].is_null(), capacity(volume)));
    let Some((volume_key, volume)) = found else {
        return ask_provisioner(state, key, claim);
    };
    let reserved = !volume["spec"]["claimRef"].is_null();
    write(state, &volume_key, |volume| {
        if !reserved {
            volume["metadata"]["annotations"][BOUND_HERE] = "yes".into();
        }
        volume["spec"]["claimRef"] = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": key.namespace, "name": key.name,
            "uid": object::uid(claim), "resourceVersion": object::resource_version(claim),
        });
        volume["status"]["phase"] = "Bound".into();
    });
    write(state, key, |claim| {
        claim["metadata"]["annotations"][BOUND] = "yes".into();
        if set(claim, "/spec/volumeName").is_none() {
            claim["metadata"]["annotations"][BOUND_HERE] = "yes".into();
        }
        claim["spec"]["volumeName"] = volume_key.name.clone().into();
        claim["status"] = json!({
            "phase": "Bound", "accessModes": volume["spec"]["accessModes"], "capacity": volume["spec"]["capacity"],
        });
    });
}

/// Whether the claim may have the volume.
fn fits(volume: &Value, claim: &Value) -> bool {
    let reference = &volume["spec"]["claimRef"];
    let wanted = text(claim, "/spec/volumeName");
    if !reference.is_null() {
        let uid = set(reference, "/uid");
        return text(reference, "/namespace") == object::namespace(claim)
            && text(reference, "/name") == object::name(claim)
            && uid.is_none_or(|uid| uid == object::uid(claim))
            && (wanted.is_empty() || wanted == object::name(volume));
    }
    if !wanted.is_empty() {
        return wanted == object::name(volume);
    }
    let modes = |object: &Value| object["spec"]["accessModes"].as_array().cloned().unwrap_or_default();
    let has = modes(volume);
    text(volume, "/spec/storageClassName") == text(claim, "/spec/storageClassName")
        && capacity(volume) >= quantity::parse(text(claim, "/spec/resources/requests/storage"))
        && modes(claim).iter().all(|mode| has.contains(mode))
        && claim["spec"]["selector"].is_null()
        && claim["spec"]["dataSource"].is_null()
}

fn capacity(volume: &Value) -> i64 {
    quantity::parse(text(volume, "/spec/capacity/storage"))
}

fn ask_provisioner(state: &mut State, key: &Key, claim: &Value) {
    let Some(name) = set(claim, "/spec/storageClassName") else { return };
    let class = Key::new(STORAGE_CLASSES, "", name);
    let Some(class) = state.store.get(&class) else { return };
    let waits =
        text(class, "/volumeBindingMode") == "WaitForFirstConsumer" && annotation(claim, NODE).is_none();
    let provisioner = text(class, "/provisioner").to_owned();
    // A claim that names its volume waits for that one.
    if waits || annotation(claim, PROVISIONER).is_some() || set(claim, "/spec/volumeName").is_some() {
        return;
    }
    write(state, key, |claim| claim["metadata"]["annotations"][PROVISIONER] = provisioner.into());
}

fn volume_key(name: &str) -> Key {
    Key::new(VOLUMES, "", name)
}

fn all(state: &State, resource: &str) -> Vec<(Key, Arc<Value>)> {
    let resource = resource.into();
    state.store.list(&resource, "").map(|(key, object)| (key.clone(), object.clone())).collect()
}

fn write(state: &mut State, key: &Key, change: impl FnOnce(&mut Value)) {
    let (Some(kind), Some(object)) = (state.kinds.get(&key.resource), state.store.get(key)) else { return };
    let mut object = Value::clone(object);
    change(&mut object);
    // Written under the lock that it was read under: it can't be stale, and the volume kinds have no rules to break.
    let _ = state.update(&kind, key, object, Part::Whole);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_claim_may_have_which_volume() {
        let claim = |extra: Value| {
            let mut claim = json!({
                "metadata": {"namespace": "n", "name": "c", "uid": "u"},
                "spec": {"storageClassName": "s", "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}}},
            });
            json_patch::merge(&mut claim, &json!({"spec": extra}));
            claim
        };
        let volume = |extra: Value| {
            let mut volume = json!({
                "metadata": {"name": "v"},
                "spec": {"storageClassName": "s", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}},
            });
            json_patch::merge(&mut volume, &json!({"spec": extra}));
            volume
        };
        let reserved = |uid: &str| json!({"claimRef": {"namespace": "n", "name": "c", "uid": uid}});
        let other = json!({"claimRef": {"namespace": "n", "name": "other"}});
        for (volume, claim, expected) in [
            (volume(json!({})), claim(json!({})), true),
            (volume(json!({"capacity": {"storage": "500Mi"}})), claim(json!({})), false),
            (volume(json!({"storageClassName": "t"})), claim(json!({})), false),
            (volume(json!({})), claim(json!({"accessModes": ["ReadWriteMany"]})), false),
            (volume(json!({})), claim(json!({"dataSource": {"kind": "VolumeSnapshot", "name": "x"}})), false),
            (volume(json!({})), claim(json!({"volumeName": "w"})), false),
            (volume(json!({"storageClassName": "t"})), claim(json!({"volumeName": "v"})), true),
            (volume(reserved("u")), claim(json!({})), true),
            (volume(reserved("")), claim(json!({})), true),
            (volume(reserved("old")), claim(json!({})), false),
            (volume(other), claim(json!({"volumeName": "v"})), false),
        ] {
            assert_eq!(fits(&volume, &claim), expected, "{volume} {claim}");
        }
    }
}
