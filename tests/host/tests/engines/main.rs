//! The engines with a cluster in memory and plugins in this process.

mod backup;
mod delete;
mod golden;
mod scripted;
mod support;
