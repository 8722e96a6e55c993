//! Runs a controller: events into its queue, workers out of it.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::context::{Context, Trouble};
use super::informer::{self, Event};
use crate::store::Key;

/// What became of one look at an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing to do until it changes.
    Rest,
    /// To be looked at again after a wait.
    Again,
}

/// A controller: what it watches, what makes it work, and the work.
pub(super) trait Controller: Send + Sync + 'static {
    /// The resources in its cache.
    fn watches(&self) -> &'static [&'static str];

    /// The objects that an event makes it look at.
    fn concerns(&self, event: &Event) -> Vec<Key>;

    /// Brings one object forward.
    fn sync(&self, key: &Key) -> impl Future<Output = Result<Next, Trouble>> + Send;

    fn context(&self) -> &Context;
}

/// Runs until the task is aborted.
pub(super) async fn run(controller: impl Controller) {
    let controller = Arc::new(controller);
    let context = controller.context();
    let mut workers = JoinSet::new();
    for _ in 0..context.settings.workers {
        workers.spawn(work(controller.clone()));
    }
    let settings = context.settings;
    informer::run(
        context.api.clone(),
        controller.watches(),
        &context.cache,
        settings.informer_lag,
        settings.resync,
        |event| {
            for key in controller.concerns(&event) {
                context.queue.add(key);
            }
        },
    )
    .await;
}

async fn work<C: Controller>(controller: Arc<C>) {
    let queue = controller.context().queue.clone();
    loop {
        let key = queue.next().await;
        // A refusal is met with another attempt, as the originals do; users see it in the object's status.
        let again = !matches!(controller.sync(&key).await, Ok(Next::Rest));
        queue.done(key, again);
    }
}
