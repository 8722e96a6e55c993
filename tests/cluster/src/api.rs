//! The API as the server and the controllers in this process share it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fault_proxy::rules::Rule;
use orders::live::Orders;
use tokio::sync::watch;

use crate::log::Log;
use crate::state::State;

/// The state behind its lock, the log of requests, and the faults in force.
#[derive(Debug)]
pub(crate) struct Api {
    state: Mutex<State>,
    pub(crate) log: Log,
    pub(crate) faults: Orders<Rule>,
    /// `host:port`.
    pub(crate) address: String,
    /// Clients must show this one, if it is set.
    pub(crate) token: Option<String>,
}

impl Api {
    pub(crate) fn new(address: String, token: Option<String>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State::new()),
            log: Log::default(),
            faults: Orders::default(),
            address,
            token,
        })
    }

    /// The state, locked. Never held over an await.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves whole objects behind, never half of one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes with every change of the state.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.state().store.subscribe()
    }
}
