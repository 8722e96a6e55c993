//! The reasons for a plugin's process to end, and how long its running calls are waited for.

use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::sync::watch;

/// How often the plugin looks whether its host still lives. The kernel's own signal for that (PDEATHSIG) is no
/// help: it fires when the host's *thread* ends, and Go ends threads as it likes.
const PARENT_CHECK: Duration = Duration::from_secs(5);

/// Why the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The host asked for it.
    Shutdown,
    /// SIGTERM.
    Terminated,
    /// The host is gone.
    Orphaned,
}

impl Stop {
    /// How long running calls may still take. The host kills what lives two seconds after its request, and has given up
    /// on their replies by then; the others wait for nothing but the calls' effects.
    pub(crate) fn grace(self) -> Duration {
        match self {
            Self::Shutdown => Duration::from_millis(200),
            Self::Terminated | Self::Orphaned => Duration::from_secs(10),
        }
    }
}

/// Tells everything that waits that the process is to end.
#[derive(Debug, Clone)]
pub(crate) struct StopHandle(watch::Sender<Option<Stop>>);

impl Default for StopHandle {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl StopHandle {
    /// Asks for the end; the first reason holds.
    pub(crate) fn stop(&self, stop: Stop) {
        self.0.send_if_modified(|current| {
            let first = current.is_none();
            if first {
                *current = Some(stop);
            }
            first
        });
    }

    /// Waits for the end to be asked for.
    pub(crate) fn stopped(&self) -> impl Future<Output = Stop> + Send + 'static {
        let mut receiver = self.0.subscribe();
        async move {
            match receiver.wait_for(Option::is_some).await {
                Ok(stop) => stop.unwrap_or(Stop::Shutdown),
                // The handle is gone, so the process is ending anyway.
                Err(_) => Stop::Shutdown,
            }
        }
    }
}

/// Signals that come before anyone handles them wait: their default would end the process and leave its socket.
#[must_use = "the signals are held until they are released"]
pub(crate) struct HeldSignals(SigSet);

impl HeldSignals {
    /// Holds SIGINT and SIGTERM back from this thread, the only one.
    pub(crate) fn hold() -> std::io::Result<Self> {
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGINT);
        signals.add(Signal::SIGTERM);
        signals.thread_block()?;
        Ok(Self(signals))
    }

    /// Lets through what has come, to the handlers that are there now.
    pub(crate) fn release(self) -> std::io::Result<()> {
        Ok(self.0.thread_unblock()?)
    }
}

/// What ends the process from outside of the protocol.
pub(crate) struct ProcessWatch {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    parent: u32,
}

impl ProcessWatch {
    /// Takes over the signals. Needs a tokio runtime. `parent` is the host, asked for before it could be gone.
    pub(crate) fn new(parent: u32) -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            parent,
        })
    }

    /// Turns SIGTERM and the host's death into the end, and makes SIGINT harmless: Ctrl-C reaches a terminal's
    /// whole process group, and the host ends its plugins in its own order.
    pub(crate) async fn run(mut self, stop: StopHandle) {
        let mut check = tokio::time::interval(PARENT_CHECK);
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => tracing::trace!("interrupt ignored: the host ends its plugins"),
                _ = self.terminate.recv() => stop.stop(Stop::Terminated),
                _ = check.tick() => {
                    if std::os::unix::process::parent_id() != self.parent {
                        stop.stop(Stop::Orphaned);
                    }
                }
            }
        }
    }
}
