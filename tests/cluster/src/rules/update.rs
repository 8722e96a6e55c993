//! What a write may change: identity, status, finalizers, generation.

use serde_json::{Map, Value};

use crate::error::{ApiError, FieldError};
use crate::kind::Kind;
use crate::object;
use crate::rules::{defaults, names, snapshots};

/// Metadata that only the server sets.
const SERVERS_OWN: &[&str] = &[
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
];

/// Which part of an object a write is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but the status, where that is a subresource.
    Main,
    /// The `/status` subresource.
    Status,
    /// Everything at once: what tests set up, and controllers that share this process.
    Whole,
}

/// Makes a new object ready to be stored: named, identified, with defaults, checked.
pub(crate) fn created(kind: &Kind, mut object: Value, part: Part) -> Result<Value, ApiError> {
    if object::name(&object).is_empty() {
        let base = object::text(&object, "/metadata/generateName").to_owned();
        if !base.is_empty() {
            object::set_metadata(&mut object, "name", Some(names::generate(&base).into()));
        }
    }
    // Kinds that don't count generations keep what they are given.
    for field in SERVERS_OWN.iter().filter(|field| kind.generation || **field != "generation") {
        object::set_metadata(&mut object, field, None);
    }
    object::set_metadata(&mut object, "uid", Some(uuid::Uuid::new_v4().to_string().into()));
    object::set_metadata(&mut object, "creationTimestamp", Some(object::now()));
    if kind.generation {
        object::set_metadata(&mut object, "generation", Some(1.into()));
    }
    let status = object.get("status").cloned();
    if kind.status {
        object::set_field(&mut object, "status", None);
    }
    if !kind.custom {
        defaults::fill(&mut object);
    }
    if part == Part::Whole && status.is_some() {
        object::set_field(&mut object, "status", status);
    }
    drop_empty(&mut object);
    let name = object::name(&object);
    let mut errors = names::check(name, kind.is("namespaces"));
    errors.extend(snapshots::check(&object, None));
    if errors.is_empty() { Ok(object) } else { Err(ApiError::Invalid(kind.object(name), errors)) }
}

/// What `old` becomes when `new` is written to it; the same as `old` when nothing changes.
pub(crate) fn updated(kind: &Kind, old: &Value, mut new: Value, part: Part) -> Result<Value, ApiError> {
    match part {
        Part::Main if kind.status => object::set_field(&mut new, "status", old.get("status").cloned()),
        Part::Status => new = with_status(kind, old, &new),
        Part::Main | Part::Whole => {}
    }
    for field in SERVERS_OWN.iter().chain(&["resourceVersion", "namespace", "generateName"]) {
        object::set_metadata(&mut new, field, old["metadata"].get(*field).cloned());
    }
    for field in ["apiVersion", "kind"] {
        object::set_field(&mut new, field, old.get(field).cloned());
    }
    drop_empty(&mut new);
    if kind.generation && wanted(kind, old) != wanted(kind, &new) {
        raise_generation(&mut new);
    }
    let mut errors = finalizers(old, &new);
    errors.extend(snapshots::check(&new, Some(old)));
    if errors.is_empty() { Ok(new) } else { Err(ApiError::Invalid(kind.object(object::name(old)), errors)) }
}

/// The object as a deletion marks it while finalizers hold it.
pub(crate) fn marked_for_deletion(kind: &Kind, old: &Value) -> Value {
    let mut object = old.clone();
    object::set_metadata(&mut object, "deletionTimestamp", Some(object::now()));
    if kind.is("namespaces") {
        object["status"]["phase"] = "Terminating".into();
    } else {
        object::set_metadata(&mut object, "deletionGracePeriodSeconds", Some(0.into()));
    }
    if kind.generation {
        raise_generation(&mut object);
    }
    object
}

/// Whether nothing holds a deleted object any more.
pub(crate) fn unheld(object: &Value) -> bool {
    let held_in_spec = object::text(object, "/kind") == "Namespace"
        && object["spec"]["finalizers"].as_array().is_some_and(|held| !held.is_empty());
    object::finalizers(object).next().is_none() && !held_in_spec
}

/// A write to `/status`: of a custom resource only the status is taken, of a built-in one the metadata too.
fn with_status(kind: &Kind, old: &Value, new: &Value) -> Value {
    let mut object = old.clone();
    object::set_field(&mut object, "status", new.get("status").cloned());
    if !kind.custom {
        object::set_field(&mut object, "metadata", new.get("metadata").cloned());
    }
    object
}

/// The fields whose change is a new generation.
fn wanted(kind: &Kind, object: &Value) -> Map<String, Value> {
    let mut fields = object.as_object().cloned().unwrap_or_default();
    fields.remove("metadata");
    if kind.status {
        fields.remove("status");
    }
    fields
}

fn raise_generation(object: &mut Value) {
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default() + 1;
    object::set_metadata(object, "generation", Some(generation.into()));
}

fn finalizers(old: &Value, new: &Value) -> Vec<FieldError> {
    let added: Vec<String> = object::finalizers(new)
        .filter(|finalizer| object::finalizers(old).all(|held| held != *finalizer))
        .map(|finalizer| format!("{finalizer:?}"))
        .collect();
    if !object::deleting(old) || added.is_empty() {
        return Vec::new();
    }
    vec![FieldError::forbidden(
        "metadata.finalizers",
        format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            added.join(", ")
        ),
    )]
}

/// Empty maps, lists and texts of the metadata are not kept.
fn drop_empty(object: &mut Value) {
    object::metadata(object).retain(|_, value| match value {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds;

    fn kind(name: &str) -> Kind {
        Kind::clone(&kinds::initial().get(&name.into()).unwrap())
    }

    fn content() -> Value {
        json!({"kind": "VolumeSnapshotContent", "metadata": {"name": "c"}, "spec": {
            "deletionPolicy": "Delete", "driver": "d", "source": {"snapshotHandle": "h"},
            "volumeSnapshotRef": {"name": "s", "namespace": "n"},
        }, "status": {"snapshotHandle": "h"}})
    }

    #[test]
    fn creation_drops_a_status_that_is_a_subresource() {
        let contents = kind("volumesnapshotcontents.snapshot.storage.k8s.io");
        assert!(created(&contents, content(), Part::Main).unwrap().get("status").is_none());
        assert!(created(&contents, content(), Part::Whole).unwrap().get("status").is_some());
        let backup = json!({"metadata": {"name": "b"}, "status": {"phase": "New"}});
        let kept = created(&kind("backups.velero.io"), backup, Part::Main).unwrap();
        assert_eq!(kept["status"]["phase"], "New");
    }

    #[test]
    fn status_and_main_writes_keep_out_of_each_others_part() {
        let contents = kind("volumesnapshotcontents.snapshot.storage.k8s.io");
        let old = created(&contents, content(), Part::Whole).unwrap();
        let mut new = old.clone();
        new["spec"]["deletionPolicy"] = "Retain".into();
        new["metadata"]["labels"] = json!({"a": "b"});
        new["status"]["snapshotHandle"] = "other".into();

        let main = updated(&contents, &old, new.clone(), Part::Main).unwrap();
        assert_eq!(main["status"], old["status"]);
        assert_eq!(
            (&main["spec"]["deletionPolicy"], &main["metadata"]["generation"]),
            (&"Retain".into(), &2.into())
        );

        let status = updated(&contents, &old, new, Part::Status).unwrap();
        assert_eq!((&status["spec"], &status["metadata"]), (&old["spec"], &old["metadata"]));
        assert_eq!(status["status"]["snapshotHandle"], "other");
    }

    #[test]
    fn identity_survives_any_write() {
        let pods = kind("pods");
        let old = created(&pods, json!({"kind": "Pod", "metadata": {"name": "p"}}), Part::Main).unwrap();
        let new = json!({"metadata": {"name": "p", "uid": "x", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        let written = updated(&pods, &old, new, Part::Main).unwrap();
        assert_eq!(written, old);
    }

    #[test]
    fn deleted_objects_take_no_new_finalizers() {
        let pods = kind("pods");
        let pod = json!({"kind": "Pod", "metadata": {"name": "p", "finalizers": ["x.io/a"]}});
        let old = created(&pods, pod, Part::Main).unwrap();
        let marked = marked_for_deletion(&pods, &old);
        assert!(!unheld(&marked));
        assert_eq!(marked["metadata"]["generation"], 2);
        let mut new = marked.clone();
        new["metadata"]["finalizers"] = json!(["x.io/a", "x.io/b"]);
        assert_eq!(updated(&pods, &marked, new.clone(), Part::Main).unwrap_err().code(), 422);
        new["metadata"]["finalizers"] = json!([]);
        assert!(unheld(&updated(&pods, &marked, new, Part::Main).unwrap()));
    }
}
