//! The log of one stage, with the counts and messages that a backup's status and results file are made of.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::event::{Event, Observer};
use crate::log::{Fault, Level, LogLine};

/// Messages by where they belong, as Velero's results files hold them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Results {
    /// Of the run as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub velero: Vec<String>,
    /// Of cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster: Vec<String>,
    /// Of objects in namespaces.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub namespaces: BTreeMap<String, Vec<String>>,
}

impl Results {
    /// How many messages there are.
    pub fn count(&self) -> usize {
        self.velero.len() + self.cluster.len() + self.namespaces.values().map(Vec::len).sum::<usize>()
    }

    /// The server's counter makes a message of the fields that it knows, and files it by the namespace alone.
    fn add(&mut self, message: &str, fields: &Map<String, Value>) {
        let mut text = String::new();
        for key in ["resource", "name"] {
            if let Some(value) = fields.get(key).and_then(Value::as_str) {
                let _ = write!(text, " {key}: /{value}");
            }
        }
        let _ = write!(text, " message: /{message}");
        for key in ["error", "error.message"] {
            match fields.get(key) {
                Some(Value::String(value)) => _ = write!(text, " error: /{value}"),
                Some(value) => _ = write!(text, " error: /{value}"),
                None => {}
            }
        }
        match fields.get("namespace").and_then(Value::as_str) {
            Some("") => self.cluster.push(text),
            Some(namespace) => self.namespaces.entry(namespace.to_owned()).or_default().push(text),
            None => self.velero.push(text),
        }
    }
}

/// What a stage's log adds up to.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Lines at error level.
    pub errors: Results,
    /// Lines at warning level.
    pub warnings: Results,
    /// What would have ended the server.
    pub faults: Vec<Fault>,
    /// Every line from info on, as text.
    pub text: String,
}

/// Takes the lines of a stage's plugins and of the host itself.
pub struct Journal {
    observer: Arc<dyn Observer>,
    summary: Mutex<Summary>,
}

impl Journal {
    /// An empty one.
    pub fn new(observer: Arc<dyn Observer>) -> Arc<Self> {
        Arc::new(Self { observer, summary: Mutex::default() })
    }

    pub(crate) fn observer(&self) -> &dyn Observer {
        &*self.observer
    }

    /// A line of a plugin.
    pub(crate) fn plugin(&self, command: &str, line: &LogLine) {
        self.observer.observe(&Event::PluginLog { command, line });
        self.count(line.level, &line.message, &line.fields, line.fault.as_ref());
    }

    /// A line of the server itself.
    pub fn host(&self, level: Level, message: &str) {
        self.host_with(level, message, &[]);
    }

    /// A line of the server itself with fields such as `name` and `error`.
    pub fn host_with(&self, level: Level, message: &str, fields: &[(&str, &str)]) {
        let text = fields.iter().fold(message.to_owned(), |mut text, (key, value)| {
            let _ = write!(text, " {key}={value:?}");
            text
        });
        self.observer.observe(&Event::HostLog { level, message: &text });
        let fields = fields.iter().map(|&(key, value)| (key.to_owned(), Value::from(value))).collect();
        self.count(level, message, &fields, None);
    }

    fn count(&self, level: Level, message: &str, fields: &Map<String, Value>, fault: Option<&Fault>) {
        let mut summary = self.summary.lock().unwrap_or_else(PoisonError::into_inner);
        summary.faults.extend(fault.cloned());
        match level {
            Level::Error => summary.errors.add(message, fields),
            Level::Warn => summary.warnings.add(message, fields),
            Level::Trace | Level::Debug => return,
            Level::Info => {}
        }
        let _ = writeln!(summary.text, "level={level} msg={message:?} {}", Value::Object(fields.clone()));
    }

    /// What it adds up to so far. The server reads its counts before it ends the processes.
    pub fn summary(&self) -> Summary {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Unobserved;

    #[test]
    fn messages_are_filed_as_the_servers_counter_files_them() {
        let journal = Journal::new(Arc::new(Unobserved));
        journal.host_with(Level::Error, "Error backing up item", &[("name", "pod-1"), ("error", "boom")]);
        journal.host_with(Level::Error, "m", &[("resource", "pods"), ("namespace", "ns-1")]);
        journal.host_with(Level::Warn, "w", &[("namespace", "")]);
        journal.host(Level::Info, "counts for nothing");
        let Summary { errors, warnings, .. } = journal.summary();
        assert_eq!(errors.velero, [" name: /pod-1 message: /Error backing up item error: /boom"]);
        assert_eq!(errors.namespaces["ns-1"], [" resource: /pods message: /m"]);
        assert_eq!(
            (errors.count(), warnings.cluster.as_slice()),
            (2, [" message: /w".to_owned()].as_slice())
        );
    }
}
