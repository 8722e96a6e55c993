//! The registered plugins of one kind, made when they are first called, and the guard around each call.

use std::any::Any;
use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt as _;
use tonic::{Code, Response, Status};

use super::Kind;
use crate::error::{self, Result};
use crate::name::PluginName;
use crate::panic::last_panic;

type Make<T> = Box<dyn Fn() -> Arc<T> + Send + Sync>;

struct Entry<T: ?Sized> {
    make: Make<T>,
    handler: OnceLock<Arc<T>>,
    type_name: &'static str,
}

/// The plugins of one kind by name.
pub(crate) struct Handlers<T: ?Sized> {
    kind: Kind,
    entries: BTreeMap<PluginName, Entry<T>>,
}

impl<T: ?Sized> Handlers<T> {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, entries: BTreeMap::new() }
    }

    pub(crate) fn insert(&mut self, name: PluginName, type_name: &'static str, make: Make<T>) {
        self.entries.insert(name, Entry { make, handler: OnceLock::new(), type_name });
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &PluginName> {
        self.entries.keys()
    }

    /// Runs `call` on the plugin `name`. A panic in it, or in the making of the plugin, fails this call alone.
    ///
    /// `method` is what a stack frame names beside the plugin's type.
    pub(crate) async fn call<R, F>(
        &self,
        name: &str,
        method: &str,
        call: impl FnOnce(Arc<T>) -> F,
    ) -> Result<Response<R>, Status>
    where
        F: Future<Output = Result<R>>,
    {
        let Some((_, entry)) = self.entries.iter().find(|(registered, _)| registered.as_str() == name) else {
            // The words of a Go plugin, which users search for.
            let kind = self.kind;
            return Err(Status::unknown(format!(
                "{kind} plugin: {name} was not found or has an invalid name format"
            )));
        };
        let guarded = AssertUnwindSafe(async {
            let handler = Arc::clone(entry.handler.get_or_init(|| (entry.make)()));
            call(handler).await
        });
        match guarded.catch_unwind().await {
            Ok(Ok(reply)) => Ok(Response::new(reply)),
            Ok(Err(error)) => Err(error.into_status(&format!("{}::{method}", entry.type_name))),
            Err(payload) => Err(panicked(payload.as_ref(), &format!("{}::{method}", entry.type_name))),
        }
    }
}

/// The status of a call that panicked, as a Go plugin answers it.
fn panicked(payload: &(dyn Any + Send), function: &str) -> Status {
    let text = crate::panic::text(payload);
    let (file, line) = last_panic().unwrap_or_default();
    error::status(Code::Aborted, &format!("plugin panicked: {text}"), &file, line, function)
}
