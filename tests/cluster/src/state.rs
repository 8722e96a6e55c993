//! The writes of an API server: each checks its preconditions, keeps the rules and records one change.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::error::{ApiError, Subject};
use crate::kind::{GroupResource, Kind, Kinds};
use crate::kinds;
use crate::object;
use crate::rules::update::{self, Part};
use crate::store::{Key, Store};

const STALE: &str =
    "the object has been modified; please apply your changes to the latest version and try again";
/// Attempts to find a free generated name.
const NAME_ATTEMPTS: usize = 8;

/// All that the cluster knows.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) kinds: Kinds,
    pub(crate) store: Store,
}

/// Which object a deletion means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Preconditions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

/// What a deletion did.
#[derive(Clone, Debug)]
pub(crate) enum Deleted {
    /// The object is gone; its last state.
    Gone(Arc<Value>),
    /// Finalizers hold it; it is marked.
    Held(Arc<Value>),
}

impl State {
    pub(crate) fn new() -> Self {
        let mut state = Self { kinds: kinds::initial(), store: Store::new() };
        for name in ["default", "kube-system"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let created = state
                .kinds
                .get(&"namespaces".into())
                .map(|kind| state.create(&kind, "", namespace, Part::Main));
            debug_assert!(matches!(created, Some(Ok(_))), "a namespace can be created");
        }
        state
    }

    pub(crate) fn get(&self, kind: &Kind, key: &Key) -> Result<Arc<Value>, ApiError> {
        self.store.get(key).cloned().ok_or_else(|| ApiError::NotFound(kind.named(&key.name)))
    }

    /// Stores a new object.
    pub(crate) fn create(
        &mut self,
        kind: &Kind,
        namespace: &str,
        mut object: Value,
        part: Part,
    ) -> Result<Arc<Value>, ApiError> {
        if !matches!(object::resource_version(&object), "" | "0") {
            return Err(ApiError::Internal(
                "resourceVersion should not be set on objects to be created".to_owned(),
            ));
        }
        object::set_field(&mut object, "apiVersion", Some(kind.api_version().into()));
        object::set_field(&mut object, "kind", Some(kind.kind.clone().into()));
        object::set_metadata(&mut object, "namespace", kind.namespaced.then(|| namespace.into()));
        if kind.namespaced {
            self.namespace_takes(kind, namespace, object::name(&object))?;
        }
        let generated = object::name(&object).is_empty();
        for attempt in 1.. {
            let new = update::created(kind, object.clone(), part)?;
            let key = key(kind, namespace, object::name(&new));
            if self.store.get(&key).is_none() {
                self.definition_changed(kind, None, Some(&new))?;
                return Ok(self.store.put(key, new));
            }
            if !generated || attempt == NAME_ATTEMPTS {
                return Err(ApiError::AlreadyExists(kind.named(&key.name)));
            }
        }
        unreachable!("the loop above ends by returning")
    }

    /// Writes `new` over the object of that name.
    pub(crate) fn update(
        &mut self,
        kind: &Kind,
        key: &Key,
        new: Value,
        part: Part,
    ) -> Result<Arc<Value>, ApiError> {
        let (old, new) = self.judged(kind, key, new, part)?;
        if new == *old {
            return Ok(old);
        }
        if object::deleting(&new) && update::unheld(&new) {
            self.remove(kind, key);
            return Ok(Arc::new(new));
        }
        self.definition_changed(kind, Some(&old), Some(&new))?;
        Ok(self.store.put(key.clone(), new))
    }

    /// The object of that name, and what it becomes when `new` is written over it.
    pub(crate) fn judged(
        &self,
        kind: &Kind,
        key: &Key,
        new: Value,
        part: Part,
    ) -> Result<(Arc<Value>, Value), ApiError> {
        let old = self.get(kind, key)?;
        let conflict = |why: String| Err(ApiError::Conflict(kind.named(&key.name), why));
        let (given_uid, known_uid) = (object::uid(&new), object::uid(&old));
        if !given_uid.is_empty() && given_uid != known_uid {
            return conflict(format!(
                "Precondition failed: UID in precondition: {given_uid}, UID in object meta: {known_uid}"
            ));
        }
        let version = object::resource_version(&new);
        if !matches!(version, "" | "0") && version != object::resource_version(&old) {
            return conflict(STALE.to_owned());
        }
        let new = update::updated(kind, &old, new, part)?;
        Ok((old, new))
    }

    /// Removes the object, or marks it while finalizers hold it.
    pub(crate) fn delete(
        &mut self,
        kind: &Kind,
        key: &Key,
        preconditions: &Preconditions,
    ) -> Result<Deleted, ApiError> {
        let old = self.get(kind, key)?;
        if let Some(why) = broken(preconditions, &old) {
            let subject = if kind.custom { kind.named(&key.name) } else { kind.object(&key.name) };
            return Err(ApiError::Conflict(subject, why));
        }
        if update::unheld(&old) {
            return Ok(Deleted::Gone(self.remove(kind, key).unwrap_or(old)));
        }
        if object::deleting(&old) {
            return Ok(Deleted::Held(old));
        }
        Ok(Deleted::Held(self.store.put(key.clone(), update::marked_for_deletion(kind, &old))))
    }

    /// Takes an object out, and with a resource definition all its objects.
    fn remove(&mut self, kind: &Kind, key: &Key) -> Option<Arc<Value>> {
        let last = self.store.remove(key)?;
        if kind.is("customresourcedefinitions.apiextensions.k8s.io") {
            let resource = GroupResource {
                group: object::text(&last, "/spec/group").to_owned(),
                resource: object::text(&last, "/spec/names/plural").to_owned(),
            };
            let orphans: Vec<Key> = self.store.list(&resource, "").map(|(key, _)| key.clone()).collect();
            for orphan in &orphans {
                self.store.remove(orphan);
            }
            self.kinds.remove(&resource);
        }
        Some(last)
    }

    /// Serves the type that a resource definition describes.
    fn definition_changed(
        &mut self,
        kind: &Kind,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> Result<(), ApiError> {
        let of_definitions = kind.is("customresourcedefinitions.apiextensions.k8s.io");
        if let Some(new) =
            new.filter(|new| of_definitions && old.is_none_or(|old| old["spec"] != new["spec"]))
        {
            self.kinds.add(Kind::from_definition(new)?);
        }
        Ok(())
    }

    /// Refuses new objects in a namespace that is missing or on its way out.
    fn namespace_takes(&self, kind: &Kind, namespace: &str, name: &str) -> Result<(), ApiError> {
        let place = Key::new("namespaces", "", namespace);
        let Some(found) = self.store.get(&place) else {
            return Err(ApiError::NotFound(Subject {
                group: String::new(),
                kind: "namespaces".to_owned(),
                name: namespace.to_owned(),
            }));
        };
        if object::deleting(found) {
            return Err(ApiError::NamespaceTerminating(kind.named(name), namespace.to_owned()));
        }
        Ok(())
    }
}

/// Where an object of this kind is kept.
pub(crate) fn key(kind: &Kind, namespace: &str, name: &str) -> Key {
    let namespace = if kind.namespaced { namespace } else { "" };
    Key { resource: kind.resource.clone(), namespace: namespace.to_owned(), name: name.to_owned() }
}

fn broken(preconditions: &Preconditions, object: &Value) -> Option<String> {
    let (uid, version) = (object::uid(object), object::resource_version(object));
    if let Some(wanted) = preconditions.uid.as_deref().filter(|wanted| *wanted != uid) {
        return Some(format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might \
             have been deleted and then recreated"
        ));
    }
    let wanted = preconditions.resource_version.as_deref().filter(|wanted| *wanted != version)?;
    Some(format!(
        "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
         ({version}). The object might have been modified"
    ))
}
