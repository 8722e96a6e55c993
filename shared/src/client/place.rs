//! The place in a plugin's source that an error names, as the server reads it for its log.

use prost::Message as _;

use super::proto::generated::Stack;
use crate::error::RpcStatus;

/// Where an error came from: the first frame of its stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The source file.
    pub file: String,
    /// The line in it.
    pub line: i32,
    /// The function.
    pub function: String,
}

impl Place {
    /// Of a status with a `generated.Stack` in its details; `None` where the plugin sent none, which is allowed.
    pub fn of(status: &tonic::Status) -> Option<Self> {
        let details = RpcStatus::decode(status.details()).ok()?;
        let stack = details.details.iter().find(|any| any.type_url.ends_with("/generated.Stack"))?;
        let frame = Stack::decode(stack.value.as_slice()).ok()?.frames.into_iter().next()?;
        Some(Self { file: frame.file, line: frame.line, function: frame.function })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_that_this_crate_sends_is_read_back() {
        let status = crate::error::status(tonic::Code::Unknown, "boom", "src/a.rs", 7, "A::execute");
        let place = Place { file: "src/a.rs".to_owned(), line: 7, function: "A::execute".to_owned() };
        assert_eq!(Place::of(&status), Some(place));
        assert_eq!(Place::of(&tonic::Status::unknown("boom")), None);
    }
}
