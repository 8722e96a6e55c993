//! The Kubernetes API as the actions use it: objects as JSON values, a time limit on every request.

pub mod error;
pub mod events;
pub mod permissions;
pub mod resource;
pub mod watch;

mod connect;

use std::collections::HashMap;
use std::future::Future;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use velero_plugin::HostArgs;
use velero_plugin::retry::{Backoff, retry};

pub use error::{ApiError, Reason};
use resource::Resource;

/// For one object. The API server itself gives up after a minute; a caller of ours is waiting.
const REQUEST_LIMIT: Duration = Duration::from_secs(15);
/// For a list, which may be of many thousand objects.
const LIST_LIMIT: Duration = Duration::from_secs(45);
/// For how long an action tries a request again when the API server is busy. Longer than a list may take, so that one that is
/// never answered is asked for again. A deletion is never asked for again by Velero.
pub const PATIENCE: Duration = Duration::from_secs(60);
const _: () = assert!(PATIENCE.as_secs() > LIST_LIMIT.as_secs());
/// For the last attempt of a patient request, however little of the patience is left.
const LEAST_LIMIT: Duration = Duration::from_secs(1);
/// How often a deletion that met another writer is tried again.
const CONFLICTS: u32 = 5;

const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON: &str = "application/json";

/// Which objects of a resource to list.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// A label selector; "" for all.
    pub labels: String,
    /// From the API server's cache: cheap, and possibly a moment old.
    pub cached: bool,
}

/// The cluster that the server backs up. Nothing is read or connected before the first request.
#[derive(Clone)]
pub struct Cluster {
    arguments: Arc<HostArgs>,
    client: Arc<OnceCell<Client>>,
    /// The versions of API groups that were found: those of a group don't change while a process lives.
    versions: Arc<Mutex<HashMap<String, Vec<String>>>>,
    patience: Duration,
}

impl Cluster {
    /// The cluster that the server's command line and environment name.
    pub fn of_server(arguments: HostArgs) -> Self {
        Self {
            arguments: Arc::new(arguments),
            client: Arc::default(),
            versions: Arc::default(),
            patience: Duration::ZERO,
        }
    }

    /// The same cluster, where a request that fails for what may pass is tried again for up to `patience` in all.
    #[must_use]
    pub fn patient(&self, patience: Duration) -> Self {
        Self { patience, ..self.clone() }
    }

    /// Reads an object.
    ///
    /// # Errors
    ///
    /// Among others when it does not exist; see [`find`](Self::find).
    pub async fn get(&self, resource: Resource, namespace: &str, name: &str) -> Result<Value, ApiError> {
        let call = Call::on(Method::GET, "get", resource, namespace, name);
        self.call(&call).await
    }

    /// Reads an object; `None` where it does not exist.
    ///
    /// # Errors
    ///
    /// When that can't be told.
    pub async fn find(
        &self,
        resource: Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ApiError> {
        absent_as_none(self.get(resource, namespace, name).await)
    }

    /// Lists objects of the whole cluster.
    ///
    /// # Errors
    ///
    /// Among others when the resource is not served.
    pub async fn list(&self, resource: Resource, query: &Query) -> Result<Vec<Value>, ApiError> {
        self.list_in(resource, "", query).await
    }

    /// Lists objects of one namespace.
    ///
    /// # Errors
    ///
    /// Among others when the resource is not served.
    pub async fn list_in(
        &self,
        resource: Resource,
        namespace: &str,
        query: &Query,
    ) -> Result<Vec<Value>, ApiError> {
        let mut parameters = Vec::new();
        if !query.labels.is_empty() {
            parameters.push(format!("labelSelector={}", escaped(&query.labels)));
        }
        if query.cached {
            parameters.push("resourceVersion=0".to_owned());
        }
        let path = format!("{}?{}", resource.path(namespace), parameters.join("&"));
        let what = match namespace {
            "" => format!("list {}", resource.plural),
            namespace => format!("list {} in {namespace}", resource.plural),
        };
        let call = Call { limit: LIST_LIMIT, ..Call::to(Method::GET, path, what) };
        let mut list = self.call(&call).await?;
        match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            // Go writes an empty list as null.
            _ => Ok(Vec::new()),
        }
    }

    /// The versions in which the API server serves `group`, the preferred ones first; `None` where it does not know it. Asked
    /// for until it does.
    ///
    /// # Errors
    ///
    /// When that can't be told.
    pub async fn versions(&self, group: &str) -> Result<Option<Vec<String>>, ApiError> {
        let known = || self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(versions) = known().get(group) {
            return Ok(Some(versions.clone()));
        }
        let path = format!("/apis/{}", escaped(group));
        let call = Call::to(Method::GET, path, format!("ask for the API group {group}"));
        let found = match self.call(&call).await {
            Err(error) if error.is_not_found() => return Ok(None),
            found => found?,
        };
        let versions = found["versions"].as_array().into_iter().flatten();
        let versions: Vec<String> =
            versions.filter_map(|each| each["version"].as_str().map(str::to_owned)).collect();
        known().insert(group.to_owned(), versions.clone());
        Ok(Some(versions))
    }

    /// Creates an object; the result is as the API server made it.
    ///
    /// # Errors
    ///
    /// Among others when one of that name exists, also where an earlier attempt of this call made it.
    pub async fn create(
        &self,
        resource: Resource,
        namespace: &str,
        object: &Value,
    ) -> Result<Value, ApiError> {
        let what = format!("create {}", resource.object(namespace, crate::object::name(object)));
        let mut call = Call::to(Method::POST, resource.path(namespace), what);
        call.body = object.to_string().into_bytes();
        self.call(&call).await
    }

    /// Merges `patch` into an object; the result is the whole object. With a `metadata.resourceVersion` in it the patch
    /// holds for that state of the object only; lists, such as the finalizers, are replaced as a whole.
    ///
    /// # Errors
    ///
    /// Among others when it does not exist; [`Reason::Conflict`] where the state that the patch names is past.
    pub async fn patch(
        &self,
        resource: Resource,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value, ApiError> {
        self.call(&Call::merging("patch", "", resource, namespace, name, patch)).await
    }

    /// Has the API server judge a `patch` as if it were made, and leave the object as it is.
    ///
    /// # Errors
    ///
    /// As [`patch`](Self::patch); also where an admission webhook can't judge without acting.
    pub async fn judge_patch(
        &self,
        resource: Resource,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<(), ApiError> {
        let call = Call::merging("judge a patch of", "?dryRun=All", resource, namespace, name, patch);
        self.call(&call).await.map(|_| ())
    }

    /// Merges `patch` into the status of an object, which a plain patch leaves as it is.
    ///
    /// # Errors
    ///
    /// As [`patch`](Self::patch).
    pub async fn patch_status(
        &self,
        resource: Resource,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value, ApiError> {
        self.call(&Call::merging("patch the status of", "/status", resource, namespace, name, patch)).await
    }

    /// Deletes the object of this name if it still has this `uid`; one that is gone already is fine.
    ///
    /// # Errors
    ///
    /// [`Reason::Conflict`] where another object has taken the name.
    pub async fn delete(
        &self,
        resource: Resource,
        namespace: &str,
        name: &str,
        uid: &str,
    ) -> Result<(), ApiError> {
        let mut attempts = CONFLICTS;
        loop {
            match self.delete_if(resource, namespace, name, &json!({"uid": uid})).await {
                Err(error) if error.reason == Reason::Conflict && attempts > 0 => {
                    // Of a write at that moment, unless the object is another one by now.
                    let found = self.find(resource, namespace, name).await?;
                    if found.is_some_and(|found| crate::object::uid(&found) != Some(uid)) {
                        return Err(error);
                    }
                    attempts -= 1;
                }
                done => return done,
            }
        }
    }

    /// Deletes `object` if it is still in this very state; one that is gone already is fine.
    ///
    /// # Errors
    ///
    /// [`Reason::Conflict`] where it was changed, or another object has taken the name.
    pub async fn delete_unchanged(&self, resource: Resource, object: &Value) -> Result<(), ApiError> {
        let metadata = &object["metadata"];
        let state = json!({"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]});
        self.delete_if(resource, crate::object::namespace(object), crate::object::name(object), &state).await
    }

    async fn delete_if(
        &self,
        resource: Resource,
        namespace: &str,
        name: &str,
        preconditions: &Value,
    ) -> Result<(), ApiError> {
        let mut call = Call::on(Method::DELETE, "delete", resource, namespace, name);
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
        call.body = options.to_string().into_bytes();
        absent_as_none(self.call(&call).await).map(|_| ())
    }

    async fn client(&self) -> Result<&Client, ApiError> {
        self.client.get_or_try_init(|| connect::connect(&self.arguments)).await
    }

    /// Sends a request, again and again within the patience, and reads the JSON of the answer.
    async fn call(&self, call: &Call) -> Result<Value, ApiError> {
        if self.patience.is_zero() {
            return self.attempt(call, call.limit).await;
        }
        let (start, most) = (Duration::from_millis(200), Duration::from_secs(5));
        let backoff = Backoff::new(start, most, self.patience).unwrap_or_default();
        let mut first = true;
        retry(backoff, |left| {
            // The first attempt has all its time, since a long list takes it; the others have what is left.
            let limit =
                if std::mem::take(&mut first) { call.limit } else { call.limit.min(left.max(LEAST_LIMIT)) };
            async move {
                match self.attempt(call, limit).await {
                    Err(error) if error.may_pass() || call.conflict_may_pass(&error) => {
                        tracing::debug!("{error}; trying again");
                        let wait = error.retry_after;
                        ControlFlow::Continue((error, wait))
                    }
                    done => ControlFlow::Break(done),
                }
            }
        })
        .await
    }

    async fn attempt(&self, call: &Call, limit: Duration) -> Result<Value, ApiError> {
        within(limit, &call.what, async {
            let answer = self.send(call).await?;
            let body = answer.into_body().collect().await;
            let body =
                body.map_err(|error| ApiError::new(&call.what, Reason::Unreachable, error.to_string()))?;
            serde_json::from_slice(&body.to_bytes())
                .map_err(|error| ApiError::new(&call.what, Reason::Unreadable, error.to_string()))
        })
        .await
    }

    /// Sends a request; the answer is one of success.
    async fn send(&self, call: &Call) -> Result<http::Response<Body>, ApiError> {
        let request = Request::builder()
            .method(call.method.clone())
            .uri(&call.path)
            .header(http::header::CONTENT_TYPE, call.content_type)
            .header(http::header::ACCEPT, JSON)
            .body(Body::from(call.body.clone()))
            .map_err(|error| ApiError::new(&call.what, Reason::Invalid, error.to_string()))?;
        let answer = self.client().await?.send(request).await;
        let answer = answer.map_err(|error| {
            ApiError::new(&call.what, Reason::Unreachable, velero_plugin::Error::from(error).to_string())
        })?;
        let code = answer.status();
        if code.is_success() {
            return Ok(answer);
        }
        let retry_after =
            answer.headers().get(http::header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = retry_after.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
        let body =
            answer.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        Err(ApiError::of_answer(&call.what, code, retry_after, &body))
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("patience", &self.patience).finish_non_exhaustive()
    }
}

impl From<Client> for Cluster {
    /// A cluster behind a client that is connected already.
    fn from(client: Client) -> Self {
        Self {
            arguments: Arc::default(),
            client: Arc::new(OnceCell::new_with(Some(client))),
            versions: Arc::default(),
            patience: Duration::ZERO,
        }
    }
}

/// One request.
struct Call {
    method: Method,
    path: String,
    content_type: &'static str,
    body: Vec<u8>,
    /// The request as an error names it.
    what: String,
    limit: Duration,
    /// Whether it is for one state of the object only.
    is_conditional: bool,
}

impl Call {
    /// About an object.
    fn on(method: Method, verb: &str, resource: Resource, namespace: &str, name: &str) -> Self {
        let path = format!("{}/{}", resource.path(namespace), escaped(name));
        Self::to(method, path, format!("{verb} {}", resource.object(namespace, name)))
    }

    /// Without a body.
    fn to(method: Method, path: String, what: String) -> Self {
        Self {
            method,
            path,
            content_type: JSON,
            body: Vec::new(),
            what,
            limit: REQUEST_LIMIT,
            is_conditional: false,
        }
    }

    /// A merge patch of an object; `rest` is what follows its name in the path.
    fn merging(
        verb: &str,
        rest: &str,
        resource: Resource,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Self {
        let mut call = Self::on(Method::PATCH, verb, resource, namespace, name);
        call.path.push_str(rest);
        (call.content_type, call.body) = (MERGE_PATCH, patch.to_string().into_bytes());
        call.is_conditional = patch.pointer("/metadata/resourceVersion").is_some_and(Value::is_string);
        call
    }

    /// A merge patch that names no version meets a conflict only between writers at that moment, and a creation only one
    /// over a quota; that of a deletion may be its precondition.
    fn conflict_may_pass(&self, error: &ApiError) -> bool {
        let writes_any =
            (self.method == Method::PATCH && !self.is_conditional) || self.method == Method::POST;
        writes_any && error.reason == Reason::Conflict
    }
}

fn absent_as_none(result: Result<Value, ApiError>) -> Result<Option<Value>, ApiError> {
    match result {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.reason == Reason::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

async fn within<T>(
    limit: Duration,
    what: &str,
    work: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
        Err(ApiError::new(what, Reason::TimedOut, format!("no answer within {} s", limit.as_secs())))
    })
}

/// Percent-encoded for a path or a query.
fn escaped(text: &str) -> impl std::fmt::Display {
    const KEPT: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(text, &KEPT)
}
