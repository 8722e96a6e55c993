//! A CSI driver for tests: volumes and snapshots are directories, and faults can be ordered while it runs.
//!
//! The real sidecars (external-provisioner, external-snapshotter) drive it over a unix socket; a test drives
//! it over the [control API](control), with [`control::Client`]. It obeys the CSI specification where no fault
//! is ordered: csi-sanity passes on its identity, controller and group controller services.
//!
//! | Module | What it holds |
//! |---|---|
//! | [`state`] | volumes, snapshots and groups and every rule about them: pure |
//! | [`fault`] | which ordered faults hit a call, and what they do to it: pure |
//! | `store` | the state directory |
//! | `driver` | one call from its arrival to its answer: fault, effect, log |
//! | [`control`] | orders and observations over HTTP and JSON |

pub mod call_log;
pub mod code;
pub mod control;
#[cfg(feature = "server")]
pub mod driver;
pub mod fault;
#[cfg(feature = "server")]
mod mount;
#[cfg(feature = "server")]
pub mod rpc;
#[cfg(feature = "server")]
pub mod server;
pub mod state;
#[cfg(feature = "server")]
pub mod store;

/// The messages and services of the CSI protocol.
#[allow(missing_docs, clippy::pedantic)]
pub mod csi {
    include!("generated/csi.v1.rs");
}
