//! A running cluster, and what its owner can do to it without a client.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fault_proxy::rules::{InvalidRule, Rule};
use orders::live::Orders;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::api::Api;
use crate::error::ApiError;
use crate::kind::Kind;
use crate::log::{self, Request};
use crate::object;
use crate::rules::update::Part;
use crate::state::{Deleted, Preconditions, State, key};
use crate::store::Key;
use crate::{controllers, server};

/// How a cluster is started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Clients must show this bearer token; without it anyone on this machine is let in.
    pub token: Option<String>,
    /// The port on loopback; any free one by default.
    pub port: u16,
}

/// What a wait for an object ended without.
#[derive(Debug, thiserror::Error)]
#[error("{resource} {namespace}/{name} was not as expected within {within:?}; it is {last}")]
pub struct NotSeen {
    resource: String,
    namespace: String,
    name: String,
    within: Duration,
    last: Value,
}

/// An API server with its controllers, until it is dropped.
#[derive(Debug)]
pub struct Cluster {
    api: Arc<Api>,
    tasks: Vec<JoinHandle<()>>,
}

impl Cluster {
    /// Starts on a free port of the loopback interface.
    ///
    /// # Errors
    /// When no socket can be had.
    pub async fn start() -> io::Result<Self> {
        Self::start_with(Options::default()).await
    }

    /// Starts with the given options. Must be called inside of a tokio runtime, which then runs the server.
    ///
    /// # Errors
    /// When the port is taken.
    pub async fn start_with(options: Options) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", options.port)).await?;
        let api = Api::new(listener.local_addr()?.to_string(), options.token);
        let tasks = vec![
            tokio::spawn(server::serve(listener, api.clone())),
            tokio::spawn(controllers::run(api.clone())),
        ];
        Ok(Self { api, tasks })
    }

    pub(crate) fn api(&self) -> Arc<Api> {
        self.api.clone()
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.api.address)
    }

    /// Writes a kubeconfig with which any client reaches the cluster.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn kubeconfig(&self, path: &Path) -> io::Result<()> {
        let user = self.api.token.as_ref().map_or_else(|| json!({}), |token| json!({"token": token}));
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "embedded",
            "clusters": [{"name": "embedded", "cluster": {"server": self.url()}}],
            "users": [{"name": "embedded", "user": user}],
            "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": "embedded"}}],
        });
        // JSON is YAML.
        std::fs::write(path, format!("{config:#}"))
    }

    /// Creates the object, or replaces the one of that name; the status counts too. A resource version in it
    /// must be the present one.
    ///
    /// # Errors
    /// What an API server would answer: an unknown kind, a missing namespace, an invalid object.
    pub fn apply(&self, object: Value) -> Result<Value, ApiError> {
        let mut state = self.api.state();
        let kind = state.kinds.of(&object).ok_or_else(|| {
            let (version, kind) = (&object["apiVersion"], &object["kind"]);
            ApiError::BadRequest(format!("no matches for kind {kind} in version {version}"))
        })?;
        let namespace = object::namespace(&object).to_owned();
        let key = key(&kind, &namespace, object::name(&object));
        let written = if state.store.get(&key).is_some() {
            state.update(&kind, &key, object, Part::Whole)
        } else {
            state.create(&kind, &namespace, object, Part::Whole)
        }?;
        Ok(Value::clone(&written))
    }

    /// The object, or none. Resources are written as in `volumesnapshots.snapshot.storage.k8s.io`; the namespace is
    /// empty for those that have none.
    ///
    /// # Errors
    /// A resource that isn't served.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Result<Option<Value>, ApiError> {
        let state = self.api.state();
        let (_, key) = place(&state, resource, namespace, name)?;
        Ok(state.store.get(&key).map(|object| Value::clone(object)))
    }

    /// The objects in a namespace, or in all when it is empty, sorted by namespace and name.
    ///
    /// # Errors
    /// A resource that isn't served.
    pub fn list(&self, resource: &str, namespace: &str) -> Result<Vec<Value>, ApiError> {
        let state = self.api.state();
        let (kind, _) = place(&state, resource, namespace, "")?;
        Ok(state.store.list(&kind.resource, namespace).map(|(_, object)| Value::clone(object)).collect())
    }

    /// Merges a patch into the object, status included.
    ///
    /// # Errors
    /// A resource that isn't served, a missing object, an invalid result.
    pub fn patch(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value, ApiError> {
        let mut state = self.api.state();
        let (kind, key) = place(&state, resource, namespace, name)?;
        let old = state.get(&kind, &key)?;
        let mut object = Value::clone(&old);
        json_patch::merge(&mut object, patch);
        let new = state.update(&kind, &key, object, Part::Whole)?;
        Ok(Value::clone(&new))
    }

    /// Deletes the object; gives back what is left of it while finalizers hold it.
    ///
    /// # Errors
    /// A resource that isn't served, a missing object.
    pub fn delete(&self, resource: &str, namespace: &str, name: &str) -> Result<Option<Value>, ApiError> {
        let mut state = self.api.state();
        let (kind, key) = place(&state, resource, namespace, name)?;
        Ok(match state.delete(&kind, &key, &Preconditions::default())? {
            Deleted::Gone(_) => None,
            Deleted::Held(object) => Some(Value::clone(&object)),
        })
    }

    /// Waits until the object, or its absence, is as `expected`.
    ///
    /// # Errors
    /// When it isn't within the time; the error shows what it was.
    ///
    /// # Panics
    /// When the resource isn't served: no waiting helps.
    pub async fn wait(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        within: Duration,
        mut expected: impl FnMut(Option<&Value>) -> bool,
    ) -> Result<Option<Value>, NotSeen> {
        let mut changes = self.api.subscribe();
        let look = || match self.get(resource, namespace, name) {
            Ok(found) => found,
            Err(error) => panic!("cannot look at {resource}: {error}"),
        };
        let seen = tokio::time::timeout(within, async {
            loop {
                changes.mark_unchanged();
                let found = look();
                if expected(found.as_ref()) {
                    return found;
                }
                if changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        });
        seen.await.map_err(|_| NotSeen {
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            within,
            last: look().unwrap_or_default(),
        })
    }

    /// The requests that came over HTTP so far, oldest first.
    pub fn requests(&self) -> Vec<Request> {
        self.api.log.requests()
    }

    /// How often each client (by `User-Agent`) used each verb on each resource, written
    /// `patch volumesnapshotcontents/status`.
    pub fn counts(&self) -> BTreeMap<String, BTreeMap<String, usize>> {
        log::counts(&self.requests())
    }

    /// Forgets the requests so far.
    pub fn clear_requests(&self) {
        self.api.log.clear();
    }

    /// Orders what happens to later requests over HTTP; gives back the rule's id.
    ///
    /// # Errors
    /// A rule that makes no sense.
    pub fn order(&self, rule: Rule) -> Result<String, InvalidRule> {
        rule.check()?;
        Ok(self.api.faults.add(rule))
    }

    /// The fault rules in force, to look at and to remove.
    pub fn faults(&self) -> &Orders<Rule> {
        &self.api.faults
    }

    /// Forgets the history, as a compaction does: watches from before it are answered with 410.
    pub fn compact(&self) {
        self.api.state().store.forget();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

fn place(state: &State, resource: &str, namespace: &str, name: &str) -> Result<(Arc<Kind>, Key), ApiError> {
    let unknown = || ApiError::BadRequest(format!("the server doesn't have a resource type {resource:?}"));
    let kind = state.kinds.get(&resource.into()).ok_or_else(unknown)?;
    let key = key(&kind, namespace, name);
    Ok((kind, key))
}
