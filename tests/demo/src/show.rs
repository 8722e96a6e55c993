//! What the person at the terminal sees: phases as lines, operations as bars; plain lines where there is no terminal.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use velero_host::event::{Event, Observer};
use velero_host::log::Level;
use velero_host::operation::{Operation, OperationPhase};
use velero_plugin::BackupPhase;

/// Shows events as they come, and keeps what the report needs.
pub struct Show {
    began: Instant,
    verbose: bool,
    bars: Option<MultiProgress>,
    seen: Mutex<Seen>,
}

/// What was seen.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Phases with the time at which they began.
    pub phases: Vec<(BackupPhase, Duration)>,
    /// Operations as they were last, by id.
    pub operations: BTreeMap<String, Operation>,
    /// Process starts.
    pub starts: usize,
    /// The longest from a start to its handshake, where that is known.
    pub slowest: Option<Duration>,
    /// Processes that had to be killed or ended badly.
    pub bad_ends: usize,
    /// Calls of the plugin by method, and those that failed.
    pub calls: BTreeMap<&'static str, (usize, usize)>,
    /// Lines that would be counted, or would end the server.
    pub spoiling_lines: Vec<String>,
    bars: BTreeMap<String, ProgressBar>,
}

impl Show {
    /// From now on; `verbose` with all that plugins log.
    pub fn new(verbose: bool) -> Self {
        let bars = std::io::stderr().is_terminal().then(MultiProgress::new);
        Self { began: Instant::now(), verbose, bars, seen: Mutex::default() }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that was seen so far.
    pub fn report(&self) -> Seen {
        self.seen().clone()
    }

    /// A line above the bars.
    pub fn line(&self, text: &str) {
        let line = format!("{:7.1} s  {text}", self.began.elapsed().as_secs_f64());
        match &self.bars {
            Some(bars) => bars.suspend(|| println!("{line}")),
            None => println!("{line}"),
        }
    }

    /// What an archive holds: the number of its files, and resource, namespace and name of each item.
    pub fn archive<'a>(&self, files: usize, items: impl Iterator<Item = (&'a str, &'a str, &'a str)>) {
        self.line(&format!("the archive holds {files} files; the items:"));
        for (resource, namespace, name) in items {
            let slash = if namespace.is_empty() { "" } else { "/" };
            self.line(&format!("  {resource} {namespace}{slash}{name}"));
        }
    }

    fn operation(&self, operation: &Operation) {
        let id = operation.spec.operation_id.clone();
        let (name, told) = (subject(operation), told(operation));
        let mut seen = self.seen();
        let before = seen.operations.insert(id.clone(), operation.clone());
        let Some(bars) = &self.bars else {
            drop(seen);
            // Only what moved: the description also holds the time that passed.
            if before.is_none_or(|before| before.status.phase != operation.status.phase) {
                self.line(&format!("{name}: {told}"));
            }
            return;
        };
        let bar = seen.bars.entry(id).or_insert_with(|| new_bar(bars, &name));
        let amount = |count| u64::try_from(count).unwrap_or_default();
        if operation.status.n_total > 0 {
            bar.set_style(style("{bar:16} {total_bytes:>10} {wide_msg}"));
            bar.set_length(amount(operation.status.n_total));
            bar.set_position(amount(operation.status.n_completed));
        }
        if operation.status.phase.has_ended() {
            bar.finish_with_message(told);
        } else {
            bar.set_message(told);
        }
    }
}

fn new_bar(bars: &MultiProgress, name: &str) -> ProgressBar {
    let bar = bars.add(ProgressBar::no_length());
    // A storage tells nothing of a snapshot's progress, so the bar is empty or full.
    bar.set_style(style("{wide_msg}"));
    bar.set_prefix(name.to_owned());
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

fn style(rest: &str) -> ProgressStyle {
    let template = format!("  {{spinner}} {{prefix:<36!}} {rest}");
    ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// The object of a namespace that an operation is about; its own item where it names none.
pub fn subject(operation: &Operation) -> String {
    let items = operation.spec.post_operation_items.iter().flatten();
    let item = items.chain([&operation.spec.resource_identifier]).find(|item| !item.namespace.is_empty());
    item.map_or_else(
        || operation.spec.resource_identifier.to_string(),
        |item| format!("{}/{}", item.namespace, item.name),
    )
}

fn told(operation: &Operation) -> String {
    let status = &operation.status;
    let told = match status.phase {
        OperationPhase::Failed => &status.error,
        _ => &status.description,
    };
    let phase = status.phase.as_str();
    if told.is_empty() { phase.to_owned() } else { format!("{phase}: {told}") }
}

impl Observer for Show {
    fn observe(&self, event: &Event<'_>) {
        match event {
            Event::ProcessStarted { took, .. } => {
                let mut seen = self.seen();
                seen.starts += 1;
                seen.slowest = seen.slowest.max(Some(*took));
            }
            Event::ProcessEnded { status, killed, .. } => {
                let badly = *killed || status.is_none_or(|status| !status.success());
                self.seen().bad_ends += usize::from(badly);
            }
            Event::PluginLog { line, .. } => {
                if line.level >= Level::Warn || line.fault.is_some() {
                    self.seen().spoiling_lines.push(line.to_string());
                }
                if self.verbose || line.level >= Level::Warn {
                    self.line(&format!("  plugin: {line}"));
                }
            }
            Event::HostLog { level, message } if *level >= Level::Warn => {
                self.seen().spoiling_lines.push((*message).to_owned());
                self.line(&format!("  {level}: {message}"));
            }
            Event::Called { method, error, .. } => {
                let mut seen = self.seen();
                let (all, failed) = seen.calls.entry(method).or_default();
                *all += 1;
                *failed += usize::from(error.is_some());
            }
            Event::Phase { phase, .. } => {
                self.seen().phases.push((*phase, self.began.elapsed()));
                self.line(&format!("phase {}", phase.as_str()));
            }
            Event::Operation(operation) => self.operation(operation),
            _ => {}
        }
    }
}
