//! Ordered faults: which calls they select and what they do to them. No I/O, no clock.

mod order;
mod verdict;

pub use orders::{Cut, Failure};

pub use self::order::{Answer, Delay, Fault, InvalidFault};
pub use self::verdict::Verdict;

/// An order and what became of it.
pub type FaultStatus = orders::OrderStatus<Fault>;
