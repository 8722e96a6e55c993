//! The actions against an embedded cluster with the storage controllers simulated: what they do, cost and leave behind.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bed;
mod grouped;
mod restoring;

mod claims;
mod contended;
mod deletions;
mod drivers;
mod group_backups;
mod group_deletions;
mod own_label;
mod policies;
mod polls;
mod process;
mod requests;
mod restores;
mod retained;
mod standalone;
