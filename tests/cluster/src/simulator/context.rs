//! What every controller works with: its cache, its queue and the API.

use std::sync::Arc;

use csi_driver::code::Code;
use serde_json::Value;
use tonic::Status;

use super::Settings;
use super::informer::Cache;
use super::queue::Queue;
use crate::api::Api;
use crate::error::ApiError;
use crate::kind::Kind;
use crate::object;
use crate::rules::update::Part;
use crate::state::{Deleted, Preconditions, key};
use crate::store::Key;

/// Why an object could not be brought forward; it is tried again.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// The API refused.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The driver refused; worded as Go's gRPC does, since that text reaches users.
    #[error("rpc error: code = {code} desc = {text}", code = go_name(.0), text = .0.message())]
    Driver(#[from] Status),
    /// The object isn't as it must be.
    #[error("{0}")]
    Object(String),
}

impl Trouble {
    /// The same trouble with the words of the step that met it; what it was is known from the text alone then.
    pub(super) fn during(self, step: &str) -> Self {
        Self::Object(format!("{step}: {self}"))
    }

    /// As [`during`](Self::during), with the cause in quotes.
    pub(super) fn quoted(self, step: &str) -> Self {
        Self::Object(format!("{step}: {:?}", self.to_string()))
    }
}

fn go_name(status: &Status) -> String {
    match status.code() {
        // Spelt with one l over there.
        tonic::Code::Cancelled => "Canceled".to_owned(),
        tonic::Code::Ok => Code(tonic::Code::Ok).name().to_owned(),
        code => format!("{code:?}"),
    }
}

/// The tools of one controller.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) api: Arc<Api>,
    pub(super) settings: Settings,
    /// What the informers delivered.
    pub(super) cache: Cache,
    /// Objects as last worked on or written here; an older version from the informers is not looked at.
    pub(super) known: Cache,
    pub(super) queue: Arc<Queue>,
}

impl Context {
    pub(super) fn new(api: Arc<Api>, settings: Settings) -> Self {
        let queue = Arc::new(Queue::new(settings.retry_start, settings.retry_max));
        Self { api, settings, cache: Cache::default(), known: Cache::default(), queue }
    }

    /// From the cache: may be behind.
    pub(super) fn cached(&self, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.cache.get(&Key::new(resource, namespace, name))
    }

    /// From the API.
    pub(super) fn get(&self, key: &Key) -> Result<Arc<Value>, ApiError> {
        let state = self.api.state();
        let kind = served(&state, key)?;
        state.get(&kind, key)
    }

    pub(super) fn create(
        &self,
        resource: &str,
        namespace: &str,
        object: Value,
    ) -> Result<Arc<Value>, ApiError> {
        let mut state = self.api.state();
        let kind = served(&state, &Key::new(resource, namespace, ""))?;
        state.create(&kind, namespace, object, Part::Main)
    }

    /// Writes the object; a conflict when another version is stored by now.
    pub(super) fn update(&self, resource: &str, object: Value, part: Part) -> Result<Arc<Value>, ApiError> {
        let mut state = self.api.state();
        let kind = served(&state, &Key::new(resource, "", ""))?;
        let key = key(&kind, object::namespace(&object), object::name(&object));
        state.update(&kind, &key, object, part)
    }

    /// Changes what is stored now, whatever its version.
    pub(super) fn patch(
        &self,
        key: &Key,
        part: Part,
        change: impl FnOnce(&mut Value),
    ) -> Result<Arc<Value>, ApiError> {
        let mut state = self.api.state();
        let kind = served(&state, key)?;
        let mut object = Value::clone(&*state.get(&kind, key)?);
        change(&mut object);
        state.update(&kind, key, object, part)
    }

    /// As [`update`](Self::update), and remembers the object as known.
    pub(super) fn replace(&self, key: &Key, object: Value, part: Part) -> Result<Arc<Value>, ApiError> {
        let written = self.update(&key.resource.to_string(), object, part)?;
        self.known.accept(key, &written);
        Ok(written)
    }

    /// As [`patch`](Self::patch), and remembers the object as known.
    pub(super) fn write(
        &self,
        key: &Key,
        part: Part,
        change: impl FnOnce(&mut Value),
    ) -> Result<Arc<Value>, ApiError> {
        let written = self.patch(key, part, change)?;
        self.known.accept(key, &written);
        Ok(written)
    }

    /// Creates the object, or gives the one that is there.
    pub(super) fn create_or_get(&self, key: &Key, object: Value) -> Result<Arc<Value>, ApiError> {
        match self.create(&key.resource.to_string(), &key.namespace, object) {
            Err(ApiError::AlreadyExists(_)) => self.get(key),
            created => created,
        }
    }

    pub(super) fn delete(&self, key: &Key) -> Result<Deleted, ApiError> {
        let mut state = self.api.state();
        let kind = served(&state, key)?;
        state.delete(&kind, key, &Preconditions::default())
    }
}

fn served(state: &crate::state::State, key: &Key) -> Result<Arc<Kind>, ApiError> {
    state.kinds.get(&key.resource).ok_or(ApiError::PageNotFound)
}

/// An annotation's text; nothing when it isn't there.
pub(super) fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][name].as_str()
}

/// A text at a JSON pointer, if it is there and not empty.
pub(super) fn set<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    Some(object::text(object, pointer)).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_errors_read_as_in_go() {
        for (code, expected) in [
            (tonic::Code::Cancelled, "rpc error: code = Canceled desc = x"),
            (tonic::Code::ResourceExhausted, "rpc error: code = ResourceExhausted desc = x"),
        ] {
            let trouble = Trouble::from(Status::new(code, "x"));
            assert_eq!(trouble.to_string(), expected);
            assert_eq!(trouble.quoted("failed").to_string(), format!("failed: {expected:?}"));
        }
    }
}
