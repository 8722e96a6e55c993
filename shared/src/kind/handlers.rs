//! The registered plugins of one kind, made when they are first called, and the guard around each call.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tonic::{Code, Response, Status};

use super::Kind;
use super::service::not_found;
use crate::error::{self, Result};
use crate::name::PluginName;
use crate::panic::Panic;
use crate::process::{Calls, Ended};

type Make<T> = Box<dyn Fn() -> Arc<T> + Send + Sync>;

struct Entry<T: ?Sized> {
    make: Make<T>,
    handler: OnceLock<Arc<T>>,
    type_name: &'static str,
}

/// The plugins of one kind by name.
pub(crate) struct Handlers<T: ?Sized> {
    kind: Kind,
    entries: BTreeMap<PluginName, Arc<Entry<T>>>,
    calls: Calls,
}

impl<T: ?Sized> Entry<T> {
    fn get(&self) -> Arc<T> {
        Arc::clone(self.handler.get_or_init(|| (self.make)()))
    }
}

impl<T: ?Sized> Handlers<T> {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, entries: BTreeMap::new(), calls: Calls::default() }
    }

    /// Counts calls in `calls` from now on.
    pub(crate) fn set_calls(&mut self, calls: &Calls) {
        self.calls = calls.clone();
    }

    pub(crate) fn insert(&mut self, name: PluginName, type_name: &'static str, make: Make<T>) {
        self.entries.insert(name, Arc::new(Entry { make, handler: OnceLock::new(), type_name }));
    }

    /// The plugin `name`, made now if it is not yet.
    pub(crate) fn get(&self, name: &PluginName) -> Option<Arc<T>> {
        self.entries.get(name).map(|entry| entry.get())
    }

    /// Runs `call` on the plugin `name`, to its end even if the host goes away. A panic in it, or in the making of the
    /// plugin, fails this call alone.
    ///
    /// `method` is what a stack frame names beside the plugin's type.
    pub(crate) async fn call<R, F>(
        &self,
        name: &str,
        method: &'static str,
        call: impl FnOnce(Arc<T>) -> F + Send + 'static,
    ) -> Result<Response<R>, Status>
    where
        T: Send + Sync + 'static,
        F: Future<Output = Result<R>> + Send + 'static,
        R: Send + 'static,
    {
        let Some((_, entry)) = self.entries.iter().find(|(registered, _)| registered.as_str() == name) else {
            return Err(not_found(self.kind, name));
        };
        let entry = Arc::clone(entry);
        let function = format!("{}::{method}", entry.type_name);
        // The reply comes through a slot, so that what runs, catches and counts is compiled once and not per method.
        let slot = Arc::new(Mutex::new(None));
        let filled = Arc::clone(&slot);
        let ended = self.calls.run(Box::pin(async move {
            let result = call(entry.get()).await;
            *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }));
        match ended.await {
            Ended::Well => {}
            Ended::Panicked(panic) => return Err(panicked(&panic, &function)),
            Ended::Dropped => return Err(Status::unavailable("the plugin is ending")),
        }
        let result = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        match result {
            Some(Ok(reply)) => Ok(Response::new(reply)),
            Some(Err(error)) => Err(error.into_status(&function)),
            None => Err(Status::internal("the call ended without a reply")),
        }
    }
}

/// The status of a call that panicked, as a Go plugin answers it.
pub(super) fn panicked(panic: &Panic, function: &str) -> Status {
    let Panic { text, file, line } = panic;
    error::status(Code::Aborted, &format!("plugin panicked: {text}"), file, *line, function)
}
