//! What an action returns when it fails: a text for the user, the place it came from, and a gRPC code.

use std::error::Error as StdError;
use std::fmt;
use std::panic::Location;

use bytes::Bytes;
use prost::Message as _;
use tonic::{Code, Status};

use crate::generated::generated as wire;

/// Kept well under what a gRPC client takes in a header list, together with the copy in the details.
const LONGEST_MESSAGE: usize = 16 * 1024;

/// The error of an action.
///
/// Made by `?` from any error, with its chain of sources joined by ": ", outermost first, and the line of the `?` as
/// its place. What a user sees of it is `rpc error: code = Unknown desc = <text>`.
#[derive(Debug, Clone)]
pub struct Error {
    code: Code,
    message: String,
    place: &'static Location<'static>,
}

/// What an action's methods return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error with this text. Name the object, the reason, and what to do.
    #[track_caller]
    pub fn new(message: impl Into<String>) -> Self {
        Self { code: Code::Unknown, message: message.into(), place: Location::caller() }
    }

    /// From an error in a box, such as `anyhow`'s, which is no [`std::error::Error`] itself.
    #[track_caller]
    pub fn wrap(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let error = error.into();
        Self { code: Code::Unknown, message: chain(error.as_ref()), place: Location::caller() }
    }

    /// The same error with a text before it: "context: error".
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }

    /// The same error with another gRPC code than Unknown. Velero shows the code and acts on none.
    #[must_use]
    pub fn with_code(mut self, code: Code) -> Self {
        // Ok would turn the error into a success without a reply.
        self.code = if code == Code::Ok { Code::Unknown } else { code };
        self
    }

    /// The text.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// As a gRPC status with a `generated.Stack`, from which Velero fills `error.file` and `error.function`.
    pub(crate) fn into_status(self, function: &str) -> Status {
        status(self.code, &self.message, self.place.file(), self.place.line(), function)
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    #[track_caller]
    fn from(error: E) -> Self {
        let error: &(dyn StdError + 'static) = &error;
        let code = error.downcast_ref::<Status>().map_or(Code::Unknown, Status::code);
        let message = error.downcast_ref::<Status>().map_or_else(|| chain(error), |s| s.message().to_owned());
        let code = if code == Code::Ok { Code::Unknown } else { code };
        Self { code, message, place: Location::caller() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Adds what was being done to the error of a result.
pub trait Context<T> {
    /// "context: error".
    ///
    /// # Errors
    ///
    /// The error it had, as an [`Error`].
    fn context(self, context: impl fmt::Display) -> Result<T>;
}

impl<T, E: Into<Error>> Context<T> for std::result::Result<T, E> {
    #[track_caller]
    fn context(self, context: impl fmt::Display) -> Result<T> {
        match self {
            Ok(value) => Ok(value),
            Err(error) => Err(error.into().context(context)),
        }
    }
}

/// The plugin does not know the operation that it was asked about. The text is Velero's own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("operation ID {0} is invalid")]
pub struct InvalidOperationId(pub String);

/// The plugin starts no operations, so it has no progress. The text is Velero's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Plugin does not support asynchronous operations")]
pub struct AsyncNotSupported;

/// An error's text and those of its sources. A source that its parent's text already ends with is not repeated.
pub(crate) fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let part = source.to_string();
        if !text.ends_with(&part) {
            text.push_str(": ");
            text.push_str(&part);
        }
        next = source.source();
    }
    text
}

/// A status whose details hold one stack frame.
pub(crate) fn status(code: Code, message: &str, file: &str, line: u32, function: &str) -> Status {
    let message = shortened(message);
    let frame = wire::StackFrame {
        file: file.to_owned(),
        line: i32::try_from(line).unwrap_or(i32::MAX),
        function: function.to_owned(),
    };
    let stack = wire::Stack { frames: vec![frame] };
    let details = RpcStatus {
        // Must equal the status' own: Go's client takes a mismatch for an internal error.
        code: code as i32,
        message: message.clone(),
        details: vec![prost_types::Any {
            type_url: "type.googleapis.com/generated.Stack".to_owned(),
            value: stack.encode_to_vec(),
        }],
    };
    Status::with_details(code, message, Bytes::from(details.encode_to_vec()))
}

fn shortened(message: &str) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(LONGEST_MESSAGE);
    format!("{}… ({} bytes left out)", &message[..end], message.len() - end)
}

/// `google.rpc.Status`: what the header `grpc-status-details-bin` holds.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RpcStatus {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    #[prost(string, tag = "2")]
    pub(crate) message: String,
    #[prost(message, repeated, tag = "3")]
    pub(crate) details: Vec<prost_types::Any>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("snapshot")]
    struct Outer(#[source] std::io::Error);

    fn fails() -> Result<()> {
        Err(Outer(std::io::Error::other("get PVC a/d")))?;
        Ok(())
    }

    #[test]
    fn an_error_carries_its_chain_and_the_line_of_the_question_mark() {
        let error = fails().unwrap_err();
        assert_eq!(error.message(), "snapshot: get PVC a/d");
        let status = error.into_status("Demo::execute");
        let details = RpcStatus::decode(status.details()).unwrap();
        assert_eq!((details.code, details.message.as_str()), (2, "snapshot: get PVC a/d"));
        assert_eq!(details.details[0].type_url, "type.googleapis.com/generated.Stack");
        let stack = wire::Stack::decode(details.details[0].value.as_slice()).unwrap();
        let frame = &stack.frames[0];
        assert_eq!((frame.file.as_str(), frame.function.as_str()), (file!(), "Demo::execute"));
        assert!(frame.line > 0);
    }

    #[test]
    fn a_status_keeps_its_code_and_text_but_never_becomes_a_success() {
        let error = Error::from(Status::new(Code::FailedPrecondition, "in use"));
        assert_eq!(error.into_status("f").code(), Code::FailedPrecondition);
        assert_eq!(Error::from(Status::ok("")).into_status("f").code(), Code::Unknown);
        assert_eq!(Error::new("x").with_code(Code::Ok).into_status("f").code(), Code::Unknown);
    }

    #[test]
    fn context_goes_before_the_text() {
        let error = fails().context("PVC a/d").unwrap_err();
        assert_eq!(error.to_string(), "PVC a/d: snapshot: get PVC a/d");
    }

    #[test]
    fn a_huge_text_is_cut_at_a_character() {
        let status = Error::new("ä".repeat(40_000)).into_status("f");
        assert!(status.message().len() < 17_000);
        assert!(status.message().ends_with("bytes left out)"));
    }

    #[test]
    fn upstream_texts() {
        assert_eq!(InvalidOperationId("a/b".to_owned()).to_string(), "operation ID a/b is invalid");
        assert_eq!(AsyncNotSupported.to_string(), "Plugin does not support asynchronous operations");
    }
}
