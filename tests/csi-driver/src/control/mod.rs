//! The control API: how a test orders faults and sees what the driver did. HTTP and JSON on loopback.
//!
//! | Request | Answer |
//! |---|---|
//! | `GET /health` | 204 once the driver serves |
//! | `GET /volumes`, `/snapshots`, `/groups` | what exists: [`Volume`], [`SnapshotView`], [`Group`] |
//! | `PUT /snapshots/{id}/ready` with a [`Delay`] | 204; counted from now |
//! | `GET /counters`, `DELETE /counters` | [`Counters`]; set to zero |
//! | `GET /faults` | the orders: [`FaultStatus`] |
//! | `POST /faults` with a [`Fault`] | [`Ordered`] |
//! | `DELETE /faults`, `DELETE /faults/{id}` | 204; hanging calls go on |
//! | `GET /calls`, `GET /calls?method=CreateSnapshot` | the call log: [`Numbered`] [`CallRecord`]s |
//! | `DELETE /calls` | 204; the log is empty |
//!
//! A request that makes no sense gets a 4xx and a [`Problem`].

mod client;
#[cfg(feature = "server")]
mod server;

pub use orders::client::ControlError;
pub use orders::{Numbered, Ordered, Problem};
use serde::{Deserialize, Serialize};

pub use self::client::Client;
#[cfg(feature = "server")]
pub use self::server::router;
pub use crate::call_log::{CallEnd, CallRecord};
pub use crate::code::Code;
pub use crate::fault::{Answer, Cut, Delay, Failure, Fault, FaultStatus};
pub use crate::state::{Counters, Group, Snapshot, Volume};

/// The path of the orders.
const FAULTS: &str = "/faults";

/// A snapshot as it looks at the time of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotView {
    /// What the driver keeps.
    #[serde(flatten)]
    pub snapshot: Snapshot,
    /// What it would report to a sidecar.
    pub ready_to_use: bool,
}

/// The calls that are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CallQuery {
    /// Those of this method only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
}
