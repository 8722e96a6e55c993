//! Plain HTTP to the components on loopback that have no client of their own.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use reqwest::{Client, Method};

/// A client of one server.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    base: String,
    client: Client,
}

impl Http {
    /// A client of the server on a port of 127.0.0.1.
    pub(crate) fn to(port: u16) -> Result<Self> {
        let client = Client::builder().no_proxy().timeout(Duration::from_secs(10)).build()?;
        Ok(Self { base: format!("http://127.0.0.1:{port}"), client })
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Vec<u8>> {
        self.send(Method::GET, path).await
    }

    pub(crate) async fn put(&self, path: &str) -> Result<()> {
        self.send(Method::PUT, path).await.map(drop)
    }

    /// Whether the server answers with a success.
    pub(crate) async fn answers(&self, path: &str) -> bool {
        self.get(path).await.is_ok()
    }

    async fn send(&self, method: Method, path: &str) -> Result<Vec<u8>> {
        let url = format!("{}{path}", self.base);
        // moto lets nobody read what is not signed, and believes any signature.
        let request = self.client.request(method.clone(), &url).header("authorization", "AWS stock:stock");
        let response = request.send().await;
        let response = response.with_context(|| format!("{method} {url} failed"))?;
        let status = response.status();
        let body = response.bytes().await.with_context(|| format!("{method} {url} was cut off"))?;
        ensure!(status.is_success(), "{method} {url} answers {status}: {}", String::from_utf8_lossy(&body));
        Ok(body.to_vec())
    }
}
