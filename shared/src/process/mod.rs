//! The process of a plugin, from its start to its end: go-plugin's protocol around Velero's.

mod args;
mod by_hand;
mod calls;
mod handshake;
mod serve;
mod socket;
mod stderr;
mod stop;

pub use args::HostArgs;
pub(crate) use calls::{Calls, Ended};
pub(crate) use serve::run;
#[cfg(feature = "testing")]
pub(crate) use serve::serve_connection;
pub(crate) use stop::{Stop, StopHandle};
