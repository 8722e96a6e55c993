//! The `tracing` layer that writes events as lines.

use std::fmt;
use std::io::Write;
use std::sync::Mutex;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::{LookupSpan, Scope};

use super::line::{Level, encode};

/// The field that lets an event reach the error level.
const FAILS_BACKUP: &str = "fails_backup";

/// Writes each event as one line to `W`, in one write. The table of levels is in the module's docs.
pub(crate) struct HclogLayer<W> {
    /// Up to this level the plugin's own events are written.
    level: LevelFilter,
    /// The crates whose levels count.
    own: Vec<String>,
    writer: Mutex<W>,
}

impl<W> HclogLayer<W> {
    pub(crate) fn new(level: LevelFilter, own: Vec<String>, writer: W) -> Self {
        Self { level, own, writer: Mutex::new(writer) }
    }

    fn is_own(&self, metadata: &Metadata<'_>) -> bool {
        let target = metadata.target().split("::").next().unwrap_or_default();
        self.own.iter().any(|own| own == target)
    }

    fn writes(&self, metadata: &Metadata<'_>) -> bool {
        if self.is_own(metadata) {
            *metadata.level() <= self.level
        } else {
            LevelFilter::DEBUG <= self.level && *metadata.level() <= tracing::Level::INFO
        }
    }

    fn line_level(&self, metadata: &Metadata<'_>, fails_backup: bool) -> Level {
        match *metadata.level() {
            _ if !self.is_own(metadata) => Level::Debug,
            tracing::Level::ERROR if fails_backup => Level::Error,
            tracing::Level::ERROR | tracing::Level::WARN => Level::Warn,
            tracing::Level::INFO => Level::Info,
            tracing::Level::DEBUG => Level::Debug,
            tracing::Level::TRACE => Level::Trace,
        }
    }
}

impl<S, W> Layer<S> for HclogLayer<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Write + 'static,
{
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.writes(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.writes(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        // Recorded before the span is locked: a value's `Debug` that panics is logged, with the fields of this span.
        let mut late = Fields::default();
        values.record(&mut late);
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            fields.values.extend(late.values);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        // From the outermost span to the event: the inner one wins.
        for span in context.event_scope(event).into_iter().flat_map(Scope::from_root) {
            if let Some(outer) = span.extensions().get::<Fields>() {
                fields.values.extend(outer.values.clone());
            }
        }
        event.record(&mut fields);
        let fails_backup = fields.values.remove(FAILS_BACKUP) == Some(Value::Bool(true));
        let metadata = event.metadata();
        let source = match (metadata.file(), metadata.line()) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            _ => metadata.target().to_owned(),
        };
        let line = encode(self.line_level(metadata, fails_backup), &fields.message, &source, fields.values);
        let mut writer = self.writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // A host that no longer reads is no reason to fail the call.
        let _ = writer.write_all(&line);
    }
}

/// The fields of an event or span.
#[derive(Default)]
struct Fields {
    message: String,
    values: Map<String, Value>,
}

impl Fields {
    fn insert(&mut self, field: &Field, value: impl Into<Value>) {
        self.values.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            _ => self.insert(field, format!("{value:?}")),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            _ => self.insert(field, value),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.insert(field, crate::error::chain(value));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use tracing_subscriber::layer::SubscriberExt as _;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<Vec<u8>>>>);

    impl Write for Lines {
        fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().push(line.to_vec());
            Ok(line.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// The level and message of each line that `events` make; each `write` is one line.
    fn lines(level: LevelFilter, events: impl FnOnce()) -> Vec<(String, String)> {
        let lines = Lines::default();
        let layer = HclogLayer::new(level, vec!["velero_plugin".to_owned()], lines.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), events);
        let lines = lines.0.lock().unwrap();
        lines
            .iter()
            .map(|line| {
                let line: Map<String, Value> = serde_json::from_slice(line).unwrap();
                (line["@level"].as_str().unwrap().to_owned(), line["@message"].as_str().unwrap().to_owned())
            })
            .collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(level, message)| ((*level).to_owned(), (*message).to_owned())).collect()
    }

    #[test]
    fn an_error_line_needs_its_own_word() {
        let lines = lines(LevelFilter::INFO, || {
            tracing::error!("tolerated");
            tracing::error!(fails_backup = true, "meant");
            tracing::error!(fails_backup = false, "not meant");
            tracing::debug!("below the level");
        });
        assert_eq!(lines, pairs(&[("warn", "tolerated"), ("error", "meant"), ("warn", "not meant")]));
    }

    #[test]
    fn a_library_can_neither_fail_nor_flood_a_backup() {
        let events = || {
            tracing::error!(target: "kube_client::client", fails_backup = true, "library error");
            tracing::debug!(target: "h2::codec", "frame");
        };
        assert_eq!(lines(LevelFilter::INFO, events), []);
        assert_eq!(lines(LevelFilter::TRACE, events), pairs(&[("debug", "library error")]));
    }

    #[test]
    fn fields_of_spans_go_with_their_events_and_the_inner_one_wins() {
        let written = Lines::default();
        let layer = HclogLayer::new(LevelFilter::INFO, vec!["velero_plugin".to_owned()], written.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let _outer = tracing::info_span!("outer", name = 5, pvc = "a/d").entered();
            let _inner = tracing::info_span!("inner", pvc = "b/e").entered();
            tracing::info!(error = &std::io::Error::other("why") as &dyn std::error::Error, "done {}", 1);
        });
        let line: Map<String, Value> = serde_json::from_slice(&written.0.lock().unwrap()[0]).unwrap();
        assert_eq!(
            (&line["name"], &line["pvc"], &line["error"]),
            (&"5".into(), &"b/e".into(), &"why".into())
        );
        assert_eq!(line["@message"], "done 1");
        assert!(line["logSource"].as_str().unwrap().contains("layer.rs:"));
    }
}
