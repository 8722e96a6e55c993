//! Ctrl-C and SIGTERM, noted whenever they come.

use anyhow::{Context as _, Result};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// The exit code of a run that was told to stop.
pub(crate) const EXIT_CODE: u8 = 130;

/// The run was told to stop.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// Knows whether the run was told to stop.
pub(crate) struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Listens from now on.
    pub(crate) fn listen() -> Result<Self> {
        let (tell, told) = watch::channel(false);
        let mut interrupt = signal(SignalKind::interrupt()).context("listen for Ctrl-C")?;
        let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                // Nobody may be left to tell.
                let _ = tell.send(true);
            }
        });
        Ok(Self(told))
    }

    /// Whether the run was told to stop.
    pub(crate) fn check(&self) -> Result<()> {
        if *self.0.borrow() { Err(Interrupted.into()) } else { Ok(()) }
    }

    /// `work`, dropped where it stands when the run is told to stop.
    pub(crate) async fn or<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let mut told = self.0.clone();
        tokio::select! {
            done = work => done,
            Ok(_) = told.wait_for(|told| *told) => Err(Interrupted.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_signal_that_came_between_two_works_stops_the_second() {
        let (tell, told) = watch::channel(false);
        let interrupt = Interrupt(told);
        assert_eq!(interrupt.or(async { Ok(1) }).await.unwrap(), 1);
        interrupt.check().unwrap();
        tell.send(true).unwrap();
        assert!(interrupt.check().is_err());
        let error = interrupt.or(std::future::pending::<Result<()>>()).await.unwrap_err();
        assert!(error.is::<Interrupted>());
    }
}
