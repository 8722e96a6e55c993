//! The rules by which go-plugin's host and Velero make log entries of a plugin's standard error.

use serde_json::{Map, Value};

use super::Level;
use super::line::{Fault, LogLine};
use crate::minor::Minor;

/// The host reads so much of a line; pieces of longer ones are raw text.
const LONGEST: usize = 64 * 1024;

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
        if line.len() >= LONGEST {
            let pieces = line.as_bytes().chunks(LONGEST);
            return pieces.map(|piece| LogLine::raw(Level::Debug, &String::from_utf8_lossy(piece))).collect();
        }
        vec![self.entry(line)]
    }

    fn entry(&mut self, line: &str) -> LogLine {
        let Ok(Value::Object(fields)) = serde_json::from_str(line) else { return self.untagged(line) };
        if let Some(fault) = Fault::of_special(&fields) {
            return LogLine { fault: Some(fault), ..LogLine::raw(Level::Debug, line) };
        }
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        if text("@timestamp").is_some_and(|time| !is_timestamp(time)) {
            return self.untagged(line);
        }
        let Some(level) = text("@level").and_then(Level::of_hclog) else {
            return LogLine::raw(Level::Debug, line);
        };
        let message = text("@message").unwrap_or_default().to_owned();
        let fields = logged(fields);
        // A line below the server's level never reaches the hook.
        let fault = if level >= self.threshold { Fault::of_counted(&fields) } else { None };
        LogLine { level, message, fields, fault }
    }

    /// A line that is not JSON: a prefix tells its level.
    fn untagged(&mut self, line: &str) -> LogLine {
        const TAGS: [(&str, Level); 5] = [
            ("[TRACE]", Level::Debug),
            ("[DEBUG]", Level::Debug),
            ("[INFO]", Level::Info),
            ("[WARN]", Level::Warn),
            ("[ERROR]", Level::Error),
        ];
        if let Some((_, level)) = TAGS.into_iter().find(|(tag, _)| line.starts_with(tag)) {
            return LogLine::raw(level, line);
        }
        let begins_panic = line.starts_with("panic: ") || line.starts_with("fatal error: ");
        self.in_panic |= self.minor.reads_panics() && begins_panic;
        LogLine::raw(if self.in_panic { Level::Error } else { Level::Debug }, line)
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

    #[test]
    fn levels_of_lines() {
        use Level::{Debug, Error, Info, Warn};
        let long = format!(r#"{{"@level":"error","@message":"{}"}}"#, "x".repeat(70_000));
        let table = [
            (r#"{"@level":"info","@message":"m"}"#, Info),
            (r#"{"@level":" WARN ","@message":"m"}"#, Warn),
            (r#"{"@level":"trace","@message":"m"}"#, Debug),
            (r#"{"@level":"error","@message":"m","@timestamp":"2026-01-02T03:04:05.123456Z"}"#, Error),
            (r#"{"@level":"error","@message":"m","@timestamp":"2026-01-02T03:04:05.123Z"}"#, Debug),
            (r#"{"@level":"warning","@message":"m"}"#, Debug),
            (r#"{"level":"ERROR","fields":{"message":"of tracing"}}"#, Debug),
            ("[ERROR] out of space", Error),
            ("[WARN] nearly", Warn),
            ("thread 'main' panicked at src/main.rs:1:1:", Debug),
            ("plain", Debug),
        ];
        for (line, level) in table {
            assert_eq!(levels(Minor::V1_18, &[line]), [level], "{line}");
        }
        assert_eq!(levels(Minor::V1_18, &[&long]), [Debug, Debug]);
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
            (r#"{"@level":"debug","@message":"m","name":7}"#, None),
            (r#"{"@level":"info","@message":"m","name":"n","size":7}"#, None),
        ];
        for (line, fault) in table {
            let read = LogReader::new(Minor::V1_18, Level::Info).read(line);
            assert_eq!(read[0].fault, fault, "{line}");
        }
    }

    #[test]
    fn fields_of_the_servers_own_are_dropped() {
        let line = r#"{"@level":"info","@message":"m","time":"t","level":"x","volume":"v"}"#;
        let read = LogReader::new(Minor::V1_18, Level::Info).read(line);
        assert_eq!(Value::Object(read[0].fields.clone()), serde_json::json!({"volume": "v"}));
    }
}
