//! JSON as Velero reads and writes it: untyped objects lose what Go's numbers can't hold, and text is escaped for HTML.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, PrettyFormatter, Serializer};

/// Why the server refuses the object of a reply, in its words.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// Nothing was sent.
    #[error("unexpected end of JSON input")]
    Empty,
    /// No JSON.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// The text says no kind.
    #[error("Object 'Kind' is missing in '{0}'")]
    NoKind(String),
}

/// Reads an object as the server does from every reply: it must be one, with a kind.
///
/// # Errors
///
/// As the server refuses it; the item then fails, also with `skipRestore`.
pub fn object(text: &[u8]) -> Result<Value, ObjectError> {
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(ObjectError::Empty);
    }
    let mut value: Value = serde_json::from_slice(text)?;
    let has_kind = value.get("kind").and_then(Value::as_str).is_some_and(|kind| !kind.is_empty());
    if !has_kind {
        return Err(ObjectError::NoKind(String::from_utf8_lossy(text).into_owned()));
    }
    as_go_holds(&mut value);
    Ok(value)
}

/// Go keeps an integer only when it fits 64 signed bits, anything else as a double.
fn as_go_holds(value: &mut Value) {
    match value {
        Value::Number(number) if number.as_i64().is_none() => {
            if let Some(double) = number.as_f64().and_then(serde_json::Number::from_f64) {
                *number = double;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(as_go_holds),
        Value::Object(fields) => fields.values_mut().for_each(as_go_holds),
        _ => {}
    }
}

/// Compact, without a newline at the end: items in requests and in the archive.
pub fn compact(value: &impl Serialize) -> Vec<u8> {
    written(value, Escaping(CompactFormatter))
}

/// Compact with a newline: the gzipped files beside the archive.
pub fn line(value: &impl Serialize) -> Vec<u8> {
    let mut text = compact(value);
    text.push(b'\n');
    text
}

/// Indented by two spaces, without a newline at the end: `velero-backup.json`.
pub fn indented(value: &impl Serialize) -> Vec<u8> {
    written(value, Escaping(PrettyFormatter::with_indent(b"  ")))
}

fn written(value: &impl Serialize, formatter: impl Formatter) -> Vec<u8> {
    let mut text = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut text, formatter);
    // Neither a vector nor the types that are written here can fail.
    let written = value.serialize(&mut serializer);
    debug_assert!(written.is_ok(), "{written:?}");
    text
}

/// Layout by the formatter inside; numbers and text as `encoding/json` writes them.
struct Escaping<F>(F);

macro_rules! layout {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {$(
        fn $method<W: ?Sized + io::Write>(&mut self, writer: &mut W, $($argument: $type),*) -> io::Result<()> {
            self.0.$method(writer, $($argument),*)
        }
    )*};
}

impl<F: Formatter> Formatter for Escaping<F> {
    layout! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let size = value.abs();
        if size != 0.0 && !(1e-6..1e21).contains(&size) {
            let text = format!("{value:e}");
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let sign = if exponent.starts_with('-') { "" } else { "+" };
            return write!(writer, "{digits}e{sign}{exponent}");
        }
        write!(writer, "{value}")
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        let mut from = 0;
        for (at, character) in text.char_indices() {
            if matches!(character, '<' | '>' | '&' | '\u{2028}' | '\u{2029}') {
                writer.write_all(&text.as_bytes()[from..at])?;
                write!(writer, "\\u{:04x}", u32::from(character))?;
                from = at + character.len_utf8();
            }
        }
        writer.write_all(&text.as_bytes()[from..])
    }

    fn write_char_escape<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        self.0.write_char_escape(writer, escape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_change_as_a_real_server_changes_them() {
        let table = [
            ("18446744073709551615", "18446744073709552000"),
            ("9007199254740993", "9007199254740993"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("1.0", "1"),
            ("1e3", "1000"),
            ("0.1", "0.1"),
            ("1e21", "1e+21"),
            ("1.5e-7", "1.5e-7"),
        ];
        for (sent, stored) in table {
            let text = format!(r#"{{"kind":"Pod","n":{sent}}}"#);
            let stored = format!(r#"{{"kind":"Pod","n":{stored}}}"#);
            assert_eq!(
                String::from_utf8(compact(&object(text.as_bytes()).unwrap())).unwrap(),
                stored,
                "{sent}"
            );
        }
        assert!(object(br#"{"kind":"Pod","n":1e400}"#).is_err());
    }

    #[test]
    fn text_is_escaped_for_html_and_keys_are_sorted() {
        let value = object(br#"{"kind":"Pod","b":"<a>&\u2028\n","a":[]}"#).unwrap();
        let expected = r#"{"a":[],"b":"\u003ca\u003e\u0026\u2028\n","kind":"Pod"}"#;
        assert_eq!(String::from_utf8(compact(&value)).unwrap(), expected);
        assert_eq!(
            String::from_utf8(indented(&serde_json::json!({"a": {"b": 1}}))).unwrap(),
            "{\n  \"a\": {\n    \"b\": 1\n  }\n}"
        );
    }

    #[test]
    fn objects_are_refused_in_the_servers_words() {
        for (text, words) in [
            ("", "unexpected end of JSON input"),
            (r#"{"apiVersion":"v1"}"#, "Object 'Kind' is missing in '{\"apiVersion\":\"v1\"}'"),
            (r#"{"kind":""}"#, "Object 'Kind' is missing"),
            (r#"{"kind":3}"#, "Object 'Kind' is missing"),
            ("[]", "Object 'Kind' is missing"),
        ] {
            let error = object(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(words), "{text}: {error}");
        }
    }
}
