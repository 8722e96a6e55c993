//! The engines with a cluster in memory and plugins in this process.

mod backup;
mod delete;
mod scripted;
mod support;
