//! The progress of an operation as the server reads it from a reply.

use serde::Serialize;
use velero_plugin::client::proto::generated as wire;

use super::error::CallError;
use crate::go::time::Time;

/// How far an operation is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names of the protocol")]
pub struct Progress {
    pub completed: bool,
    /// Counts only with `completed`.
    pub err: String,
    pub n_completed: i64,
    pub n_total: i64,
    pub operation_units: String,
    pub description: String,
    pub started: Option<Time>,
    pub updated: Option<Time>,
}

impl Progress {
    pub(crate) fn from_wire(wire: Option<wire::OperationProgress>) -> Result<Self, CallError> {
        let wire = wire.ok_or(CallError::NoProgress)?;
        Ok(Self {
            completed: wire.completed,
            err: wire.err,
            n_completed: wire.n_completed,
            n_total: wire.n_total,
            operation_units: wire.operation_units,
            description: wire.description,
            started: Time::of_wire(wire.started),
            updated: Time::of_wire(wire.updated),
        })
    }
}
