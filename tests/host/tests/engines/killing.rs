//! Kills a plugin's process at a moment that a test names, and goes on once it is dead.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use velero_host::event::{Event, Observer};

use crate::support::Record;

/// The moment, counted from 1 over all stages of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Death {
    /// Between the nth start of a process and its first call.
    Started(usize),
    /// Under the nth call of the method.
    Within(&'static str, usize),
    /// Between the nth call of the method and the next call.
    After(&'static str, usize),
}

impl Death {
    /// What to count events up to.
    fn nth(self) -> usize {
        match self {
            Self::Started(nth) | Self::Within(_, nth) | Self::After(_, nth) => nth,
        }
    }

    fn counts(self, event: &Event<'_>) -> bool {
        match (self, event) {
            (Self::Started(_), Event::ProcessStarted { .. }) => true,
            (Self::Within(wanted, _), Event::Calling { method, .. })
            | (Self::After(wanted, _), Event::Called { method, .. }) => wanted == *method,
            _ => false,
        }
    }
}

/// Looks on, and kills once.
pub(crate) struct Executioner {
    death: Death,
    seen: Mutex<usize>,
    /// The process that was started last.
    process: Mutex<Option<u32>>,
    record: Arc<Record>,
}

impl Executioner {
    pub(crate) fn new(death: Death, record: Arc<Record>) -> Self {
        Self { death, seen: Mutex::default(), process: Mutex::default(), record }
    }

    /// Whether the moment came.
    fn has_come(&self, event: &Event<'_>) -> bool {
        let mut seen = self.seen.lock().unwrap();
        *seen += usize::from(self.death.counts(event));
        self.death.counts(event) && *seen == self.death.nth()
    }
}

impl Observer for Executioner {
    fn observe(&self, event: &Event<'_>) {
        if let Event::ProcessStarted { id, .. } = event {
            *self.process.lock().unwrap() = *id;
        }
        if self.has_come(event) {
            let id = self.process.lock().unwrap().expect("a process was started");
            kill_process(Pid::from_raw(i32::try_from(id).unwrap()).unwrap(), Signal::KILL).unwrap();
            while is_alive(id) {
                std::thread::sleep(Duration::from_millis(1));
            }
            self.record.note("killed");
        }
        self.record.observe(event);
    }
}

/// A zombie is dead.
fn is_alive(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}
