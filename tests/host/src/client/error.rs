//! Why a call failed, in the words that the server shows to its users.

use std::fmt;

use tonic::{Code, Status};
use velero_plugin::client::{Place, Unanswered};

use crate::go::json::ObjectError;
use crate::session::SessionError;

/// A failed call.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The plugin answered with an error, or the connection broke.
    #[error("{0}")]
    Rpc(RpcError),
    /// There is no process to call.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The object in the reply is none. The server treats it like an error of the plugin.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The server reads the message without looking: servers up to 1.15 die of it, later ones leave the backup as
    /// it is for good.
    #[error("the plugin answered without the message \"progress\": the Velero server stumbles over that")]
    NoProgress,
    /// Version 1 of the kind has no operations.
    #[error(transparent)]
    NotAsync(#[from] velero_plugin::AsyncNotSupported),
    /// What is to be stored can't be read.
    #[error("read what is to be stored: {0}")]
    Source(#[source] std::io::Error),
}

/// A gRPC error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    /// Its code.
    pub code: Code,
    /// Its text.
    pub message: String,
    /// Where in the plugin it arose, if that was told.
    pub place: Option<Place>,
    /// The connection broke, so nothing was answered.
    pub broken: bool,
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Go spells two of the codes in its own way.
        match self.code {
            Code::Cancelled => write!(f, "rpc error: code = Canceled desc = {}", self.message),
            Code::Ok => write!(f, "rpc error: code = OK desc = {}", self.message),
            code => write!(f, "rpc error: code = {code:?} desc = {}", self.message),
        }
    }
}

impl CallError {
    /// Whether the process ended under the call.
    pub(crate) fn is_broken(&self) -> bool {
        matches!(self, Self::Rpc(RpcError { broken: true, .. }))
    }
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        let place = Place::of(&status);
        if let Some(Unanswered { code, message, connection_lost: broken }) = Unanswered::of(&status) {
            return Self::Rpc(RpcError { code, message, place, broken });
        }
        Self::Rpc(RpcError {
            code: status.code(),
            message: status.message().to_owned(),
            place,
            broken: false,
        })
    }
}
