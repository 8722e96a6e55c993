//! A test's side of the control API.

use std::net::SocketAddr;

use orders::client::{Client as Http, ControlError};

use super::{Count, Numbered, OrderStatus, Ordered, RequestQuery, RequestRecord, Rule};

/// Sets rules and asks what was requested.
#[derive(Debug, Clone)]
pub struct Client {
    http: Http,
}

impl Client {
    /// A client of the proxy that was started with `--control <address>`.
    ///
    /// # Errors
    ///
    /// When the HTTP client can't be set up.
    pub fn new(address: SocketAddr) -> Result<Self, ControlError> {
        Ok(Self { http: Http::new(address)? })
    }

    /// Whether the proxy serves.
    ///
    /// # Errors
    ///
    /// When it does not.
    pub async fn health(&self) -> Result<(), ControlError> {
        self.http.check("/health").await
    }

    /// Adds a rule and answers its id.
    ///
    /// # Errors
    ///
    /// When it makes no sense or the proxy can't be reached.
    pub async fn order(&self, rule: &Rule) -> Result<String, ControlError> {
        Ok(self.http.post::<Ordered>("/rules", rule).await?.id)
    }

    /// The rules and what became of them.
    ///
    /// # Errors
    ///
    /// When the proxy can't be reached.
    pub async fn rules(&self) -> Result<Vec<OrderStatus<Rule>>, ControlError> {
        self.http.get("/rules", &()).await
    }

    /// Removes a rule; requests that hang by it go on.
    ///
    /// # Errors
    ///
    /// When there is no such rule or the proxy can't be reached.
    pub async fn withdraw(&self, id: &str) -> Result<(), ControlError> {
        self.http.delete(&format!("/rules/{id}")).await
    }

    /// Removes all rules; requests that hang go on.
    ///
    /// # Errors
    ///
    /// When the proxy can't be reached.
    pub async fn withdraw_all(&self) -> Result<(), ControlError> {
        self.http.delete("/rules").await
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
