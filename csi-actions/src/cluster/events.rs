//! Writes Events. They are news and nothing depends on them, so all that goes wrong is a line in the debug log.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::timeout;

use super::resource::EVENTS;
use super::{Cluster, Reason};
use crate::environment::Environment;
use crate::events::{self, About};

/// How long one may take: a caller may be waiting.
const LIMIT: Duration = Duration::from_secs(2);

/// The writer of Events.
#[derive(Debug, Clone)]
pub struct Events {
    cluster: Cluster,
    /// Whether the operator wants them.
    is_on: bool,
    /// Namespaces in which this process may not write them, or where the API server has no time for them.
    closed: Arc<Mutex<HashSet<String>>>,
}

impl Events {
    /// Of the actions in `environment`.
    pub fn of(environment: &Environment) -> Self {
        let cluster = environment.cluster.patient(Duration::ZERO);
        Self { cluster, is_on: environment.settings.events, closed: Arc::default() }
    }

    /// Writes one Event, by one request at most, and returns after two seconds at the latest.
    pub async fn write(&self, about: About, reason: events::Reason, message: String) {
        if !self.is_on {
            return;
        }
        let event = about.event(reason, &message, SystemTime::now());
        let namespace = crate::object::namespace(&event);
        if self.closed().contains(namespace) {
            return;
        }
        match timeout(LIMIT, self.cluster.create(EVENTS, namespace, &event)).await {
            Ok(Ok(_)) => {}
            // The news is there already.
            Ok(Err(error)) if error.reason == Reason::AlreadyExists => {}
            Ok(Err(error)) => {
                tracing::debug!("no Event is written: {error}");
                if error.reason == Reason::Forbidden {
                    self.closed().insert(namespace.to_owned());
                }
            }
            Err(_) => {
                tracing::debug!("no Event is written: no answer within {} s", LIMIT.as_secs());
                self.closed().insert(namespace.to_owned());
            }
        }
    }

    /// Writes one Event while the caller goes on. For a process that lives on: it may be lost at the process' end.
    pub fn write_beside(&self, about: About, reason: events::Reason, message: String) {
        if self.is_on {
            let events = self.clone();
            tokio::spawn(async move { events.write(about, reason, message).await });
        }
    }

    fn closed(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
