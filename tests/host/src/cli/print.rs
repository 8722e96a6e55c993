//! Shows what happens on standard error.

use velero_host::event::{Event, Observer};
use velero_host::log::Level;

/// Prints plugins' logs, and how their processes come and go.
#[derive(Debug)]
pub(crate) struct Printer {
    threshold: Level,
}

impl Printer {
    /// From info on, or everything.
    pub(crate) fn new(verbose: bool) -> Self {
        Self { threshold: if verbose { Level::Trace } else { Level::Info } }
    }
}

impl Observer for Printer {
    fn observe(&self, event: &Event<'_>) {
        match event {
            Event::PluginLog { line, .. } => {
                if line.level >= self.threshold {
                    eprintln!("{line}");
                }
                if let Some(fault) = &line.fault {
                    eprintln!("FAULT   {fault}: {}", line.message);
                }
            }
            Event::HostLog { level, message } if *level >= self.threshold => {
                eprintln!("{level:<7} host: {message}");
            }
            Event::ProcessStarted { command, took, .. } if self.threshold < Level::Info => {
                eprintln!("{:<7} host: {command} listens after {took:.1?}", Level::Debug);
            }
            Event::ProcessEnded { command, status, killed, took } => {
                let ended_well = status.is_some_and(|status| status.success());
                if *killed || !ended_well {
                    let how = status.map_or_else(|| "unknown end".to_owned(), |status| status.to_string());
                    let killed = if *killed { ", it had to be killed" } else { "" };
                    eprintln!(
                        "{:<7} host: {command} ended with {how} after {took:.1?}{killed}",
                        Level::Error
                    );
                }
            }
            _ => {}
        }
    }
}
