//! Makes answers of two servers comparable: what must differ gets a stand-in, what must not stays.

use std::collections::BTreeMap;

use serde_json::Value;

/// Stand-ins of one run. The same value always has the same one, numbered in the order of appearance.
#[derive(Debug, Default)]
pub(crate) struct StandIns {
    known: BTreeMap<String, String>,
    /// Replaced wherever it occurs, since other names are made of it.
    namespace: String,
    uids: usize,
    versions: usize,
    handles: usize,
    names: usize,
}

/// Fields with the server's bookkeeping, which is left out here.
const LEFT_OUT: [&str; 1] = ["managedFields"];

impl StandIns {
    /// For a run in this namespace.
    pub(crate) fn of(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), ..Self::default() }
    }

    /// Gives a text a stand-in of its own.
    pub(crate) fn name(&mut self, text: &str, stand_in: &str) {
        self.known.insert(text.to_owned(), stand_in.to_owned());
    }

    /// The comparable form of an answer.
    pub(crate) fn normal(&mut self, mut answer: Value) -> Value {
        self.learn(&answer);
        self.replace(&mut answer);
        answer
    }

    /// Notes the values of the fields that differ, wherever they are.
    fn learn(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                // A list's version depends on what else happens in the cluster.
                let is_list = map.get("items").is_some();
                if let Some(metadata) = map.get("metadata").filter(|_| !is_list) {
                    self.learn_metadata(metadata);
                }
                if let Some(uid) = map.get("uid").and_then(Value::as_str).filter(|uid| uid.len() == 36) {
                    self.learn_uid(uid);
                }
                map.values().for_each(|value| self.learn(value));
            }
            Value::Array(list) => list.iter().for_each(|value| self.learn(value)),
            Value::String(text) => self.learn_handle(text),
            _ => {}
        }
    }

    /// Handles of the test driver and names of group members: a word and at least 32 digits.
    fn learn_handle(&mut self, text: &str) {
        let Some((kind, digits)) = text.split_once('-') else { return };
        let named = digits.len() >= 32 && digits.bytes().take(32).all(|digit| digit.is_ascii_hexdigit());
        if named && !self.known.contains_key(text) {
            self.handles += 1;
            self.known.insert(text.to_owned(), format!("<{kind} {}>", self.handles));
        }
    }

    fn learn_metadata(&mut self, metadata: &Value) {
        if let Some(uid) = metadata["uid"].as_str() {
            self.learn_uid(uid);
        }
        if let Some(version) = metadata["resourceVersion"].as_str()
            && !self.known.contains_key(version)
            && version.parse::<u64>().is_ok()
        {
            self.versions += 1;
            self.known.insert(version.to_owned(), format!("<version {}>", self.versions));
        }
        if let (Some(base), Some(name)) = (metadata["generateName"].as_str(), metadata["name"].as_str())
            && !self.known.contains_key(name)
        {
            self.names += 1;
            let kept = base.len().min(58);
            self.known.insert(name.to_owned(), format!("{}<{} letters>", &base[..kept], name.len() - kept));
        }
    }

    pub(crate) fn learn_uid(&mut self, uid: &str) {
        if !self.known.contains_key(uid) {
            self.uids += 1;
            self.known.insert(uid.to_owned(), format!("<uid {}>", self.uids));
        }
    }

    fn replace(&self, value: &mut Value) {
        match value {
            Value::Object(map) => {
                let is_list = map.contains_key("items");
                if let Some(metadata) = map.get_mut("metadata").filter(|_| is_list) {
                    for field in ["resourceVersion", "continue"] {
                        if metadata[field].as_str().is_some_and(|text| !text.is_empty()) {
                            metadata[field] = "<some>".into();
                        }
                    }
                    // Custom resources say so when there is no more, built-in ones say nothing.
                    if metadata["continue"].as_str().is_none_or(str::is_empty)
                        && let Value::Object(metadata) = metadata
                    {
                        metadata.remove("continue");
                    }
                }
                map.retain(|field, _| !LEFT_OUT.contains(&field.as_str()));
                map.values_mut().for_each(|value| self.replace(value));
            }
            Value::Array(list) => list.iter_mut().for_each(|value| self.replace(value)),
            Value::String(text) => *text = self.stand_in(text),
            _ => {}
        }
    }

    fn stand_in(&self, text: &str) -> String {
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        if text.parse::<jiff::Timestamp>().is_ok() {
            return "<time>".to_owned();
        }
        // Inside of messages: whole words only, the longest first.
        let mut text = text.replace(&self.namespace, "<namespace>");
        let mut known: Vec<_> = self.known.iter().collect();
        known.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        for (value, stand_in) in known {
            // An identity is part of other names, and nothing else.
            text = if value.len() == 36 {
                text.replace(value, stand_in)
            } else {
                replace_word(&text, value, stand_in)
            };
        }
        text
    }
}

/// Replaces `word` where no letter or digit touches it.
fn replace_word(text: &str, word: &str, with: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let touches =
            |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '-');
        result.push_str(before);
        result.push_str(if touches(before.chars().last()) || touches(after.chars().next()) {
            word
        } else {
            with
        });
        rest = after;
    }
    result + rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_differ_get_the_same_stand_in_everywhere() {
        let mut stand_ins = StandIns::of("ns");
        let uid = "705d557e-4e09-4244-b745-79b1403f90ec";
        let object = json!({"metadata": {
            "name": "x-abcde", "generateName": "x-", "uid": uid, "resourceVersion": "311",
            "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [],
        }});
        assert_eq!(
            stand_ins.normal(object),
            json!({"metadata": {
                "name": "x-<5 letters>", "generateName": "x-", "uid": "<uid 1>", "resourceVersion": "<version 1>",
                "creationTimestamp": "<time>",
            }})
        );
        let message = format!("(311) is not (3112), {uid} of \"x-abcde\" is");
        assert_eq!(
            stand_ins.normal(json!(message)),
            json!("(<version 1>) is not (3112), <uid 1> of \"x-<5 letters>\" is")
        );
    }

    #[test]
    fn versions_of_lists_only_have_to_be_there() {
        let list = json!({"items": [], "metadata": {"resourceVersion": "7", "continue": ""}});
        assert_eq!(
            StandIns::of("ns").normal(list),
            json!({"items": [], "metadata": {"resourceVersion": "<some>"}})
        );
    }
}
