//! A test's side of the control API.

use std::net::SocketAddr;
use std::ops::Deref;

use orders::client::{Client as Http, ControlError};

use super::{Count, Numbered, RULES, RequestQuery, RequestRecord, Rule};

/// Sets rules, as every such client orders, and asks what was requested.
#[derive(Debug, Clone)]
pub struct Client {
    http: Http<Rule>,
}

impl Deref for Client {
    type Target = Http<Rule>;

    fn deref(&self) -> &Http<Rule> {
        &self.http
    }
}

impl Client {
    /// A client of the proxy that was started with `--control <address>`.
    ///
    /// # Errors
    ///
    /// When the HTTP client can't be set up.
    pub fn new(address: SocketAddr) -> Result<Self, ControlError> {
        Ok(Self { http: Http::new(address, RULES)? })
    }

    /// The requests, in the order of their arrival.
    ///
    /// # Errors
    ///
    /// When the proxy can't be reached.
    pub async fn requests(&self, query: &RequestQuery) -> Result<Vec<Numbered<RequestRecord>>, ControlError> {
        self.http.get("/requests", query).await
    }

    /// How many requests each client made.
    ///
    /// # Errors
    ///
    /// When the proxy can't be reached.
    pub async fn counts(&self) -> Result<Vec<Count>, ControlError> {
        self.http.get("/counts", &()).await
    }

    /// Forgets all requests.
    ///
    /// # Errors
    ///
    /// When the proxy can't be reached.
    pub async fn forget_requests(&self) -> Result<(), ControlError> {
        self.http.delete("/requests").await
    }
}
