//! Why a request is refused: the `Status` bodies of a Kubernetes API server, word for word.

use std::fmt;

use serde_json::{Map, Value, json};

/// What an error is about: a resource (`volumesnapshots`) or a kind (`VolumeSnapshot`) of a group, and a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural or the kind, whichever the server uses in this text.
    pub kind: String,
    /// The object's name; empty when it has none.
    pub name: String,
}

impl fmt::Display for Subject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.kind)?;
        if !self.group.is_empty() {
            write!(out, ".{}", self.group)?;
        }
        write!(out, " \"{}\"", self.name)
    }
}

/// One reason why an object is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The machine-readable reason, e.g. `FieldValueInvalid`.
    pub reason: &'static str,
    /// The path of the field, e.g. `spec.source`.
    pub field: String,
    /// What is wrong, e.g. `Required value`.
    pub message: String,
}

impl FieldError {
    /// A value that is there but wrong.
    pub(crate) fn invalid(field: &str, message: impl fmt::Display) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {message}"))
    }

    /// A value that is missing.
    pub(crate) fn required(field: &str, message: &str) -> Self {
        let message = if message.is_empty() { String::new() } else { format!(": {message}") };
        Self::new("FieldValueRequired", field, format!("Required value{message}"))
    }

    /// A change that is not allowed.
    pub(crate) fn forbidden(field: &str, message: impl fmt::Display) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {message}"))
    }

    /// A value outside of an enumeration.
    pub(crate) fn unsupported(field: &str, value: &str, supported: &[&str]) -> Self {
        let supported = supported.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        let message = format!("Unsupported value: {value:?}: supported values: {supported}");
        Self::new("FieldValueNotSupported", field, message)
    }

    pub(crate) fn new(reason: &'static str, field: &str, message: String) -> Self {
        Self { reason, field: field.to_owned(), message }
    }

    fn cause(&self) -> Value {
        json!({"reason": self.reason, "message": self.message, "field": self.field})
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.field, self.message)
    }
}

/// A refusal. Its text is the server's `message`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// No object of that name.
    #[error("{0} not found")]
    NotFound(Subject),
    /// The name is taken.
    #[error("{0} already exists")]
    AlreadyExists(Subject),
    /// The object is not the one that the caller knows.
    #[error("Operation cannot be fulfilled on {0}: {1}")]
    Conflict(Subject, String),
    /// Server-side apply would take fields from other managers.
    #[error("Apply failed with {} conflict{}: {}", .0.len(), if .0.len() == 1 { "" } else { "s" }, sentence(.0))]
    ApplyConflict(Vec<FieldError>),
    /// The object breaks a rule of its kind.
    #[error("{0} is invalid: {list}", list = listed(.1))]
    Invalid(Subject, Vec<FieldError>),
    /// The namespace is on its way out.
    #[error("{0} is forbidden: unable to create new content in namespace {1} because it is being terminated")]
    NamespaceTerminating(Subject, String),
    /// A request that cannot be understood.
    #[error("{0}")]
    BadRequest(String),
    /// What the server answers with code 500 and no reason, e.g. a resource version on a new object.
    #[error("{0}")]
    Internal(String),
    /// A resource version or continue token from before the kept history.
    #[error("{0}")]
    Expired(String),
    /// A resource version that is not reached yet.
    #[error("Timeout: Too large resource version: {asked}, current: {current}")]
    FutureVersion {
        /// What the client asked for.
        asked: u64,
        /// What the server is at.
        current: u64,
    },
    /// A patch that doesn't fit the object, e.g. a failed `test`.
    #[error("the server rejected our request due to an error in our request")]
    PatchRejected,
    /// A verb that the resource doesn't have.
    #[error("the server does not allow this method on the requested resource")]
    MethodNotAllowed,
    /// A body in a format that a custom resource doesn't take; the accepted ones.
    #[error(
        "the body of the request was in an unknown format - accepted media types include: {}", .0.join(", ")
    )]
    UnknownFormat(&'static [&'static str]),
    /// A body in a format that a built-in resource doesn't take.
    #[error("415: Unsupported Media Type")]
    UnsupportedMediaType,
    /// No token, or a wrong one.
    #[error("Unauthorized")]
    Unauthorized,
    /// A resource or subresource that a group of built-in types doesn't have.
    #[error("the server could not find the requested resource")]
    NoResource,
    /// A path that nothing is served at; answered as plain text.
    #[error("404 page not found")]
    PageNotFound,
}

impl ApiError {
    /// The HTTP status code.
    pub fn code(&self) -> u16 {
        match self {
            Self::BadRequest(_) => 400,
            Self::Unauthorized => 401,
            Self::NamespaceTerminating(..) => 403,
            Self::NotFound(_) | Self::NoResource | Self::PageNotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::AlreadyExists(_) | Self::Conflict(..) | Self::ApplyConflict(_) => 409,
            Self::Expired(_) => 410,
            Self::UnknownFormat(_) | Self::UnsupportedMediaType => 415,
            Self::Invalid(..) | Self::PatchRejected => 422,
            Self::Internal(_) => 500,
            Self::FutureVersion { .. } => 504,
        }
    }

    /// The machine-readable reason; the server gives none for [`Internal`](Self::Internal).
    pub fn reason(&self) -> &'static str {
        match self {
            Self::BadRequest(_) => "BadRequest",
            Self::Unauthorized => "Unauthorized",
            Self::NamespaceTerminating(..) => "Forbidden",
            Self::NotFound(_) | Self::NoResource | Self::PageNotFound => "NotFound",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::AlreadyExists(_) => "AlreadyExists",
            Self::Conflict(..) | Self::ApplyConflict(_) => "Conflict",
            Self::Expired(_) => "Expired",
            Self::UnknownFormat(_) | Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::Invalid(..) | Self::PatchRejected => "Invalid",
            Self::Internal(_) => "",
            Self::FutureVersion { .. } => "Timeout",
        }
    }

    /// The body of the answer.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {},
            "status": "Failure", "message": self.to_string(), "code": self.code(),
        });
        if !self.reason().is_empty() {
            status["reason"] = self.reason().into();
        }
        if let Some(details) = self.details() {
            status["details"] = details;
        }
        status
    }

    fn details(&self) -> Option<Value> {
        match self {
            Self::NotFound(subject) | Self::AlreadyExists(subject) | Self::Conflict(subject, _) => {
                Some(Value::Object(named(subject)))
            }
            Self::Invalid(subject, errors) => {
                let mut details = named(subject);
                details.insert("causes".to_owned(), errors.iter().map(FieldError::cause).collect());
                Some(Value::Object(details))
            }
            Self::ApplyConflict(errors) => {
                Some(json!({"causes": errors.iter().map(FieldError::cause).collect::<Value>()}))
            }
            Self::NamespaceTerminating(subject, namespace) => {
                let mut details = named(subject);
                let cause = FieldError::new(
                    "NamespaceTerminating",
                    "metadata.namespace",
                    format!("namespace {namespace} is being terminated"),
                );
                details.insert("causes".to_owned(), json!([cause.cause()]));
                Some(Value::Object(details))
            }
            Self::FutureVersion { .. } => Some(json!({
                "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
                "retryAfterSeconds": 1,
            })),
            Self::PatchRejected | Self::MethodNotAllowed | Self::NoResource | Self::UnsupportedMediaType => {
                Some(json!({}))
            }
            _ => None,
        }
    }
}

fn named(subject: &Subject) -> Map<String, Value> {
    let mut details = Map::new();
    for (key, value) in [("name", &subject.name), ("group", &subject.group), ("kind", &subject.kind)] {
        if !value.is_empty() {
            details.insert(key.to_owned(), value.as_str().into());
        }
    }
    details
}

/// One error as it is, several in brackets.
fn listed(errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.dedup();
    if texts.len() == 1 { texts.concat() } else { format!("[{}]", texts.join(", ")) }
}

fn sentence(conflicts: &[FieldError]) -> String {
    match conflicts {
        [only] => format!("{}: {}", only.message, only.field),
        several => {
            let lines = several.iter().map(|conflict| format!("- {}", conflict.field)).collect::<Vec<_>>();
            format!("conflicts\n{}", lines.join("\n"))
        }
    }
}
