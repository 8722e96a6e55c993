//! What the controller manager of a real cluster does beside the API server: without it nothing would ever go away.

mod garbage;
mod namespaces;
mod protection;

use std::sync::Arc;

use crate::api::Api;
use crate::state::State;

/// One look at the whole state; a pass repeats until nothing is left to do.
type Pass = fn(&mut State);

const PASSES: [Pass; 3] = [garbage::collect, namespaces::empty, protection::release];

/// Runs all passes after every change, until the task is aborted.
pub(crate) async fn run(api: Arc<Api>) {
    let mut changes = api.subscribe();
    while changes.changed().await.is_ok() {
        let mut state = api.state();
        for pass in PASSES {
            pass(&mut state);
        }
    }
}
