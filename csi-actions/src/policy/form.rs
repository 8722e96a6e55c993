//! The forms that a condition can have in YAML; `None` stands for any other.

use serde_json::Value;

/// The texts of these fields, "" for an absent one; `None` where there is any other field.
pub(super) fn fields<const N: usize>(value: &Value, names: [&str; N]) -> Option<[String; N]> {
    let map = value.as_object()?;
    if map.keys().any(|key| !names.contains(&key.as_str())) {
        return None;
    }
    let mut texts = std::array::from_fn(|_| String::new());
    for (text, name) in texts.iter_mut().zip(names) {
        match map.get(name) {
            None | Some(Value::Null) => {}
            Some(value) => *text = scalar(value)?,
        }
    }
    Some(texts)
}

/// A list of texts.
pub(super) fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(scalar).collect()
}

/// A map of texts.
pub(super) fn pairs(value: &Value) -> Option<Vec<(String, String)>> {
    value.as_object()?.iter().map(|(key, value)| Some((key.clone(), scalar(value)?))).collect()
}

/// A text, also where YAML took it for something else since it has no quotes: `true` and `8` come back as they were written,
/// a number with a fraction may not.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) => Some(value.to_string()),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(value.to_string()),
        _ => None,
    }
}
