//! The reasons for a plugin's process to end, and how long its running calls are waited for.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
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

    /// Turns SIGTERM and the host's death into the end, and makes SIGINT harmless: Ctrl-C reaches a terminal's
    /// whole process group, and the host ends its plugins in its own order.
    pub(crate) async fn watch_process(self) -> std::io::Result<()> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let parent = std::os::unix::process::parent_id();
        let mut check = tokio::time::interval(PARENT_CHECK);
        loop {
            tokio::select! {
                _ = interrupt.recv() => tracing::trace!("interrupt ignored: the host ends its plugins"),
                _ = terminate.recv() => self.stop(Stop::Terminated),
                _ = check.tick() => {
                    if std::os::unix::process::parent_id() != parent {
                        self.stop(Stop::Orphaned);
                    }
                }
            }
        }
    }
}
