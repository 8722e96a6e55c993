//! What the stock run shares with the measures: how programs are built once, and found again.
//!
//! Everything else is the program `stock`.

pub mod build;

pub use programs::screen;
pub use velero_host::minor;
