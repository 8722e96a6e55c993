//! What tests order from the programs around Velero: counted faults, call logs, and the HTTP API to reach both.
//!
//! A program that stands in for a part of the real world (a CSI driver, a proxy before the Kubernetes API)
//! defines what an order selects and does; this crate counts the orders, keeps the log and carries both over HTTP.
//!
//! | Feature | What it adds |
//! |---|---|
//! | `client` | [`client::Client`]: orders and other JSON requests to a control API |
//! | `server` | [`server::router`]: the program's side of the orders, and [`server::Refused`] for the rest |
//! | `live` | [`live::Orders`]: a table that tasks share and wait on |

#[cfg(feature = "client")]
pub mod client;
mod failure;
#[cfg(feature = "live")]
pub mod live;
mod log;
mod order;
mod pattern;
#[cfg(feature = "server")]
pub mod server;
mod table;

use serde::{Deserialize, Serialize};

pub use self::failure::{Cut, Failure, First};
pub use self::log::{Log, Numbered};
pub use self::order::Order;
pub use self::pattern::Pattern;
pub use self::table::{OrderStatus, OrderTable};

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
