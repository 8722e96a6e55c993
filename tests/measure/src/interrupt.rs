//! Ctrl-C and SIGTERM: the process that is being measured is ended, and the run with it, in the ordinary way.
//!
//! Plugins ignore an interrupt and Go plugins outlive their host, so nobody else would end them.

use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};

/// The process that runs now; there is one at a time.
static RUNNING: Mutex<Option<Pid>> = Mutex::new(None);
static ASKED: AtomicBool = AtomicBool::new(false);

/// Waits for the signals.
pub(crate) async fn watch() -> Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        ASKED.store(true, Ordering::SeqCst);
        if let Some(process) = *running() {
            // What waits for its output sees the end of it.
            let _ = kill_process(process, Signal::TERM);
        }
    }
}

/// Fails once the end was asked for.
pub(crate) fn check() -> Result<()> {
    ensure!(!ASKED.load(Ordering::SeqCst), "interrupted");
    Ok(())
}

/// A child that is ended with the run, at the latest when this is dropped.
#[derive(Debug)]
pub(crate) struct Guarded(Child);

impl Guarded {
    pub(crate) fn new(child: Child) -> Self {
        *running() = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        Self(child)
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        *running() = None; // before the id can become another process'
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn running() -> std::sync::MutexGuard<'static, Option<Pid>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
