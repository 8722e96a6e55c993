//! What the specimen logs on order: every field that could end a server, with a value of every type.
//!
//! Lines are ordered as a JSON list of `{"level": …, "message": …, "value": …}`. The levels are those of `tracing`, `fatal`
//! for the line that is meant to fail a backup, and `library` for an error of a library.

use std::fmt;

use serde_json::Value;
use velero_plugin::Result;

/// One line with `$value` in every field that a server or this crate treats in a way of its own.
macro_rules! line {
    ($event:ident, $message:expr, $value:expr $(, $more:tt)*) => {
        tracing::$event!(
            $($more)*
            name = $value, namespace = $value, resource = $value, error = $value,
            "@message" = $value, "@level" = $value, "@timestamp" = $value, "@logSourceSetBy" = $value,
            time = $value, timestamp = $value, level = $value, msg = $value, logSource = $value,
            pvc = $value,
            "{}", $message
        )
    };
}

/// [`line!`] at the level that `$level` names.
macro_rules! at_level {
    ($level:expr, $message:expr, $value:expr) => {
        match $level {
            "fatal" => tracing::error!(
                fails_backup = true, name = $value, namespace = $value, resource = $value, error = $value,
                "@message" = $value, "@level" = $value, pvc = $value, "{}", $message
            ),
            "library" => tracing::error!(
                target: "some_library::client",
                fails_backup = true, name = $value, namespace = $value, "@level" = $value, pvc = $value, "{}", $message
            ),
            "error" => line!(error, $message, $value),
            "warn" => line!(warn, $message, $value),
            "info" => line!(info, $message, $value),
            "debug" => line!(debug, $message, $value),
            _ => line!(trace, $message, $value),
        }
    };
}

/// Logs the lines of `order`, in and out of a span with the same value.
pub(crate) fn say(order: &str) -> Result<()> {
    let lines: Vec<Value> = serde_json::from_str(order)?;
    for line in &lines {
        let text = |key: &str| line[key].as_str().unwrap_or_default();
        let value = &line["value"];
        let span = tracing::info_span!("call", name = ?value, outer = ?value, late = tracing::field::Empty);
        span.record("late", 5);
        let _entered = span.enter();
        say_one(text("level"), text("message"), value);
    }
    Ok(())
}

fn say_one(level: &str, message: &str, value: &Value) {
    match value {
        Value::Null => at_level!(level, message, tracing::field::Empty),
        Value::Bool(value) => at_level!(level, message, *value),
        Value::String(value) => at_level!(level, message, value.as_str()),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => at_level!(level, message, value),
            (None, Some(value)) => at_level!(level, message, value),
            (None, None) => at_level!(level, message, number.as_f64().unwrap_or(f64::NAN)),
        },
        // As text, and as an error.
        Value::Array(_) => at_level!(level, message, tracing::field::debug(value)),
        Value::Object(_) => {
            let error = std::io::Error::other(value.to_string());
            at_level!(level, message, &error as &(dyn std::error::Error + 'static));
        }
    }
}

/// A line of `bytes` bytes from each of 100 threads at once.
pub(crate) fn say_from_threads(bytes: usize) {
    let message = "ß\n".repeat(bytes / "ß\n".len());
    std::thread::scope(|scope| {
        for thread in 0..100 {
            let message = &message;
            scope.spawn(move || tracing::info!(thread, name = thread, "{message}"));
        }
    });
}

/// Panics where a library could: while a field is written.
pub(crate) fn panic_in_field() {
    struct Unprintable;

    impl fmt::Debug for Unprintable {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("unprintable")
        }
    }

    let span = tracing::info_span!("call", field = tracing::field::Empty);
    let _entered = span.enter();
    span.record("field", tracing::field::debug(Unprintable));
}
