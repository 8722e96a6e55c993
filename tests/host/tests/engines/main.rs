//! The engines with a cluster in memory, and plugins in this process or in processes of their own.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod backup;
mod deaths;
mod delete;
mod golden;
mod killing;
mod processes;
mod scripted;
mod support;
