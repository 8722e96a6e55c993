//! The calls that are running, so that the process does not end under one.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::sync::watch;

use crate::panic::Panic;

/// How a call ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// By itself.
    Well,
    /// In a panic.
    Panicked(Panic),
    /// With the runtime.
    Dropped,
}

/// Counts the calls that are running.
#[derive(Debug, Clone)]
pub(crate) struct Calls(Arc<watch::Sender<usize>>);

impl Default for Calls {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

struct Running(Arc<watch::Sender<usize>>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl Calls {
    /// Runs `call` to its end even when the caller goes away: a host that drops its connection must not leave a
    /// snapshot half taken.
    pub(crate) async fn run(&self, call: Pin<Box<dyn Future<Output = ()> + Send>>) -> Ended {
        self.0.send_modify(|count| *count += 1);
        let running = Running(Arc::clone(&self.0));
        let task = tokio::spawn(async move {
            let _running = running;
            // A panic's place is the last one of its thread, so it is read where the panic is caught.
            match AssertUnwindSafe(call).catch_unwind().await {
                Ok(()) => Ended::Well,
                Err(payload) => Ended::Panicked(Panic::caught(payload.as_ref())),
            }
        });
        task.await.unwrap_or(Ended::Dropped)
    }

    /// Waits until no call is running.
    pub(crate) async fn idle(&self) {
        // The sender lives as long as `self`, so this can't fail.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}
