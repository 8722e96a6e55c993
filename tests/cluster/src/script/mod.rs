//! The proof that this API is one: a script of requests whose answers must be those of a real API server.
//!
//! `cargo run -p cluster -- compare --kubeconfig FILE` runs it on the embedded API and on a real server that has the snapshot
//! resources installed, and prints what differs; `record` writes the real answers down, against which the tests of
//! this crate compare.

mod normal;
mod run;
mod steps;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use normal::StandIns;
pub use run::{Trouble, run};
pub use steps::steps;

/// One request of the script.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// What it shows; unique in the script.
    pub what: &'static str,
    /// The HTTP method.
    pub method: &'static str,
    /// Path and query. `$name` stands for a captured value.
    pub path: String,
    /// The body, sent as it is written here after captured values are put in; nothing when null.
    pub body: Value,
    /// The body's type; JSON when empty.
    pub content_type: &'static str,
    /// Values for later steps: name and JSON pointer into the answer.
    pub capture: &'static [(&'static str, &'static str)],
    /// The step is repeated until the answer has this code; what comes before isn't compared.
    pub until: Option<u16>,
    /// JSON pointers whose values differ between servers for good reasons.
    pub except: &'static [&'static str],
}

/// What a server answered to a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The step.
    pub what: String,
    /// The status code.
    pub code: u16,
    /// The body; the events of a watch as a list. Times, identities, versions and generated names are replaced by
    /// stand-ins.
    pub answer: Value,
}

/// The places where two answers differ: step, JSON pointer, and both values.
pub fn differences(left: &[Entry], right: &[Entry]) -> Vec<(String, String, Value, Value)> {
    let mut found = Vec::new();
    let steps: Vec<&String> = left.iter().chain(right).map(|entry| &entry.what).collect();
    let mut seen = Vec::new();
    for what in steps {
        if seen.contains(&what) {
            continue;
        }
        seen.push(what);
        let value = |entries: &[Entry]| {
            let entry = entries.iter().find(|entry| entry.what == *what);
            entry.map_or(Value::Null, |entry| serde_json::json!({"code": entry.code, "answer": entry.answer}))
        };
        compare(what, String::new(), &value(left), &value(right), &mut found);
    }
    found
}

fn compare(
    what: &str,
    pointer: String,
    left: &Value,
    right: &Value,
    found: &mut Vec<(String, String, Value, Value)>,
) {
    match (left, right) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let side = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                compare(what, format!("{pointer}/{key}"), &side(a), &side(b), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(what, format!("{pointer}/{index}"), a, b, found);
            }
        }
        _ if left != right => found.push((what.to_owned(), pointer, left.clone(), right.clone())),
        _ => {}
    }
}

// === impl Step ===

impl Step {
    fn new(what: &'static str, method: &'static str, path: impl Into<String>) -> Self {
        Self { what, method, path: path.into(), ..Self::default() }
    }

    fn body(self, body: Value) -> Self {
        Self { body, ..self }
    }

    fn merge(self, body: Value) -> Self {
        Self { body, content_type: "application/merge-patch+json", ..self }
    }

    fn json_patch(self, body: Value) -> Self {
        Self { body, content_type: "application/json-patch+json", ..self }
    }

    fn apply(self, body: Value) -> Self {
        Self { body, content_type: "application/apply-patch+yaml", ..self }
    }

    fn capture(self, capture: &'static [(&'static str, &'static str)]) -> Self {
        Self { capture, ..self }
    }

    fn until(self, code: u16) -> Self {
        Self { until: Some(code), ..self }
    }

    fn except(self, except: &'static [&'static str]) -> Self {
        Self { except, ..self }
    }

    /// Whether the answer is a stream of events.
    fn watches(&self) -> bool {
        self.path.contains("watch=true")
    }

    fn content_type(&self) -> Cow<'static, str> {
        Cow::Borrowed(if self.content_type.is_empty() { "application/json" } else { self.content_type })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_told_by_place() {
        let entry = |what: &str, answer: Value| Entry { what: what.to_owned(), code: 200, answer };
        let left = [entry("a", json!({"x": [1, 2], "y": 1})), entry("b", json!(1))];
        let right = [entry("a", json!({"x": [1, 3]}))];
        let found = differences(&left, &right);
        let places: Vec<String> =
            found.iter().map(|(what, pointer, ..)| format!("{what} {pointer}")).collect();
        assert_eq!(places, ["a /answer/x/1", "a /answer/y", "b "]);
        assert_eq!(differences(&left, &left), []);
    }

    #[test]
    fn every_step_shows_something_of_its_own() {
        let mut names: Vec<&str> = steps("n").iter().map(|step| step.what).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
