//! Plays the Velero server towards a plugin, in any language.

pub mod client;
pub mod event;
pub mod go;
pub mod log;
pub mod minor;
pub mod operation;
pub mod phase;
pub mod registry;
pub mod session;
