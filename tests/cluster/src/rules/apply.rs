//! Server-side apply, simplified: ownership of leaves between managers that apply.
//!
//! Lists are owned as a whole, and writes that are not applies own nothing.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::error::{ApiError, FieldError};
use crate::object;

/// A leaf's path; map keys may hold any letter, so it isn't one text.
type Path = Vec<String>;

/// The object after `manager` applied `config`; `old` is none when that creates it.
///
/// # Errors
/// A conflict when another manager owns a leaf with another value, unless `force` takes it over.
pub(crate) fn applied(
    old: Option<&Value>,
    config: &Value,
    manager: &str,
    force: bool,
) -> Result<Value, ApiError> {
    let wanted = leaves(config);
    let mut object = old.cloned().unwrap_or_else(|| json!({}));
    let mut managers = managers(&object);

    let differs = |path: &Path| at(&object, path) != at(config, path);
    let mut conflicts = Vec::new();
    for (owner, owned) in managers.iter().filter(|(owner, _)| owner != manager) {
        for path in owned.intersection(&wanted).filter(|path| differs(path)) {
            let message = format!("conflict with {owner:?}");
            conflicts.push(FieldError::new("FieldManagerConflict", &dotted(path), message));
        }
    }
    if !conflicts.is_empty() && !force {
        return Err(ApiError::ApplyConflict(conflicts));
    }
    let taken: BTreeSet<Path> = wanted.iter().filter(|path| differs(path)).cloned().collect();
    for (_, owned) in managers.iter_mut().filter(|(owner, _)| owner != manager) {
        owned.retain(|path| !taken.contains(path));
    }
    let before = managers.iter().find(|(owner, _)| owner == manager).map(|(_, owned)| owned.clone());
    managers.retain(|(owner, owned)| owner != manager && !owned.is_empty());
    for path in before.iter().flatten() {
        if !wanted.contains(path) && managers.iter().all(|(_, owned)| !owned.contains(path)) {
            remove(&mut object, path);
        }
    }
    json_patch::merge(&mut object, config);
    managers.push((manager.to_owned(), wanted));
    record(&mut object, &managers);
    Ok(object)
}

/// The leaves of a configuration, without what identifies the object.
fn leaves(config: &Value) -> BTreeSet<Path> {
    fn walk(value: &Value, path: &mut Path, found: &mut BTreeSet<Path>) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (key, value) in map {
                    path.push(key.clone());
                    walk(value, path, found);
                    path.pop();
                }
            }
            _ => {
                found.insert(path.clone());
            }
        }
    }
    let mut config = config.clone();
    for field in ["apiVersion", "kind"] {
        object::set_field(&mut config, field, None);
    }
    for field in ["name", "namespace", "uid", "resourceVersion", "managedFields", "creationTimestamp"] {
        object::set_metadata(&mut config, field, None);
    }
    let mut found = BTreeSet::new();
    walk(&config, &mut Path::new(), &mut found);
    found.remove(&vec!["metadata".to_owned()]);
    found
}

fn at<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, key| value.get(key))
}

fn remove(object: &mut Value, path: &[String]) {
    if let [parents @ .., last] = path {
        let parent = parents.iter().try_fold(object, |value, key| value.get_mut(key));
        if let Some(Value::Object(map)) = parent {
            map.remove(last);
        }
    }
}

fn dotted(path: &[String]) -> String {
    format!(".{}", path.join("."))
}

/// Who applied which leaves, from `metadata.managedFields`.
fn managers(object: &Value) -> Vec<(String, BTreeSet<Path>)> {
    fn walk(fields: &Value, path: &mut Path, found: &mut BTreeSet<Path>) {
        for (key, inner) in fields.as_object().into_iter().flatten() {
            let Some(key) = key.strip_prefix("f:") else { continue };
            path.push(key.to_owned());
            if inner.as_object().is_none_or(Map::is_empty) {
                found.insert(path.clone());
            }
            walk(inner, path, found);
            path.pop();
        }
    }
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries
        .filter(|entry| entry["operation"] == "Apply")
        .map(|entry| {
            let mut owned = BTreeSet::new();
            walk(&entry["fieldsV1"], &mut Path::new(), &mut owned);
            (object::text(entry, "/manager").to_owned(), owned)
        })
        .collect()
}

fn record(object: &mut Value, managers: &[(String, BTreeSet<Path>)]) {
    let api_version = object["apiVersion"].clone();
    let entries = managers.iter().map(|(manager, owned)| {
        let mut fields = json!({});
        for path in owned {
            let mut place = &mut fields;
            for key in path {
                place = &mut place[format!("f:{key}")];
                if place.is_null() {
                    *place = json!({});
                }
            }
        }
        json!({
            "manager": manager, "operation": "Apply", "apiVersion": api_version,
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    });
    let entries: Value = entries.collect();
    object::set_metadata(object, "managedFields", Some(entries));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(labels: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "labels": labels}})
    }

    #[test]
    fn what_a_manager_no_longer_applies_goes_unless_others_apply_it() {
        let first = applied(None, &config(&json!({"a": "1", "b": "2"})), "one", false).unwrap();
        let shared = applied(Some(&first), &config(&json!({"b": "2"})), "two", false).unwrap();
        let less = applied(Some(&shared), &config(&json!({})), "one", false).unwrap();
        assert_eq!(less["metadata"]["labels"], json!({"b": "2"}));
    }

    #[test]
    fn fields_of_nobody_are_left_alone() {
        let mut old = config(&json!({"mine": "1"}));
        old["data"] = json!({"k": "v"});
        let new = applied(Some(&old), &config(&json!({"a": "1"})), "one", false).unwrap();
        assert_eq!(new["metadata"]["labels"], json!({"a": "1", "mine": "1"}));
        assert_eq!(new["data"], json!({"k": "v"}));
    }

    #[test]
    fn another_value_is_a_conflict_unless_forced() {
        let old = applied(None, &config(&json!({"velero.io/a": "1"})), "one", false).unwrap();
        let wanted = config(&json!({"velero.io/a": "2"}));
        let refused = applied(Some(&old), &wanted, "two", false).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "Apply failed with 1 conflict: conflict with \"one\": .metadata.labels.velero.io/a"
        );
        let forced = applied(Some(&old), &wanted, "two", true).unwrap();
        assert_eq!(forced["metadata"]["labels"]["velero.io/a"], "2");
        assert_eq!(managers(&forced).len(), 1, "the other manager owns nothing any more");
        let agreed = applied(Some(&old), &config(&json!({"velero.io/a": "1"})), "two", false).unwrap();
        assert_eq!(managers(&agreed).len(), 2);
    }
}
