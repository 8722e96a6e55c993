//! What a controller knows of the cluster: a cache that lags behind, and the events that fill it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::api::Api;
use crate::kind::GroupResource;
use crate::object;
use crate::store::Key;

/// A change as a controller hears of it. Both sides are the same object when a resync repeats it.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) key: Key,
    pub(super) before: Option<Arc<Value>>,
    pub(super) after: Option<Arc<Value>>,
}

impl Event {
    /// The object, if it is of one of these resources.
    pub(super) fn about(&self, resources: &[&str]) -> Vec<Key> {
        let wanted = resources.iter().any(|name| self.key.resource == (*name).into());
        wanted.then(|| self.key.clone()).into_iter().collect()
    }
}

type Objects = BTreeMap<Key, Arc<Value>>;

/// The objects of some resources, as of the last delivery.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<Objects>);

impl Cache {
    pub(super) fn get(&self, key: &Key) -> Option<Arc<Value>> {
        self.lock().get(key).cloned()
    }

    /// The objects of a resource in a namespace, or in all when it is empty.
    pub(super) fn list(&self, resource: &str, namespace: &str) -> Vec<Arc<Value>> {
        let resource = GroupResource::from(resource);
        let fits =
            |key: &Key| key.resource == resource && (namespace.is_empty() || key.namespace == namespace);
        self.lock().iter().filter(|(key, _)| fits(key)).map(|(_, object)| object.clone()).collect()
    }

    /// Takes over the object unless a newer version is here; says whether it did.
    pub(super) fn accept(&self, key: &Key, object: &Arc<Value>) -> bool {
        let mut objects = self.lock();
        let version = |object: &Value| object::resource_version(object).parse::<u64>().unwrap_or_default();
        if objects.get(key).is_some_and(|known| version(known) > version(object)) {
            return false;
        }
        objects.insert(key.clone(), object.clone());
        true
    }

    pub(super) fn remove(&self, key: &Key) -> Option<Arc<Value>> {
        self.lock().remove(key)
    }

    fn lock(&self) -> MutexGuard<'_, Objects> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fills the cache and tells of each change, until it is dropped.
pub(super) async fn run(
    api: Arc<Api>,
    resources: &[&str],
    cache: &Cache,
    lag: Duration,
    resync: Duration,
    mut told: impl FnMut(Event),
) {
    let resources: Vec<GroupResource> = resources.iter().map(|name| GroupResource::from(*name)).collect();
    let mut changes = api.subscribe();
    let mut seen = relist(&api, &resources, cache, &mut told);
    let mut next_resync = Instant::now() + resync;
    loop {
        tokio::select! {
            alive = changes.changed() => if alive.is_err() { return },
            () = tokio::time::sleep_until(next_resync) => {
                next_resync = Instant::now() + resync;
                let objects = cache.lock().clone();
                for (key, object) in objects {
                    told(Event { key, before: Some(object.clone()), after: Some(object) });
                }
                continue;
            }
        }
        tokio::time::sleep(lag).await;
        match fresh(&api, &resources, seen) {
            Some((events, revision)) => {
                seen = revision;
                for event in events {
                    match &event.after {
                        Some(object) => {
                            cache.lock().insert(event.key.clone(), object.clone());
                        }
                        None => {
                            cache.remove(&event.key);
                        }
                    }
                    told(event);
                }
            }
            None => seen = relist(&api, &resources, cache, &mut told),
        }
    }
}

/// The events since a revision; none when the history doesn't reach back that far.
fn fresh(api: &Api, resources: &[GroupResource], seen: u64) -> Option<(Vec<Event>, u64)> {
    let state = api.state();
    let changes = state.store.changes_after(seen).ok()?;
    let events = changes
        .filter(|change| resources.contains(&change.key.resource))
        .map(|change| Event {
            key: change.key.clone(),
            before: change.before.clone(),
            after: change.after.clone(),
        })
        .collect();
    Some((events, state.store.revision()))
}

/// Takes everything anew; tells of what is new, changed or gone.
fn relist(api: &Api, resources: &[GroupResource], cache: &Cache, told: &mut impl FnMut(Event)) -> u64 {
    let (found, revision): (Objects, u64) = {
        let state = api.state();
        let all = resources.iter().flat_map(|resource| state.store.list(resource, ""));
        (all.map(|(key, object)| (key.clone(), object.clone())).collect(), state.store.revision())
    };
    let known = std::mem::replace(&mut *cache.lock(), found.clone());
    for (key, object) in &known {
        if !found.contains_key(key) {
            told(Event { key: key.clone(), before: Some(object.clone()), after: None });
        }
    }
    for (key, object) in found {
        let before = known.get(&key).cloned();
        if before.as_ref() != Some(&object) {
            told(Event { key, before, after: Some(object) });
        }
    }
    revision
}
