//! A test's side of the control API.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::{Method, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;

use super::{
    CallQuery, CallRecord, Counters, Delay, Fault, FaultStatus, Group, Ordered, Problem, SnapshotView, Volume,
};

/// Orders faults and asks what the driver did.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
}

/// The control API did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No answer, or one that is not of this API.
    #[error("control API of the csi driver can't be reached: {0}")]
    Http(#[from] reqwest::Error),
    /// The driver refused.
    #[error("csi driver refused a request to its control API with {status}: {error}")]
    Refused {
        /// The HTTP status.
        status: StatusCode,
        /// The driver's words.
        error: String,
    },
}

impl Client {
    /// A client of the driver that was started with `--control <address>`.
    ///
    /// # Errors
    ///
    /// When the HTTP client can't be set up.
    pub fn new(address: SocketAddr) -> Result<Self, ControlError> {
        // A call to loopback that takes longer means that the driver is gone.
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build()?;
        Ok(Self { http, base: format!("http://{address}") })
    }

    /// Whether the driver serves.
    ///
    /// # Errors
    ///
    /// When it does not.
    pub async fn health(&self) -> Result<(), ControlError> {
        self.tell(Method::GET, "/health").await
    }

    /// The volumes.
    ///
    /// # Errors
    ///
    /// When the driver can't be reached.
    pub async fn volumes(&self) -> Result<Vec<Volume>, ControlError> {
        self.ask("/volumes").await
    }

    /// The snapshots, those of groups too.
    ///
    /// # Errors
    ///
    /// When the driver can't be reached.
    pub async fn snapshots(&self) -> Result<Vec<SnapshotView>, ControlError> {
        self.ask("/snapshots").await
    }

    /// The group snapshots.
    ///
    /// # Errors
    ///
    /// When the driver can't be reached.
    pub async fn groups(&self) -> Result<Vec<Group>, ControlError> {
        self.ask("/groups").await
    }

    /// Orders when a snapshot is ready, counted from now.
    ///
    /// # Errors
    ///
    /// When there is no such snapshot or the driver can't be reached.
    pub async fn set_readiness(&self, snapshot_id: &str, delay: Delay) -> Result<(), ControlError> {
        let request = self.request(Method::PUT, &format!("/snapshots/{snapshot_id}/ready"));
        send(request.json(&delay)).await.map(drop)
    }

    /// How many objects were created and deleted.
    ///
    /// # Errors
    ///
    /// When the driver can't be reached.
    pub async fn counters(&self) -> Result<Counters, ControlError> {
        self.ask("/counters").await
    }

    /// Sets the counters to zero.
    ///
    /// # Errors
    ///
    /// When the driver can't be reached.
    pub async fn reset_counters(&self) -> Result<(), ControlError> {
        self.tell(Method::DELETE, "/counters").await
    }

    /// Adds an order and answers its id.
    ///
    /// # Errors
    ///
    /// When it makes no sense or the driver can't be reached.
    pub async fn order(&self, fault: &Fault) -> Result<String, ControlError> {
        let answer = send(self.request(Method::POST, "/faults").json(fault)).await?;
        Ok(answer.json::<Ordered>().await?.id)
    }

    /// The orders and what became of them.
    ///
    /// # Errors
    ///
    /// When the driver can't be reached.
    pub async fn faults(&self) -> Result<Vec<FaultStatus>, ControlError> {
        self.ask("/faults").await
    }

    /// Removes an order; calls that hang by it go on.
    ///
    /// # Errors
    ///
    /// When there is no such order or the driver can't be reached.
    pub async fn withdraw(&self, id: &str) -> Result<(), ControlError> {
        self.tell(Method::DELETE, &format!("/faults/{id}")).await
    }

    /// Removes all orders; calls that hang go on.
    ///
    /// # Errors
    ///
    /// When the driver can't be reached.
    pub async fn withdraw_all(&self) -> Result<(), ControlError> {
        self.tell(Method::DELETE, "/faults").await
    }

    /// The calls of all methods, in the order of their arrival.
    ///
    /// # Errors
    ///
    /// When the driver can't be reached.
    pub async fn calls(&self) -> Result<Vec<CallRecord>, ControlError> {
        self.ask("/calls").await
    }

    /// The calls of one method, in the order of their arrival.
    ///
    /// # Errors
    ///
    /// When the driver can't be reached.
    pub async fn calls_of(&self, method: &str) -> Result<Vec<CallRecord>, ControlError> {
        let query = CallQuery { method: Some(method.to_owned()) };
        read(send(self.request(Method::GET, "/calls").query(&query)).await?).await
    }

    /// Empties the call log.
    ///
    /// # Errors
    ///
    /// When the driver can't be reached.
    pub async fn forget_calls(&self) -> Result<(), ControlError> {
        self.tell(Method::DELETE, "/calls").await
    }

    async fn ask<T: DeserializeOwned>(&self, path: &str) -> Result<T, ControlError> {
        read(send(self.request(Method::GET, path)).await?).await
    }

    async fn tell(&self, method: Method, path: &str) -> Result<(), ControlError> {
        send(self.request(method, path)).await.map(drop)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }
}

async fn send(request: RequestBuilder) -> Result<reqwest::Response, ControlError> {
    let answer = request.send().await?;
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    let text = answer.text().await?;
    let error = serde_json::from_str(&text).map_or(text, |problem: Problem| problem.error);
    Err(ControlError::Refused { status, error })
}

async fn read<T: DeserializeOwned>(answer: reqwest::Response) -> Result<T, ControlError> {
    Ok(answer.json().await?)
}
