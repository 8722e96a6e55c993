//! A test's side of the control API.

use std::net::SocketAddr;
use std::ops::Deref;

use orders::client::{Client as Http, ControlError};

use super::{CallQuery, CallRecord, Counters, Delay, FAULTS, Fault, Group, Numbered, SnapshotView, Volume};

/// Orders faults, as every such client orders, and asks what the driver did.
#[derive(Debug, Clone)]
pub struct Client {
    http: Http<Fault>,
}

impl Deref for Client {
    type Target = Http<Fault>;

    fn deref(&self) -> &Http<Fault> {
        &self.http
    }
}

impl Client {
    /// A client of the driver that was started with `--control <address>`.
    ///
    /// # Errors
    ///
    /// When the HTTP client can't be set up.
    pub fn new(address: SocketAddr) -> Result<Self, ControlError> {
        Ok(Self { http: Http::new(address, FAULTS)? })
    }

    /// The volumes.
    ///
    /// # Errors
    ///
    /// When the driver can't be reached.
    pub async fn volumes(&self) -> Result<Vec<Volume>, ControlError> {
        self.http.get("/volumes", &()).await
    }

    /// The snapshots, those of groups too.
    ///
    /// # Errors
    ///
    /// When the driver can't be reached.
    pub async fn snapshots(&self) -> Result<Vec<SnapshotView>, ControlError> {
        self.http.get("/snapshots", &()).await
    }

    /// The group snapshots.
    ///
    /// # Errors
    ///
    /// When the driver can't be reached.
    pub async fn groups(&self) -> Result<Vec<Group>, ControlError> {
        self.http.get("/groups", &()).await
    }

    /// Orders when a snapshot is ready, counted from now.
    ///
    /// # Errors
    ///
    /// When there is no such snapshot or the driver can't be reached.
    pub async fn set_readiness(&self, snapshot_id: &str, delay: Delay) -> Result<(), ControlError> {
        self.http.put(&format!("/snapshots/{snapshot_id}/ready"), &delay).await
    }

    /// How many objects were created and deleted.
    ///
    /// # Errors
    ///
    /// When the driver can't be reached.
    pub async fn counters(&self) -> Result<Counters, ControlError> {
        self.http.get("/counters", &()).await
    }

    /// Sets the counters to zero.
    ///
    /// # Errors
    ///
    /// When the driver can't be reached.
    pub async fn reset_counters(&self) -> Result<(), ControlError> {
        self.http.delete("/counters").await
    }

    /// The calls of all methods, in the order of their arrival.
    ///
    /// # Errors
    ///
    /// When the driver can't be reached.
    pub async fn calls(&self) -> Result<Vec<Numbered<CallRecord>>, ControlError> {
        self.http.get("/calls", &()).await
    }

    /// The calls of one method, in the order of their arrival.
    ///
    /// # Errors
    ///
    /// When the driver can't be reached.
    pub async fn calls_of(&self, method: &str) -> Result<Vec<Numbered<CallRecord>>, ControlError> {
        let query = CallQuery { method: Some(method.to_owned()) };
        self.http.get("/calls", &query).await
    }

    /// Empties the call log.
    ///
    /// # Errors
    ///
    /// When the driver can't be reached.
    pub async fn forget_calls(&self) -> Result<(), ControlError> {
        self.http.delete("/calls").await
    }
}
