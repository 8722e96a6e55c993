//! The bodies of requests, checked against the path they came to.

use serde_json::Value;

use crate::error::ApiError;
use crate::kind::Kind;
use crate::object::{self, text};
use crate::rest::path::Target;
use crate::state::Preconditions;

/// The object of a POST, PUT or apply.
///
/// # Errors
/// 400 when it isn't JSON, or of another kind, name or namespace than the path says.
pub(crate) fn object(body: &[u8], kind: &Kind, target: &Target) -> Result<Value, ApiError> {
    let refuse = |why: String| Err(ApiError::BadRequest(why));
    let shown = String::from_utf8_lossy(body);
    let unrecognized = format!("the object provided is unrecognized (must be of type {})", kind.kind);
    let object: Value = match serde_json::from_slice(body) {
        Ok(object @ Value::Object(_)) => object,
        Ok(_) => return refuse(format!("{unrecognized}: not an object ({})", cut(&shown))),
        Err(error) => {
            return refuse(format!(
                "{unrecognized}: couldn't get version/kind; json parse error: {error} ({})",
                cut(&shown)
            ));
        }
    };
    let (given, version) = (text(&object, "/kind"), text(&object, "/apiVersion"));
    if given.is_empty() && kind.custom {
        return refuse(format!("{unrecognized}: Object 'Kind' is missing in '{shown}' ({})", cut(&shown)));
    }
    let expected = kind.api_version_in(&target.version);
    if !given.is_empty() && (given != kind.kind || version != expected) {
        return refuse(format!(
            "{given} in version {version:?} cannot be handled as a {}: expected apiVersion {expected:?}",
            kind.kind
        ));
    }
    let (name, namespace) = (object::name(&object), object::namespace(&object));
    if !target.name.is_empty() && !name.is_empty() && name != target.name {
        return refuse(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        ));
    }
    if kind.namespaced && !namespace.is_empty() && namespace != target.namespace {
        return refuse(
            "the namespace of the provided object does not match the namespace sent on the request"
                .to_owned(),
        );
    }
    Ok(object)
}

/// What a DELETE asks for beside the deletion.
///
/// # Errors
/// 400 when there is a body that isn't JSON.
pub(crate) fn preconditions(body: &[u8]) -> Result<Preconditions, ApiError> {
    if body.is_empty() {
        return Ok(Preconditions::default());
    }
    let options: Value =
        serde_json::from_slice(body).map_err(|error| ApiError::BadRequest(error.to_string()))?;
    let field = |pointer: &str| options.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    Ok(Preconditions {
        uid: field("/preconditions/uid"),
        resource_version: field("/preconditions/resourceVersion"),
    })
}

/// Bodies are quoted in errors by their beginning.
fn cut(text: &str) -> String {
    if text.len() <= 32 {
        text.to_owned()
    } else {
        format!("{} ...", text.chars().take(32).collect::<String>())
    }
}
