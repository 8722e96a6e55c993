//! Reading and writing the parts of an object that every kind has.

use jiff::Timestamp;
use serde_json::{Map, Value};

/// The text at a JSON pointer, or nothing.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

pub(crate) fn resource_version(object: &Value) -> &str {
    text(object, "/metadata/resourceVersion")
}

/// Whether a deletion was asked for and only finalizers hold the object.
pub(crate) fn deleting(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Adds or takes away a finalizer; says whether that changed anything.
pub(crate) fn set_finalizer(object: &mut Value, finalizer: &str, wanted: bool) -> bool {
    if finalizers(object).any(|held| held == finalizer) == wanted {
        return false;
    }
    let mut held: Vec<Value> =
        finalizers(object).filter(|held| *held != finalizer).map(Value::from).collect();
    if wanted {
        held.push(finalizer.into());
    }
    set_metadata(object, "finalizers", (!held.is_empty()).then_some(Value::Array(held)));
    true
}

/// The object's metadata, made when it isn't there.
pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    match metadata {
        Value::Object(map) => map,
        _ => unreachable!("made an object just above"),
    }
}

/// Sets a metadata field, or takes it away.
pub(crate) fn set_metadata(object: &mut Value, field: &str, value: Option<Value>) {
    match value {
        Some(value) => metadata(object).insert(field.to_owned(), value),
        None => metadata(object).remove(field),
    };
}

/// Sets a field of the object's top level, or takes it away.
pub(crate) fn set_field(object: &mut Value, field: &str, value: Option<Value>) {
    if let Value::Object(map) = object {
        match value {
            Some(value) => map.insert(field.to_owned(), value),
            None => map.remove(field),
        };
    }
}

/// The present time as Kubernetes writes it: UTC, whole seconds.
pub(crate) fn now() -> Value {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
}
