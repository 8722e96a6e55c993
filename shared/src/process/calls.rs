//! The calls that are running, so that the process does not end under one.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::watch;

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
    /// snapshot half taken. `None` only while the runtime is being torn down.
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        call: impl Future<Output = R> + Send + 'static,
    ) -> Option<R> {
        self.0.send_modify(|count| *count += 1);
        let running = Running(Arc::clone(&self.0));
        let task = tokio::spawn(async move {
            let _running = running;
            call.await
        });
        task.await.ok()
    }

    /// Waits until no call is running.
    pub(crate) async fn idle(&self) {
        // The sender lives as long as `self`, so this can't fail.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}
