//! What a Velero server makes of a line that a plugin writes to stderr, as a pure function.
//!
//! This follows go-plugin's reader (`client.go` and `log_entry.go` of 1.6.0 and 1.7.0) and the hook of Velero that counts
//! the lines of a running backup. It is strict: what a server survives only by luck is told as its death.

use serde_json::{Map, Value};

/// The reader's buffer. A line that doesn't fit, with its newline, is logged in raw pieces.
pub const BUFFER: usize = 64 * 1024;

/// A level at which the server logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "hclog's own words")]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

/// What becomes of a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// An entry of the log, as the plugin meant it.
    Entry(Entry),
    /// The line's text as it is, at this level: the reader took it for no entry.
    Raw(Level, Unread),
    /// The server's process ends.
    ServerDies(Death),
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Where the server logs it.
    pub level: Level,
    /// Its text.
    pub message: String,
    /// Its fields, without those that the server drops.
    pub fields: Map<String, Value>,
}

/// Why a line is no entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each says what it is")]
pub enum Unread {
    TooLong,
    NoObject,
    TimestampForm,
    NoLevel,
    UnknownLevel(String),
}

/// Why the server's process ends: an unchecked type assertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Death {
    /// One of the reader's own keys holds no text.
    ReaderKey(&'static str),
    /// A field that the counter of a backup's lines takes for a text is none.
    CountedField(&'static str),
}

/// The reader of one process' stderr.
#[derive(Debug, Default)]
pub struct Reader {
    /// Since go-plugin 1.7.0: after a Go panic every line without a level is an error.
    panicked: bool,
}

impl Reader {
    /// Reads one line, without its newline.
    pub fn read(&mut self, line: &str) -> Reading {
        if line.len() + 1 > BUFFER {
            return Reading::Raw(Level::Debug, Unread::TooLong);
        }
        let Ok(Value::Object(object)) = serde_json::from_str(line) else {
            return Reading::Raw(self.plain_level(line), Unread::NoObject);
        };
        match entry(object) {
            // A timestamp that can't be read makes the whole line plain text.
            Reading::Raw(_, Unread::TimestampForm) => {
                Reading::Raw(self.plain_level(line), Unread::TimestampForm)
            }
            reading => reading,
        }
    }

    fn plain_level(&mut self, line: &str) -> Level {
        const TAGS: [(&str, Level); 5] = [
            ("[TRACE]", Level::Trace),
            ("[DEBUG]", Level::Debug),
            ("[INFO]", Level::Info),
            ("[WARN]", Level::Warn),
            ("[ERROR]", Level::Error),
        ];
        if let Some((_, level)) = TAGS.iter().find(|(tag, _)| line.starts_with(tag)) {
            return *level;
        }
        self.panicked |= line.starts_with("panic: ") || line.starts_with("fatal error: ");
        if self.panicked { Level::Error } else { Level::Debug }
    }
}

fn entry(mut object: Map<String, Value>) -> Reading {
    let mut texts = [String::new(), String::new()];
    for (text, key) in texts.iter_mut().zip(["@message", "@level"]) {
        match object.remove(key) {
            None => {}
            Some(Value::String(value)) => *text = value,
            Some(_) => return Reading::ServerDies(Death::ReaderKey(key)),
        }
    }
    match object.remove("@timestamp") {
        None => {}
        Some(Value::String(time)) if is_timestamp(&time) => {}
        Some(Value::String(_)) => return Reading::Raw(Level::Debug, Unread::TimestampForm),
        Some(_) => return Reading::ServerDies(Death::ReaderKey("@timestamp")),
    }
    let [message, level] = texts;
    let level = match level.trim().to_lowercase().as_str() {
        "trace" => Level::Trace,
        "debug" => Level::Debug,
        "info" => Level::Info,
        "warn" => Level::Warn,
        "error" => Level::Error,
        "" => return Reading::Raw(Level::Debug, Unread::NoLevel),
        _ => return Reading::Raw(Level::Debug, Unread::UnknownLevel(level)),
    };
    for key in ["time", "timestamp", "level"] {
        object.remove(key);
    }
    for key in ["name", "namespace", "resource"] {
        if object.get(key).is_some_and(|value| !value.is_string()) {
            return Reading::ServerDies(Death::CountedField(key));
        }
    }
    Reading::Entry(Entry { level, message, fields: object })
}

/// `2006-01-02T15:04:05.000000Z`, or with an offset in place of the Z; exactly six digits of a second.
fn is_timestamp(text: &str) -> bool {
    let pattern = "dddd-dd-ddTdd:dd:dd.dddddd";
    let Some((time, zone)) = text.split_at_checked(pattern.len()) else { return false };
    let fits = |text: &str, pattern: &str| {
        text.len() == pattern.len()
            && text.bytes().zip(pattern.bytes()).all(|(byte, form)| match form {
                b'd' => byte.is_ascii_digit(),
                _ => byte == form,
            })
    };
    fits(time, pattern) && (zone == "Z" || fits(zone, "+dd:dd") || fits(zone, "-dd:dd"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Reading {
        Reader::default().read(line)
    }

    /// As go-plugin's readers were seen to treat these lines.
    #[test]
    fn lines_that_are_no_entries_are_raw_at_debug() {
        let long = format!(r#"{{"@level":"error","@message":"{}"}}"#, "x".repeat(BUFFER));
        let table = [
            (long.as_str(), Unread::TooLong),
            ("thread 'main' panicked at src/main.rs:1", Unread::NoObject),
            (r#"["@level"]"#, Unread::NoObject),
            (r#"{"@level":"info","@message":"cut"#, Unread::NoObject),
            (r#"{"level":"error","fields":{"message":"tracing's own form"}}"#, Unread::NoLevel),
            (r#"{"@level":"warning","@message":"m"}"#, Unread::UnknownLevel("warning".to_owned())),
            (r#"{"@level":"fatal"}"#, Unread::UnknownLevel("fatal".to_owned())),
            (r#"{"@level":"info","@timestamp":"2026-01-01T00:00:00.123Z"}"#, Unread::TimestampForm),
        ];
        for (line, why) in table {
            assert_eq!(read(line), Reading::Raw(Level::Debug, why), "{line:.80}");
        }
    }

    #[test]
    fn values_of_the_wrong_type_end_the_server() {
        for key in ["@message", "@level", "@timestamp"] {
            for value in ["5", "null", "{}", "[]", "true"] {
                let line = format!(r#"{{"{key}":{value}}}"#);
                assert_eq!(read(&line), Reading::ServerDies(Death::ReaderKey(key)), "{line}");
            }
        }
        for key in ["name", "namespace", "resource"] {
            let line = format!(r#"{{"@level":"debug","{key}":7}}"#);
            assert_eq!(read(&line), Reading::ServerDies(Death::CountedField(key)), "{line}");
        }
    }

    #[test]
    fn an_entry_keeps_its_fields_but_for_the_times_and_the_level() {
        let line = r#"{"@level":" Error ","@message":"m","@timestamp":"2026-01-01T00:00:00.123456+01:00","time":1,"timestamp":1,"level":"x","n":3,"name":"a"}"#;
        let fields = serde_json::json!({"n": 3, "name": "a"});
        let Value::Object(fields) = fields else { unreachable!() };
        let entry = Entry { level: Level::Error, message: "m".to_owned(), fields };
        assert_eq!(read(line), Reading::Entry(entry));
    }

    #[test]
    fn tags_give_plain_text_its_level_and_a_go_panic_makes_the_rest_errors() {
        let mut reader = Reader::default();
        let table = [
            ("plain", Level::Debug),
            ("[WARN] text", Level::Warn),
            ("[ERROR] text", Level::Error),
            ("warning: text", Level::Debug),
            ("panic: runtime error", Level::Error),
            ("goroutine 1 [running]:", Level::Error),
            ("[INFO] text", Level::Info),
        ];
        for (line, level) in table {
            assert_eq!(reader.read(line), Reading::Raw(level, Unread::NoObject), "{line}");
        }
    }

    #[test]
    fn the_longest_line_that_fits_the_buffer_is_an_entry() {
        let line = |length: usize| {
            let around = r#"{"@level":"info","@message":""}"#.len();
            format!(r#"{{"@level":"info","@message":"{}"}}"#, "x".repeat(length - around))
        };
        assert!(matches!(read(&line(BUFFER - 1)), Reading::Entry(_)));
        assert_eq!(read(&line(BUFFER)), Reading::Raw(Level::Debug, Unread::TooLong));
    }
}
