//! The rules by which go-plugin's host and Velero make log entries of a plugin's standard error.
//!
//! It follows go-plugin's reader (`client.go` and `log_entry.go` of 1.6.0 and 1.7.0) and the hook of Velero that counts the
//! lines of a running backup. It is strict: what a server survives only by luck is told as its death.

use serde_json::{Map, Value};

use super::Level;
use super::line::{Fault, LogLine, Unread};
use crate::minor::Minor;

/// The reader's buffer. A line that does not fit, with its newline, is logged in raw pieces.
pub const BUFFER: usize = 64 * 1024;

/// Reads the lines of one process, in order: since go-plugin 1.7 a panic colours what follows it.
#[derive(Debug)]
pub struct LogReader {
    minor: Minor,
    threshold: Level,
    in_panic: bool,
}

impl LogReader {
    /// For a server of `minor` that logs from `threshold` on.
    pub fn new(minor: Minor, threshold: Level) -> Self {
        Self { minor, threshold, in_panic: false }
    }

    /// The entries of one line without its newline; one but for overlong lines.
    pub fn read(&mut self, line: &str) -> Vec<LogLine> {
        if line.len() >= BUFFER {
            let raw = |piece| LogLine::raw(Level::Debug, &String::from_utf8_lossy(piece), Unread::TooLong);
            return line.as_bytes().chunks(BUFFER).map(raw).collect();
        }
        vec![self.entry(line)]
    }

    fn entry(&mut self, line: &str) -> LogLine {
        let Ok(Value::Object(fields)) = serde_json::from_str(line) else {
            return self.plain(line, Unread::NoObject);
        };
        if let Some(fault) = Fault::of_special(&fields) {
            return LogLine { fault: Some(fault), ..LogLine::raw(Level::Debug, line, Unread::NoText) };
        }
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        if text("@timestamp").is_some_and(|time| !is_timestamp(time)) {
            return self.plain(line, Unread::TimestampForm);
        }
        let word = text("@level").unwrap_or_default();
        let Some(level) = Level::of_hclog(word) else {
            let why = if word.is_empty() { Unread::NoLevel } else { Unread::UnknownLevel(word.to_owned()) };
            return LogLine::raw(Level::Debug, line, why);
        };
        let message = text("@message").unwrap_or_default().to_owned();
        let fields = logged(fields);
        // A line below the server's level never reaches the hook; one at trace is logged at debug.
        let reaches = level.max(Level::Debug) >= self.threshold;
        let fault = if reaches { Fault::of_counted(&fields) } else { None };
        LogLine { level, message, fields, unread: None, fault }
    }

    /// A line whose prefix alone can tell its level.
    fn plain(&mut self, line: &str, why: Unread) -> LogLine {
        const TAGS: [(&str, Level); 5] = [
            ("[TRACE]", Level::Trace),
            ("[DEBUG]", Level::Debug),
            ("[INFO]", Level::Info),
            ("[WARN]", Level::Warn),
            ("[ERROR]", Level::Error),
        ];
        if let Some((_, level)) = TAGS.into_iter().find(|(tag, _)| line.starts_with(tag)) {
            return LogLine::raw(level, line, why);
        }
        let begins_panic = line.starts_with("panic: ") || line.starts_with("fatal error: ");
        self.in_panic |= self.minor.reads_panics() && begins_panic;
        LogLine::raw(if self.in_panic { Level::Error } else { Level::Debug }, line, why)
    }
}

/// The fields that go on to the server's log.
fn logged(mut fields: Map<String, Value>) -> Map<String, Value> {
    for dropped in ["@message", "@level", "@timestamp", "time", "timestamp", "level"] {
        fields.remove(dropped);
    }
    fields
}

/// Whether go-plugin reads this time: exactly six digits of a fraction, then Z or an offset.
fn is_timestamp(time: &str) -> bool {
    let Some((before, after)) = time.split_once('.') else { return false };
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    before.len() == "2026-01-02T03:04:05".len() && digits == 6 && time.parse::<jiff::Timestamp>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(minor: Minor, lines: &[&str]) -> Vec<Level> {
        let mut reader = LogReader::new(minor, Level::Debug);
        lines.iter().flat_map(|line| reader.read(line)).map(|line| line.level).collect()
    }

    fn read(line: &str) -> LogLine {
        let mut read = LogReader::new(Minor::V1_18, Level::Debug).read(line);
        assert_eq!(read.len(), 1, "{line:.80}");
        read.remove(0)
    }

    #[test]
    fn levels_of_entries() {
        use Level::{Debug, Error, Info, Trace, Warn};
        let table = [
            (r#"{"@level":"info","@message":"m"}"#, Info),
            (r#"{"@level":" WARN ","@message":"m"}"#, Warn),
            (r#"{"@level":"debug","@message":"m"}"#, Debug),
            (r#"{"@level":"trace","@message":"m"}"#, Trace),
            (r#"{"@level":"error","@message":"m","@timestamp":"2026-01-02T03:04:05.123456Z"}"#, Error),
            (r#"{"@level":"error","@message":"m","@timestamp":"2026-01-02T03:04:05.123456+01:00"}"#, Error),
        ];
        for (line, level) in table {
            let read = read(line);
            assert_eq!((read.level, read.message.as_str(), read.unread), (level, "m", None), "{line}");
        }
    }

    #[test]
    fn lines_that_are_no_entries_are_raw() {
        use Level::{Debug, Error, Info, Warn};
        let table = [
            ("plain", Debug, Unread::NoObject),
            ("[ERROR] out of space", Error, Unread::NoObject),
            ("[WARN] nearly", Warn, Unread::NoObject),
            ("[INFO] text", Info, Unread::NoObject),
            ("warning: text", Debug, Unread::NoObject),
            ("thread 'main' panicked at src/main.rs:1:1:", Debug, Unread::NoObject),
            (r#"["@level"]"#, Debug, Unread::NoObject),
            (r#"{"@level":"info","@message":"cut"#, Debug, Unread::NoObject),
            (r#"{"level":"ERROR","fields":{"message":"of tracing"}}"#, Debug, Unread::NoLevel),
            (r#"{"@level":"warning","@message":"m"}"#, Debug, Unread::UnknownLevel("warning".to_owned())),
            (r#"{"@level":"fatal"}"#, Debug, Unread::UnknownLevel("fatal".to_owned())),
            (r#"{"@level":"error","@timestamp":"2026-01-02T03:04:05.123Z"}"#, Debug, Unread::TimestampForm),
        ];
        for (line, level, why) in table {
            assert_eq!(read(line), LogLine::raw(level, line, why), "{line}");
        }
    }

    #[test]
    fn a_line_that_does_not_fit_the_buffer_is_raw_in_pieces() {
        let line = |length: usize| {
            let around = r#"{"@level":"info","@message":""}"#.len();
            format!(r#"{{"@level":"info","@message":"{}"}}"#, "x".repeat(length - around))
        };
        assert_eq!(read(&line(BUFFER - 1)).unread, None);
        assert_eq!(read(&line(BUFFER)).unread, Some(Unread::TooLong));
        let pieces = LogReader::new(Minor::V1_18, Level::Debug).read(&line(BUFFER + 1));
        assert!(pieces.len() == 2 && pieces.iter().all(|piece| piece.unread == Some(Unread::TooLong)));
    }

    #[test]
    fn a_go_panic_and_what_follows_it_are_errors_on_new_servers_only() {
        use Level::{Debug, Error, Info};
        let lines = ["before", "panic: boom", "goroutine 1", r#"{"@level":"info","@message":"m"}"#, "after"];
        assert_eq!(levels(Minor::V1_18, &lines), [Debug, Error, Error, Info, Error]);
        assert_eq!(levels(Minor::V1_17, &lines), [Debug, Debug, Debug, Info, Debug]);
    }

    #[test]
    fn fields_that_end_the_server() {
        let table = [
            (r#"{"@level":"info","@message":5}"#, Some(Fault::Special("@message"))),
            (r#"{"@level":3,"@message":"m"}"#, Some(Fault::Special("@level"))),
            (r#"{"@level":"info","@message":"m","name":7}"#, Some(Fault::Counted("name"))),
            (r#"{"@level":"info","@message":"m","namespace":null}"#, Some(Fault::Counted("namespace"))),
            (r#"{"@level":"info","@timestamp":{}}"#, Some(Fault::Special("@timestamp"))),
            (r#"{"@level":"info","@message":null}"#, Some(Fault::Special("@message"))),
            (r#"{"@level":"info","@message":"m","resource":[]}"#, Some(Fault::Counted("resource"))),
            (r#"{"@level":"debug","@message":"m","name":7}"#, None),
            (r#"{"@level":"info","@message":"m","name":"n","size":7}"#, None),
        ];
        for (line, fault) in table {
            let read = LogReader::new(Minor::V1_18, Level::Info).read(line);
            assert_eq!(read[0].fault, fault, "{line}");
        }
        let traced = r#"{"@level":"trace","name":7}"#;
        assert_eq!(read(traced).fault, Some(Fault::Counted("name")), "the server logs it at debug");
    }

    #[test]
    fn fields_of_the_servers_own_are_dropped() {
        let line = r#"{"@level":"info","@message":"m","time":"t","level":"x","volume":"v"}"#;
        let read = LogReader::new(Minor::V1_18, Level::Info).read(line);
        assert_eq!(Value::Object(read[0].fields.clone()), serde_json::json!({"volume": "v"}));
    }
}
