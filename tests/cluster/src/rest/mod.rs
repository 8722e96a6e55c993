//! Requests to answers: routing, verbs, and the form of what comes back.

mod body;
mod discovery;
mod list;
pub(crate) mod path;
pub(crate) mod watch;

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use crate::error::{ApiError, FieldError, Subject};
use crate::kind::Kind;
use crate::object;
use crate::rest::path::{Query, Route, Target};
use crate::rest::watch::Watch;
use crate::rules::apply;
use crate::rules::patch::{self, PatchKind};
use crate::rules::update::Part;
use crate::state::{Deleted, State, key};

/// A request whose body was read.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Query,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
}

/// What is sent back.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A code and a JSON body.
    Json(u16, Value),
    /// Plain text, with code 200.
    Text(&'static str),
    /// A stream of events.
    Watch(Box<Watch>),
}

/// Answers one request. `address` is the server's own, for discovery.
pub(crate) fn answer(state: &mut State, call: &Call, address: &str) -> Result<Answer, ApiError> {
    let found = |value| Ok(Answer::Json(200, value));
    match Route::parse(&call.path)? {
        Route::Version => found(discovery::version()),
        Route::Health => Ok(Answer::Text("ok")),
        Route::Core => found(discovery::core(address)),
        Route::Groups => found(discovery::groups(&state.kinds)),
        Route::Group(name) => found(discovery::group(&state.kinds, &name)?),
        Route::Resources { group, version } => found(discovery::resources(&state.kinds, &group, &version)?),
        Route::Objects(target) => {
            let kind = state.kinds.get(&target.group_resource()).ok_or_else(|| unserved(state, &target))?;
            objects(state, call, kind, target)
        }
    }
}

fn objects(state: &mut State, call: &Call, kind: Arc<Kind>, target: Target) -> Result<Answer, ApiError> {
    let part = served(&kind, &target)?;
    if is_dry_run(call) && call.method != Method::PATCH {
        return Err(ApiError::BadRequest("of this embedded API only a patch can be a dry run".to_owned()));
    }
    let shown = |object: &Value| list::shown(&kind, object, &target.version);
    let key = key(&kind, &target.namespace, &target.name);
    let one = !target.name.is_empty();
    match (call.method.as_str(), one) {
        ("GET", _) if call.query.flag("watch") => {
            let mut query = call.query.clone();
            if one {
                query.select_name(&target.name);
            }
            Ok(Answer::Watch(Box::new(Watch::open(state, kind, target, &query)?)))
        }
        ("GET", true) => Ok(Answer::Json(200, shown(&*state.get(&kind, &key)?))),
        ("GET", false) => Ok(Answer::Json(200, list::list(state, &kind, &target, &call.query)?)),
        ("POST", false) => {
            let object = body::object(&call.body, &kind, &target)?;
            Ok(Answer::Json(201, shown(&*state.create(&kind, &target.namespace, object, part)?)))
        }
        ("PUT", true) => {
            let object = body::object(&call.body, &kind, &target)?;
            state.get(&kind, &key)?;
            if kind.custom && object::resource_version(&object).is_empty() {
                return Err(must_be_versioned(&kind, &target.name));
            }
            Ok(Answer::Json(200, shown(&*state.update(&kind, &key, object, part)?)))
        }
        ("PATCH", true) => patched(state, call, &kind, &target, part),
        ("DELETE", true) if target.subresource.is_empty() => {
            let deleted = state.delete(&kind, &key, &body::preconditions(&call.body)?)?;
            Ok(Answer::Json(
                200,
                match &deleted {
                    Deleted::Held(object) => shown(object),
                    Deleted::Gone(object) if kind.returns_deleted => shown(object),
                    Deleted::Gone(object) => success(&kind, object),
                },
            ))
        }
        ("DELETE", false) => deleted_all(state, call, &kind, &target),
        _ => Err(ApiError::MethodNotAllowed),
    }
}

/// Whether the request is only to be judged.
fn is_dry_run(call: &Call) -> bool {
    !call.query.text("dryRun").is_empty()
}

/// The refusal of a resource that isn't served: groups of built-in types word it as an object.
fn unserved(state: &State, target: &Target) -> ApiError {
    let built_in = |kind: &Arc<Kind>| {
        !kind.custom && kind.resource.group == target.group && kind.versions.contains(&target.version)
    };
    if state.kinds.iter().any(built_in) { ApiError::NoResource } else { ApiError::PageNotFound }
}

/// The part of the object that the path names.
fn served(kind: &Kind, target: &Target) -> Result<Part, ApiError> {
    // A namespaced resource is written inside of its namespace only.
    let placed = if kind.namespaced {
        !target.namespace.is_empty() || target.name.is_empty()
    } else {
        target.namespace.is_empty()
    };
    if !kind.versions.contains(&target.version) || !placed {
        return Err(ApiError::PageNotFound);
    }
    match target.subresource.as_str() {
        "" => Ok(Part::Main),
        "status" if kind.status => Ok(Part::Status),
        _ if kind.custom => Err(ApiError::NotFound(kind.named(&target.name))),
        _ => Err(ApiError::NoResource),
    }
}

fn patched(
    state: &mut State,
    call: &Call,
    kind: &Kind,
    target: &Target,
    part: Part,
) -> Result<Answer, ApiError> {
    let patch = PatchKind::of(&call.content_type, kind)?;
    let key = key(kind, &target.namespace, &target.name);
    let old = state.get(kind, &key);
    let new = match (patch, &old) {
        (PatchKind::Apply, _) => applied(call, kind, target, old.as_ref().ok().map(AsRef::as_ref))?,
        (_, Ok(old)) => {
            let new = patch::patched(old, patch, &call.body)?;
            let name = object::name(&new);
            if name != target.name {
                return Err(ApiError::BadRequest(format!(
                    "the name of the object ({name}) does not match the name on the URL ({})",
                    target.name
                )));
            }
            same_uid(kind, old, &new)?;
            new
        }
        (_, Err(missing)) => return Err(missing.clone()),
    };
    let (code, written) = match old {
        Ok(_) if is_dry_run(call) => (200, Arc::new(state.judged(kind, &key, new, part)?.1)),
        Ok(_) => (200, state.update(kind, &key, new, part)?),
        Err(_) if part == Part::Main && !is_dry_run(call) => {
            (201, state.create(kind, &target.namespace, new, part)?)
        }
        Err(missing) => return Err(missing),
    };
    Ok(Answer::Json(code, list::shown(kind, &written, &target.version)))
}

/// A patch may name the UID of its object, and no other one: that is no precondition, but a change that is not allowed.
fn same_uid(kind: &Kind, old: &Value, new: &Value) -> Result<(), ApiError> {
    let uid = object::uid(new);
    let is_stale = object::resource_version(new) != object::resource_version(old);
    if uid == object::uid(old) || is_stale {
        return Ok(());
    }
    let error = FieldError::invalid("metadata.uid", format!("{uid:?}: field is immutable"));
    // The server says it twice.
    Err(ApiError::Invalid(kind.object(object::name(old)), vec![error.clone(), error]))
}

fn applied(call: &Call, kind: &Kind, target: &Target, old: Option<&Value>) -> Result<Value, ApiError> {
    let manager = call.query.text("fieldManager");
    if manager.is_empty() {
        let subject =
            Subject { group: "meta.k8s.io".to_owned(), kind: "PatchOptions".to_owned(), name: String::new() };
        let error = FieldError::required("fieldManager", "is required for apply patch");
        return Err(ApiError::Invalid(subject, vec![error]));
    }
    let config = body::object(&call.body, kind, target)?;
    if object::name(&config).is_empty() {
        return Err(ApiError::BadRequest(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            target.name
        )));
    }
    apply::applied(old, &config, manager, call.query.flag("force"))
}

/// Deletes all selected objects of a collection; answers with them.
fn deleted_all(state: &mut State, call: &Call, kind: &Kind, target: &Target) -> Result<Answer, ApiError> {
    if kind.namespaced && target.namespace.is_empty() || kind.is("namespaces") {
        return Err(ApiError::MethodNotAllowed);
    }
    let listed = list::list(state, kind, target, &call.query)?;
    for object in listed["items"].as_array().into_iter().flatten() {
        state.delete(
            kind,
            &key(kind, &target.namespace, object::name(object)),
            &body::preconditions(&call.body)?,
        )?;
    }
    Ok(Answer::Json(200, listed))
}

fn success(kind: &Kind, object: &Value) -> Value {
    let mut details = json!({
        "name": object::name(object), "kind": kind.resource.resource, "uid": object::uid(object),
    });
    if !kind.resource.group.is_empty() {
        details["group"] = kind.resource.group.clone().into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

fn must_be_versioned(kind: &Kind, name: &str) -> ApiError {
    let error = FieldError::invalid("metadata.resourceVersion", "0: must be specified for an update");
    ApiError::Invalid(kind.named(name), vec![error])
}
