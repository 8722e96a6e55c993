//! Asynchronous operations of item actions: their records, and the rules by which they are polled.

mod poll;
mod record;

pub use poll::{Outcome, ProgressSource, poll};
pub use record::{Operation, OperationPhase, Spec, Status};
