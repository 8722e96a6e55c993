//! Lists: selected, cut into pages.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::error::ApiError;
use crate::kind::Kind;
use crate::object;
use crate::rest::path::{Query, Target};
use crate::rules::selector::Selector;
use crate::state::State;
use crate::store::Key;

/// Where a paged list goes on: the revision of the first page and the key to start at.
#[derive(Debug, PartialEq, Eq)]
struct Continue {
    revision: u64,
    namespace: String,
    name: String,
}

/// The answer to a GET of a collection.
pub(crate) fn list(state: &State, kind: &Kind, target: &Target, query: &Query) -> Result<Value, ApiError> {
    let selector = Selector::parse(query.text("labelSelector"), query.text("fieldSelector"), kind)?;
    let mut revision = state.store.revision();
    if let Some(asked) = query.number("resourceVersion")?.filter(|asked| *asked > revision) {
        return Err(ApiError::FutureVersion { asked, current: revision });
    }
    let start = match query.text("continue") {
        "" => None,
        token => Some(Continue::parse(token)?),
    };
    if let Some(start) = &start {
        if state.store.changes_after(start.revision).is_err() {
            return Err(ApiError::Expired(
                "The provided continue parameter is too old to display a consistent list result. You must start a \
                 new list without the continue parameter."
                    .to_owned(),
            ));
        }
        revision = start.revision;
    }
    let after = |key: &Key| {
        start.as_ref().is_none_or(|start| (&key.namespace, &key.name) >= (&start.namespace, &start.name))
    };
    let mut found = state
        .store
        .list(&kind.resource, &target.namespace)
        .filter(|(key, object)| after(key) && selector.matches(object));
    let limit = usize::try_from(query.number("limit")?.unwrap_or_default()).unwrap_or(usize::MAX);
    let page: Vec<(&Key, &Arc<Value>)> =
        if limit == 0 { found.by_ref().collect() } else { found.by_ref().take(limit).collect() };

    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if let Some((key, _)) = found.next() {
        let next = Continue { revision, namespace: key.namespace.clone(), name: key.name.clone() };
        metadata["continue"] = next.to_string().into();
        if selector.is_empty() {
            metadata["remainingItemCount"] = (1 + found.count()).into();
        }
    }
    let items = page.into_iter().map(|(_, object)| item(kind, object, &target.version));
    Ok(json!({
        "kind": format!("{}List", kind.kind), "apiVersion": kind.api_version_in(&target.version),
        "metadata": metadata, "items": items.collect::<Value>(),
    }))
}

/// An object of a list: built-in kinds leave out what the list says already.
fn item(kind: &Kind, object: &Value, version: &str) -> Value {
    let mut object = shown(kind, object, version);
    if !kind.custom {
        for field in ["apiVersion", "kind"] {
            object::set_field(&mut object, field, None);
        }
    }
    object
}

/// The object in the version that was asked for.
pub(crate) fn shown(kind: &Kind, object: &Value, version: &str) -> Value {
    let mut object = object.clone();
    object::set_field(&mut object, "apiVersion", Some(kind.api_version_in(version).into()));
    object
}

impl Continue {
    fn parse(token: &str) -> Result<Self, ApiError> {
        let parsed = token.split_once('.').and_then(|(revision, key)| {
            let (namespace, name) = key.split_once('/')?;
            let revision = revision.parse().ok()?;
            Some(Self { revision, namespace: namespace.to_owned(), name: name.to_owned() })
        });
        parsed.ok_or_else(|| {
            ApiError::BadRequest("invalid continue token: continue key is not valid: no key in it".to_owned())
        })
    }
}

impl std::fmt::Display for Continue {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}.{}/{}", self.revision, self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_comes_back_as_it_was() {
        let token = Continue { revision: 7, namespace: "a.b".to_owned(), name: "x".to_owned() };
        assert_eq!(Continue::parse(&token.to_string()), Ok(token));
        for bad in ["", "7", "x.a/b", "7.ab"] {
            assert_eq!(Continue::parse(bad).unwrap_err().code(), 400, "{bad}");
        }
    }
}
