//! One line of the plugin's log, in the JSON form of hclog that Velero reads from stderr.
//!
//! The reader is strict in dangerous ways: a `@message`, `@level` or `@timestamp` that is no text, and during a backup a
//! `name`, `namespace` or `resource` that is none, ends the whole Velero server. So this is the only way to a line.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// The longest line that Velero reads in one piece, with its end; of a longer one it logs the pieces raw.
pub(crate) const LONGEST_LINE: usize = 64 * 1024 - 1;

/// A shorter text is not cut: the note would take up what is gained.
const SHORTEST_CUT: usize = 256;

/// The level of a line, in the only spellings that the reader knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// The line for a message, ended by a newline. `source` is file and line; `fields` are the user's own.
pub(crate) fn encode(level: Level, message: &str, source: &str, fields: Map<String, Value>) -> Vec<u8> {
    let mut line = Map::new();
    for (name, value) in fields {
        let (name, value) = field(&name, value);
        line.insert(name, value);
    }
    // Last, so that no field takes their place.
    line.insert("@level".to_owned(), level.as_str().into());
    line.insert("@message".to_owned(), message.into());
    line.insert("logSource".to_owned(), source.into());
    // Velero keeps our source only beside this.
    line.insert("@logSourceSetBy".to_owned(), "plugin".into());

    let mut text = serde_json::to_string(&line).unwrap_or_default();
    let mut longest_text = LONGEST_LINE / 2;
    let whole = text.len();
    while text.len() >= LONGEST_LINE {
        cut(&mut line, longest_text, whole);
        longest_text /= 2;
        text = serde_json::to_string(&line).unwrap_or_default();
    }
    text.push('\n');
    text.into_bytes()
}

/// A field under a name that is neither the reader's nor Velero's own, with a value that can't end the server.
fn field(name: &str, value: Value) -> (String, Value) {
    let bare = name.trim_start_matches('@');
    let name = match bare {
        // Velero drops or overwrites these.
        "time" | "timestamp" | "level" | "msg" | "message" | "logSource" | "" => format!("field_{bare}"),
        _ => bare.to_owned(),
    };
    let value = match (name.as_str(), value) {
        (_, value @ Value::String(_)) => value,
        ("name" | "namespace" | "resource" | "error", value) => value.to_string().into(),
        (_, value @ (Value::Bool(_) | Value::Number(_))) => value,
        (_, value) => value.to_string().into(),
    };
    (name, value)
}

/// Cuts every text of a line that had `whole` bytes to `longest` bytes and a note.
fn cut(line: &mut Map<String, Value>, longest: usize, whole: usize) {
    // Thousands of small fields: keep the reader's own.
    if longest < SHORTEST_CUT {
        line.retain(|name, _| name.starts_with('@') || name == "logSource");
    }
    for value in line.values_mut() {
        if let Value::String(text) = value
            && text.len() > longest
        {
            text.truncate(text.floor_char_boundary(longest));
            let _ = write!(text, "… (cut, the line had {whole} bytes)");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(message: &str, fields: Value) -> Map<String, Value> {
        let Value::Object(fields) = fields else { panic!("fields are an object") };
        let line = encode(Level::Info, message, "src/a.rs:7", fields);
        assert!(line.len() <= LONGEST_LINE, "{} bytes", line.len());
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        serde_json::from_slice(&line).unwrap()
    }

    #[test]
    fn a_line_is_one_flat_object_with_the_readers_keys_as_texts() {
        let line = line("a \"quoted\"\nsecond", json!({"pvc": "a/d", "n": 3, "ok": true}));
        assert_eq!(
            Value::Object(line),
            json!({"@level": "info", "@message": "a \"quoted\"\nsecond", "logSource": "src/a.rs:7",
                   "@logSourceSetBy": "plugin", "pvc": "a/d", "n": 3, "ok": true})
        );
    }

    #[test]
    fn fields_that_could_end_the_server_are_always_texts() {
        for value in [json!(5), json!(null), json!({"a": 1}), json!([1]), json!(true)] {
            let fields = json!({"name": value, "namespace": value, "resource": value, "error": value,
                "@message": value, "@level": value, "@timestamp": value, "level": value, "time": value});
            let line = line("m", fields);
            for key in ["name", "namespace", "resource", "error", "@message", "@level"] {
                assert!(line[key].is_string(), "{key} of {value}");
            }
            assert_eq!(line["@level"], "info");
            assert_eq!(line["@message"], "m");
            for key in ["@timestamp", "time", "level", "msg"] {
                assert!(!line.contains_key(key), "{key}");
            }
        }
    }

    #[test]
    fn a_line_never_grows_beyond_what_is_read_in_one_piece() {
        for unit in ["x", "ä", "\u{1}", "\""] {
            let huge = unit.repeat(200_000);
            let line = line(&huge, json!({"other": huge, "name": huge}));
            assert!(line["@message"].as_str().unwrap().contains("cut, the line had"));
        }
        let many: Map<String, Value> = (0..20_000).map(|n| (format!("f{n}"), json!(n))).collect();
        assert_eq!(line("m", Value::Object(many))["@message"], "m");
        // Each too short to gain anything by a cut.
        let many: Map<String, Value> = (0..2_000).map(|n| (format!("f{n}"), json!("x".repeat(80)))).collect();
        assert_eq!(line("m", Value::Object(many))["@message"], "m");
    }

    #[test]
    fn levels_are_spelled_as_the_reader_knows_them() {
        let levels = [Level::Error, Level::Warn, Level::Info, Level::Debug, Level::Trace];
        assert_eq!(levels.map(Level::as_str), ["error", "warn", "info", "debug", "trace"]);
    }
}
