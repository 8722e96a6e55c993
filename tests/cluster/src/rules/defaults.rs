//! What the server fills in when objects of its own kinds are created.

use serde_json::{Map, Value, json};

use crate::object;

pub(crate) const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
pub(crate) const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";
/// Held in a namespace's spec until its content is gone.
pub(crate) const NAMESPACE_FINALIZER: &str = "kubernetes";

/// Fills in what the server would, for the built-in kinds that matter here.
pub(crate) fn fill(object: &mut Value) {
    match object::text(object, "/kind") {
        "Namespace" => {
            let name = object::name(object).to_owned();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name.into();
            object["spec"]["finalizers"] = json!([NAMESPACE_FINALIZER]);
            object["status"] = json!({"phase": "Active"});
        }
        "PersistentVolumeClaim" => {
            absent(object, "spec", json!({"volumeMode": "Filesystem"}));
            object["status"] = json!({"phase": "Pending"});
            object::set_finalizer(object, CLAIM_PROTECTION, true);
        }
        "PersistentVolume" => {
            absent(
                object,
                "spec",
                json!({"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"}),
            );
            object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": object::now()});
            object::set_finalizer(object, VOLUME_PROTECTION, true);
        }
        "CustomResourceDefinition" => {
            // Its controller answers at once here.
            let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "NoConflicts", "message": "", "lastTransitionTime": object::now()});
            object["status"] = json!({
                "conditions": [condition("NamesAccepted"), condition("Established")],
                "acceptedNames": object["spec"]["names"],
                "storedVersions": stored_versions(object),
            });
        }
        "Pod" => object["status"] = json!({"phase": "Pending", "qosClass": "BestEffort"}),
        "StorageClass" => {
            absent_at_top(object, json!({"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}));
        }
        "Secret" => secret(object),
        _ => {}
    }
}

fn stored_versions(definition: &Value) -> Value {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    versions.filter(|version| version["storage"] == true).map(|version| version["name"].clone()).collect()
}

/// Turns `stringData` into `data`, as the server does.
fn secret(object: &mut Value) {
    absent_at_top(object, json!({"type": "Opaque"}));
    let Some(Value::Object(texts)) = object.get("stringData").cloned() else { return };
    for (key, text) in texts {
        object["data"][key] = base64(text.as_str().unwrap_or_default().as_bytes()).into();
    }
    object::set_field(object, "stringData", None);
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().chain([&0, &0]).take(3).fold(0_usize, |word, byte| word << 8 | usize::from(*byte));
        for place in 0..4 {
            let digit = char::from(DIGITS[word >> (18 - 6 * place) & 63]);
            text.push(if place <= chunk.len() { digit } else { '=' });
        }
    }
    text
}

/// Adds the fields of `defaults` that the object's `part` lacks.
fn absent(object: &mut Value, part: &str, defaults: Value) {
    if !object[part].is_object() {
        object[part] = Value::Object(Map::new());
    }
    absent_at_top(&mut object[part], defaults);
}

fn absent_at_top(target: &mut Value, defaults: Value) {
    if let (Value::Object(target), Value::Object(defaults)) = (target, defaults) {
        for (field, value) in defaults {
            target.entry(field).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_start_pending_and_protected() {
        let mut claim =
            json!({"kind": "PersistentVolumeClaim", "spec": {"volumeMode": "Block"}, "status": {"x": 1}});
        fill(&mut claim);
        assert_eq!(claim["spec"]["volumeMode"], "Block");
        assert_eq!(claim["status"], json!({"phase": "Pending"}));
        assert_eq!(claim["metadata"]["finalizers"], json!([CLAIM_PROTECTION]));
    }

    #[test]
    fn string_data_becomes_data() {
        for (text, expected) in
            [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj"), ("hello world", "aGVsbG8gd29ybGQ=")]
        {
            let mut secret = json!({"kind": "Secret", "stringData": {"k": text}});
            fill(&mut secret);
            assert_eq!(secret, json!({"kind": "Secret", "type": "Opaque", "data": {"k": expected}}));
        }
    }
}
