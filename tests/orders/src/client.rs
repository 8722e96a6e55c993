//! The test's side of a control API: JSON over HTTP.

use std::marker::PhantomData;
use std::net::SocketAddr;
use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{OrderStatus, Ordered, Problem};

/// A client of one program, which takes orders of the type `O`.
#[derive(Debug, Clone)]
pub struct Client<O> {
    http: reqwest::Client,
    base: String,
    /// The path of the orders.
    path: &'static str,
    orders: PhantomData<fn() -> O>,
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

impl<O: Serialize + DeserializeOwned> Client<O> {
    /// A client of the control API at this address, which has its orders at `path`.
    ///
    /// # Errors
    ///
    /// When the HTTP client can't be set up.
    pub fn new(address: SocketAddr, path: &'static str) -> Result<Self, ControlError> {
        // A call to a neighbouring process that takes longer means that it is gone.
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build()?;
        Ok(Self { http, base: format!("http://{address}"), path, orders: PhantomData })
    }

    /// Whether the program serves.
    ///
    /// # Errors
    ///
    /// When it does not.
    pub async fn health(&self) -> Result<(), ControlError> {
        send(self.request(Method::GET, "/health")).await.map(drop)
    }

    /// Adds an order and answers its id.
    ///
    /// # Errors
    ///
    /// When it makes no sense or the program can't be reached.
    pub async fn order(&self, order: &O) -> Result<String, ControlError> {
        let added = send(self.request(Method::POST, self.path).json(order)).await?;
        Ok(added.json::<Ordered>().await?.id)
    }

    /// The orders and what became of them.
    ///
    /// # Errors
    ///
    /// When the program can't be reached.
    pub async fn orders(&self) -> Result<Vec<OrderStatus<O>>, ControlError> {
        self.get(self.path, &()).await
    }

    /// Removes an order; calls that hang by it go on.
    ///
    /// # Errors
    ///
    /// When there is no such order or the program can't be reached.
    pub async fn withdraw(&self, id: &str) -> Result<(), ControlError> {
        self.delete(&format!("{}/{id}", self.path)).await
    }

    /// Removes all orders; calls that hang go on.
    ///
    /// # Errors
    ///
    /// When the program can't be reached.
    pub async fn withdraw_all(&self) -> Result<(), ControlError> {
        self.delete(self.path).await
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
