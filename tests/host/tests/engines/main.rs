//! The engines with a cluster in memory and plugins in this process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod backup;
mod delete;
mod golden;
mod scripted;
mod support;
