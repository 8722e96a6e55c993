//! What was called, when, for what and with which outcome.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::state::Parameters;

/// One call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The method, without its service.
    pub method: String,
    /// The ids and names of the object that it was about; those that it got by the call too.
    pub names: Vec<String>,
    /// The ids and names of the volumes that it was about.
    pub volumes: Vec<String>,
    /// The parameters in the request.
    pub parameters: Parameters,
    /// The keys of the secrets in the request.
    pub secrets: Vec<String>,
    /// The faults that hit it.
    pub faults: Vec<String>,
    /// When it arrived.
    pub started: Timestamp,
    /// How it ended; absent while it runs.
    pub end: Option<CallEnd>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallEnd {
    /// When.
    pub at: Timestamp,
    /// The code of the answer; `CANCELLED` when the caller went away before.
    pub code: Code,
    /// The text of an error.
    pub message: String,
    /// Whether the call was carried out; true with an error is a fault after the effect.
    pub effect: bool,
}
