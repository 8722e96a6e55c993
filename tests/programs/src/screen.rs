//! What the person at the terminal sees while a stack comes up and scenarios run: one line per event.

use std::io::Write;
use std::time::{Duration, Instant};

/// Writes lines with the seconds since its making. A closed terminal is no reason to stop.
#[derive(Clone, Debug)]
pub struct Screen {
    began: Instant,
}

impl Screen {
    /// From now on.
    #[allow(clippy::new_without_default, reason = "it holds the time of its making")]
    pub fn new() -> Self {
        Self { began: Instant::now() }
    }

    /// What something is at.
    pub fn line(&self, what: &str, state: &str) {
        let seconds = self.began.elapsed().as_secs_f64();
        print(&format!("{seconds:7.1}  {what:<24} {state}"));
    }

    /// That something is ready, and how long it took.
    pub fn ready(&self, what: &str, after: Duration) {
        self.line(what, &format!("ready after {:.1} s", after.as_secs_f64()));
    }
}

/// One line, or several, on standard output.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    drop(writeln!(out, "{text}"));
}
