//! Rules and log of a proxy in a process of its own. HTTP and JSON.
//!
//! | Request | Answer |
//! |---|---|
//! | `GET /health` | 204 once the proxy serves |
//! | `GET /rules` | the rules: [`OrderStatus`] of [`Rule`] |
//! | `POST /rules` with a [`Rule`] | [`Ordered`] |
//! | `DELETE /rules`, `DELETE /rules/{id}` | 204; hanging requests go on |
//! | `GET /requests` with any of [`RequestQuery`] | the log: [`Numbered`] [`RequestRecord`]s |
//! | `GET /counts` | how many requests each client made: [`Count`] |
//! | `DELETE /requests` | 204; the log is empty |
//!
//! A request that makes no sense gets a 4xx and a [`Problem`].

mod client;
mod server;

pub use orders::client::ControlError;
pub use orders::{Numbered, OrderStatus, Ordered, Problem};
use serde::{Deserialize, Serialize};

pub use self::client::Client;
pub use self::server::router;
pub use crate::record::{Count, RequestRecord};
pub use crate::rules::Rule;

/// The path of the rules.
const RULES: &str = "/rules";

/// Which requests are asked for; what is absent lets all through.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestQuery {
    /// Those of this listener.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Those with this verb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verb: Option<String>,
    /// Those about this resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
}

impl RequestQuery {
    fn wants(&self, record: &RequestRecord) -> bool {
        let same =
            |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|wanted| wanted == value);
        same(&self.client, &record.client)
            && same(&self.verb, &record.info.verb)
            && same(&self.resource, &record.info.resource)
    }
}
