//! Ordered faults. No I/O, no clock.

mod order;
mod table;

pub use self::order::{Answer, Cut, Delay, Failure, Fault, InvalidFault};
pub use self::table::{FaultStatus, FaultTable, Verdict};
