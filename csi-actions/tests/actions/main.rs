//! The actions against an embedded cluster with the storage controllers simulated: what they do, cost and leave behind.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bed;
mod grouped;
mod restoring;

mod claims;
mod classes;
mod contended;
mod deletions;
mod doctor;
mod drivers;
mod events;
mod group_backups;
mod group_deletions;
mod group_leftovers;
mod hidden;
mod leftovers;
mod operations;
mod own_label;
mod policies;
mod polls;
mod process;
mod requests;
mod restores;
mod retained;
mod standalone;
