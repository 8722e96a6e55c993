//! The validation rules of the snapshot resources' definitions that clients run into.

use serde_json::Value;

use crate::error::FieldError;
use crate::object::text;

const CONTENT_SOURCE: Source = Source {
    fields: ["volumeHandle", "snapshotHandle"],
    exactly_one: "exactly one of volumeHandle and snapshotHandle must be set",
};
const SNAPSHOT_SOURCE: Source = Source {
    fields: ["persistentVolumeClaimName", "volumeSnapshotContentName"],
    exactly_one: "exactly one of volumeSnapshotContentName and persistentVolumeClaimName must be set",
};

/// A `spec.source` that names exactly one of two things, for good.
struct Source {
    fields: [&'static str; 2],
    exactly_one: &'static str,
}

/// What is wrong with a snapshot object, as a new one or as a change of `old`.
pub(crate) fn check(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let (required, rules): (&[&str], Rules) = match text(object, "/kind") {
        "VolumeSnapshotContent" => {
            (&["spec.deletionPolicy", "spec.driver", "spec.source", "spec.volumeSnapshotRef"], content)
        }
        "VolumeSnapshot" => (&["spec.source"], snapshot),
        "VolumeSnapshotClass" => return shape(object, &["deletionPolicy", "driver"]),
        _ => return Vec::new(),
    };
    // While the shape is wrong, the rules are not looked at.
    let mut errors = shape(object, required);
    if errors.is_empty() {
        return rules(object, old);
    }
    errors.push(unchecked());
    errors
}

type Rules = fn(&Value, Option<&Value>) -> Vec<FieldError>;

fn shape(object: &Value, required: &[&str]) -> Vec<FieldError> {
    let in_spec = required.iter().any(|field| field.starts_with("spec."));
    if in_spec && !object["spec"].is_object() {
        return vec![FieldError::required("spec", "")];
    }
    let mut errors = Vec::new();
    for field in required {
        let value = object.pointer(&format!("/{}", field.replace('.', "/")));
        if value.is_none_or(Value::is_null) {
            errors.push(FieldError::required(field, ""));
        } else if field.ends_with("deletionPolicy") {
            let policy = value.and_then(Value::as_str).unwrap_or_default();
            if !["Delete", "Retain"].contains(&policy) {
                errors.push(FieldError::unsupported(field, policy, &["Delete", "Retain"]));
            }
        }
    }
    errors
}

fn unchecked() -> FieldError {
    let why = "null: some validation rules were not checked because the object was invalid; correct the existing \
               errors to complete validation";
    FieldError::invalid("<nil>", why)
}

fn content(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (spec, old) = (&object["spec"], old.map(|old| &old["spec"]));
    source(&CONTENT_SOURCE, spec, old, &mut errors);
    let reference = &spec["volumeSnapshotRef"];
    if reference["name"].is_null() || reference["namespace"].is_null() {
        errors.push(FieldError::invalid(
            "spec.volumeSnapshotRef",
            "both spec.volumeSnapshotRef.name and spec.volumeSnapshotRef.namespace must be set",
        ));
    }
    if let Some(before) = old.and_then(|old| old["sourceVolumeMode"].as_str()) {
        match spec["sourceVolumeMode"].as_str() {
            None => errors.push(FieldError::invalid("spec", "sourceVolumeMode is required once set")),
            Some(mode) if mode != before => {
                let why = format!("{mode:?}: sourceVolumeMode is immutable");
                errors.push(FieldError::invalid("spec.sourceVolumeMode", why));
            }
            Some(_) => {}
        }
    }
    errors
}

fn snapshot(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    source(&SNAPSHOT_SOURCE, &object["spec"], old.map(|old| &old["spec"]), &mut errors);
    if object["spec"]["volumeSnapshotClassName"] == "" {
        errors.push(FieldError::invalid(
            "spec.volumeSnapshotClassName",
            "\"\": volumeSnapshotClassName must not be the empty string when set",
        ));
    }
    errors
}

fn source(rule: &Source, spec: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let given = |spec: &Value, field: &str| spec["source"][field].as_str().map(str::to_owned);
    for field in rule.fields {
        let before = old.and_then(|old| given(old, field));
        match (before, given(spec, field)) {
            (Some(_), None) => {
                errors.push(FieldError::invalid("spec.source", format!("{field} is required once set")));
            }
            (Some(before), Some(after)) if before != after => {
                let path = format!("spec.source.{field}");
                errors.push(FieldError::invalid(&path, format!("{after:?}: {field} is immutable")));
            }
            _ => {}
        }
    }
    if rule.fields.iter().filter(|field| given(spec, field).is_some()).count() != 1 {
        errors.push(FieldError::invalid("spec.source", rule.exactly_one));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn content_with(source: &Value) -> Value {
        json!({"kind": "VolumeSnapshotContent", "spec": {
            "deletionPolicy": "Delete", "driver": "d", "source": source,
            "volumeSnapshotRef": {"name": "s", "namespace": "n"},
        }})
    }

    fn told(object: &Value, old: Option<&Value>) -> Vec<String> {
        check(object, old).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn content_needs_exactly_one_source() {
        let one = content_with(&json!({"snapshotHandle": "h"}));
        assert!(check(&one, None).is_empty());
        for source in [json!({}), json!({"snapshotHandle": "h", "volumeHandle": "v"})] {
            let expected =
                "spec.source: Invalid value: exactly one of volumeHandle and snapshotHandle must be set";
            assert_eq!(told(&content_with(&source), None), [expected]);
        }
    }

    #[test]
    fn source_never_changes() {
        let old = content_with(&json!({"snapshotHandle": "h"}));
        let other = content_with(&json!({"snapshotHandle": "z"}));
        assert_eq!(
            told(&other, Some(&old)),
            ["spec.source.snapshotHandle: Invalid value: \"z\": snapshotHandle is immutable"]
        );
        let moved = content_with(&json!({"volumeHandle": "v"}));
        assert_eq!(
            told(&moved, Some(&old)),
            ["spec.source: Invalid value: snapshotHandle is required once set"]
        );
    }

    #[test]
    fn rules_are_not_looked_at_while_the_shape_is_wrong() {
        let object =
            json!({"kind": "VolumeSnapshotContent", "spec": {"deletionPolicy": "Keep", "source": {}}});
        let fields: Vec<String> = check(&object, None).into_iter().map(|error| error.field).collect();
        assert_eq!(fields, ["spec.deletionPolicy", "spec.driver", "spec.volumeSnapshotRef", "<nil>"]);
        let empty = json!({"kind": "VolumeSnapshot"});
        assert_eq!(told(&empty, None)[0], "spec: Required value");
    }

    #[test]
    fn snapshot_names_a_claim_or_a_content_and_no_empty_class() {
        let object = json!({"kind": "VolumeSnapshot", "spec": {
            "source": {"persistentVolumeClaimName": "p"}, "volumeSnapshotClassName": "",
        }});
        let fields: Vec<String> = check(&object, None).into_iter().map(|error| error.field).collect();
        assert_eq!(fields, ["spec.volumeSnapshotClassName"]);
    }
}
