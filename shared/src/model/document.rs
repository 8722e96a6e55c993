//! Edits of a JSON object that leave every byte they don't name as it was.
//!
//! An object is opened only along the paths that are edited; all else stays raw text. So a field that this build
//! does not know, the order of keys, and the form of a number (`1.0`, `1e3`, an integer beyond 64 bits) survive.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::Value;
use serde_json::value::RawValue;

/// Why an edit was refused. The document is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text is not one JSON object.
    #[error("the document is not a JSON object: {0}")]
    NotAnObject(String),
    /// A part of the path leads through something that has no fields.
    #[error("{path}: {part:?} is no object, so nothing can be set below it")]
    NoFieldsBelow {
        /// The path that was to be edited, its parts joined by dots.
        path: String,
        /// The part that is no object.
        part: String,
    },
    /// A path without parts names the whole document.
    #[error("the path is empty: name a field")]
    EmptyPath,
}

#[derive(Debug)]
enum Node {
    Raw(Box<RawValue>),
    Open(Vec<(String, Node)>),
}

/// A JSON object under edit.
///
/// Paths are slices of field names, so that a name with a slash or a dot (labels, annotations) needs no escape.
#[derive(Debug)]
pub struct Document {
    fields: Vec<(String, Node)>,
}

impl Document {
    /// Opens `text`, which must be one JSON object.
    ///
    /// # Errors
    ///
    /// [`EditError::NotAnObject`].
    pub fn parse(text: &[u8]) -> Result<Self, EditError> {
        let fields = open(text).map_err(|error| EditError::NotAnObject(error.to_string()))?;
        Ok(Self { fields })
    }

    /// Sets the field at `path`, creating the objects on the way. An absent field is added at the end.
    ///
    /// # Errors
    ///
    /// [`EditError::NoFieldsBelow`] where the way leads through a text, number, list or bool; `null` counts as absent.
    pub fn set(&mut self, path: &[&str], value: impl Into<Value>) -> Result<(), EditError> {
        let (last, way) = path.split_last().ok_or(EditError::EmptyPath)?;
        let fields = descend(&mut self.fields, way, path)?;
        let raw = Node::Raw(raw(&value.into()));
        match fields.iter_mut().find(|(name, _)| name == last) {
            Some((_, node)) => *node = raw,
            None => fields.push(((*last).to_owned(), raw)),
        }
        Ok(())
    }

    /// Removes the field at `path`; whether it was there.
    pub fn remove(&mut self, path: &[&str]) -> bool {
        let Some((last, way)) = path.split_last() else { return false };
        let Some(fields) = find(&mut self.fields, way) else { return false };
        let before = fields.len();
        fields.retain(|(name, _)| name != last);
        fields.len() != before
    }

    /// The document's text.
    pub fn into_bytes(self) -> Vec<u8> {
        let mut text = Vec::new();
        write(&self.fields, &mut text);
        text
    }
}

// === fields and their text ===

/// The fields of the object `text`, in its order, each as the text it has there.
fn open(text: &[u8]) -> Result<Vec<(String, Node)>, serde_json::Error> {
    struct Fields(Vec<(String, Node)>);
    struct Visitor;

    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = Fields;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
            let mut fields: Vec<(String, Node)> = Vec::new();
            let mut places: HashMap<String, usize> = HashMap::new();
            while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                match places.entry(name) {
                    // Go keeps the last of two fields with one name; so does this.
                    Entry::Occupied(place) => fields[*place.get()].1 = Node::Raw(value),
                    Entry::Vacant(place) => {
                        fields.push((place.key().clone(), Node::Raw(value)));
                        place.insert(fields.len() - 1);
                    }
                }
            }
            Ok(Fields(fields))
        }
    }

    impl<'de> serde::Deserialize<'de> for Fields {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(Visitor)
        }
    }

    serde_json::from_slice::<Fields>(text).map(|fields| fields.0)
}

/// The fields at the end of `way`, if every part of it is an object.
fn find<'a>(fields: &'a mut Vec<(String, Node)>, way: &[&str]) -> Option<&'a mut Vec<(String, Node)>> {
    let Some((part, rest)) = way.split_first() else { return Some(fields) };
    let (_, node) = fields.iter_mut().find(|(name, _)| name == part)?;
    find(opened(node)?, rest)
}

/// As [`find`], but creates what is absent.
fn descend<'a>(
    fields: &'a mut Vec<(String, Node)>,
    way: &[&str],
    path: &[&str],
) -> Result<&'a mut Vec<(String, Node)>, EditError> {
    let Some((part, rest)) = way.split_first() else { return Ok(fields) };
    let index = match fields.iter().position(|(name, _)| name == part) {
        Some(index) => index,
        None => {
            fields.push(((*part).to_owned(), Node::Open(Vec::new())));
            fields.len() - 1
        }
    };
    let node = &mut fields[index].1;
    if matches!(node, Node::Raw(raw) if raw.get() == "null") {
        *node = Node::Open(Vec::new());
    }
    let below = opened(node)
        .ok_or_else(|| EditError::NoFieldsBelow { path: path.join("."), part: (*part).to_owned() })?;
    descend(below, rest, path)
}

/// Opens `node` in place; `None` where it is no object.
fn opened(node: &mut Node) -> Option<&mut Vec<(String, Node)>> {
    if let Node::Raw(raw) = node {
        *node = Node::Open(open(raw.get().as_bytes()).ok()?);
    }
    match node {
        Node::Open(fields) => Some(fields),
        Node::Raw(_) => None,
    }
}

fn raw(value: &Value) -> Box<RawValue> {
    // The text of a `Value` is JSON by construction, so the fall-back is never taken.
    RawValue::from_string(value.to_string()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn write(fields: &[(String, Node)], text: &mut Vec<u8>) {
    text.push(b'{');
    for (index, (name, node)) in fields.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.extend_from_slice(Value::from(name.as_str()).to_string().as_bytes());
        text.push(b':');
        match node {
            Node::Raw(raw) => text.extend_from_slice(raw.get().as_bytes()),
            Node::Open(fields) => write(fields, text),
        }
    }
    text.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn edited(text: &str, edit: impl FnOnce(&mut Document)) -> String {
        let mut document = Document::parse(text.as_bytes()).unwrap();
        edit(&mut document);
        String::from_utf8(document.into_bytes()).unwrap()
    }

    #[test]
    fn numbers_keep_their_form_beside_an_edit() {
        for number in
            ["9007199254740993", "18446744073709551615", "1e3", "1.0", "0.1", "-9223372036854775808", "1E+2"]
        {
            let text = format!(r#"{{"spec":{{"n":{number},"volumeName":"pv"}}}}"#);
            let text = edited(&text, |document| assert!(document.remove(&["spec", "volumeName"])));
            assert_eq!(text, format!(r#"{{"spec":{{"n":{number}}}}}"#));
        }
    }

    #[test]
    fn untouched_parts_keep_order_escapes_and_nulls() {
        let text = r#"{"z":{"b":null,"a":"\u003c&>"},"kind":"Pod","x":[1, 2]}"#;
        let text = edited(text, |document| document.set(&["metadata", "labels", "a.b/c"], "v").unwrap());
        assert_eq!(
            text,
            r#"{"z":{"b":null,"a":"\u003c&>"},"kind":"Pod","x":[1, 2],"metadata":{"labels":{"a.b/c":"v"}}}"#
        );
    }

    #[test]
    fn setting_replaces_in_place_and_null_counts_as_absent() {
        let text = edited(r#"{"a":{"b":1},"c":null}"#, |document| {
            document.set(&["a", "b"], json!({"x": true})).unwrap();
            document.set(&["c", "d"], 2).unwrap();
        });
        assert_eq!(text, r#"{"a":{"b":{"x":true}},"c":{"d":2}}"#);
    }

    #[test]
    fn a_path_through_a_text_is_refused_with_its_part() {
        let mut document = Document::parse(br#"{"spec":"text"}"#).unwrap();
        let error = document.set(&["spec", "a"], 1).unwrap_err();
        assert_eq!(error.to_string(), r#"spec.a: "spec" is no object, so nothing can be set below it"#);
        assert!(!document.remove(&["spec", "a"]));
        assert_eq!(document.into_bytes(), br#"{"spec":"text"}"#);
    }

    #[test]
    fn the_last_of_two_fields_with_one_name_holds() {
        let text = edited(r#"{"a":1,"b":2,"a":3}"#, |document| document.set(&["c"], 4).unwrap());
        assert_eq!(text, r#"{"a":3,"b":2,"c":4}"#);
    }

    #[test]
    fn only_objects_are_documents() {
        for text in ["[]", "1", "", "{", "null"] {
            assert!(Document::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
