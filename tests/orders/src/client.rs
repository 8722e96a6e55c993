//! The test's side of a control API: JSON over HTTP.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Problem;

/// A client of one program.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
}

/// The program did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No answer, or one that is not of this API.
    #[error("control API can't be reached: {0}")]
    Http(#[from] reqwest::Error),
    /// The program refused.
    #[error("control API refused a request with {status}: {error}")]
    Refused {
        /// The HTTP status.
        status: StatusCode,
        /// The program's words.
        error: String,
    },
}

impl Client {
    /// A client of the control API at this address.
    ///
    /// # Errors
    ///
    /// When the HTTP client can't be set up.
    pub fn new(address: SocketAddr) -> Result<Self, ControlError> {
        // A call to a neighbouring process that takes longer means that it is gone.
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build()?;
        Ok(Self { http, base: format!("http://{address}") })
    }

    /// Asks for something; `query` holds the fields of the query string.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &impl Serialize,
    ) -> Result<T, ControlError> {
        Ok(send(self.request(Method::GET, path).query(query)).await?.json().await?)
    }

    /// Hands something over, and answers with what it became.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ControlError> {
        Ok(send(self.request(Method::POST, path).json(body)).await?.json().await?)
    }

    /// Sets something.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub async fn put(&self, path: &str, body: &impl Serialize) -> Result<(), ControlError> {
        send(self.request(Method::PUT, path).json(body)).await.map(drop)
    }

    /// Removes something.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub async fn delete(&self, path: &str) -> Result<(), ControlError> {
        send(self.request(Method::DELETE, path)).await.map(drop)
    }

    /// Asks whether something is so.
    ///
    /// # Errors
    ///
    /// When it isn't; see [`ControlError`].
    pub async fn check(&self, path: &str) -> Result<(), ControlError> {
        send(self.request(Method::GET, path)).await.map(drop)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }
}

async fn send(request: RequestBuilder) -> Result<Response, ControlError> {
    let answer = request.send().await?;
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    let text = answer.text().await?;
    let error = serde_json::from_str(&text).map_or(text, |problem: Problem| problem.error);
    Err(ControlError::Refused { status, error })
}
