//! What the stock run shares with the measures: how programs are built once, and found again.
//!
//! Everything else is the program `stock`.

pub mod build;
pub mod minor;
pub mod screen;
