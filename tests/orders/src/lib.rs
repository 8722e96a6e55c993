//! What tests order from the programs around Velero: counted faults, call logs, and the HTTP API to reach both.
//!
//! A program that stands in for a part of the real world (a CSI driver, a proxy before the Kubernetes API)
//! defines what an order selects and does; this crate counts the orders, keeps the log and carries both over HTTP.
//!
//! | Feature | What it adds |
//! |---|---|
//! | `client` | [`client::Client`]: JSON requests to a control API |
//! | `server` | [`server::Refused`]: its refusals |
//! | `live` | [`live::Orders`]: a table that tasks share and wait on |

#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "live")]
pub mod live;
mod log;
mod pattern;
#[cfg(feature = "server")]
pub mod server;
mod table;

use serde::{Deserialize, Serialize};

pub use self::log::{Log, Numbered};
pub use self::pattern::Pattern;
pub use self::table::{Order, OrderStatus, OrderTable};

/// On which side of its effect a call is cut off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// Nothing was done.
    #[default]
    BeforeEffect,
    /// All was done, and the caller doesn't learn it.
    AfterEffect,
}

/// The answer to a new order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ordered {
    /// The order's id.
    pub id: String,
}

/// Why a control API did not grant a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// A sentence.
    pub error: String,
}

/// A duration in whole milliseconds, as orders carry it.
pub fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
