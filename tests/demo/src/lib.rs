//! What every way to run the demo shares: the shop that is backed up, what is shown, and what must be so.
//!
//! The program `demo` runs the story with `velero-host` on an embedded cluster or on one of the user's; the program
//! `stock` runs it on a real Velero server.
#![expect(clippy::print_stdout, reason = "it shows things at a terminal")]

pub mod checks;
pub mod report;
pub mod shop;
pub mod show;
