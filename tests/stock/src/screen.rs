//! What the person at the terminal sees while a stack comes up and scenarios run: one line per event.

use std::io::Write;
use std::time::{Duration, Instant};

/// Writes lines with the seconds since its making. A closed terminal is no reason to stop.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    began: Instant,
}

impl Screen {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now() }
    }

    pub(crate) fn line(&self, what: &str, state: &str) {
        let seconds = self.began.elapsed().as_secs_f64();
        print(&format!("{seconds:7.1}  {what:<24} {state}"));
    }

    pub(crate) fn ready(&self, what: &str, after: Duration) {
        self.line(what, &format!("ready after {:.1} s", after.as_secs_f64()));
    }
}

/// One line, or several, on standard output.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    drop(writeln!(out, "{text}"));
}
