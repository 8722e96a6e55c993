//! The API server behind the proxy.

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName};
use http::{Request, Response, Uri, request, uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::ConfigExt as _;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, ServiceExt as _};

type Http = BoxCloneSyncService<Request<Full<Bytes>>, Response<Incoming>, BoxError>;

/// An API server and how to reach it.
///
/// A request that carries an Authorization header is passed on with it, so that each client keeps its own rights.
/// One without gets the credentials of the proxy's kubeconfig.
#[derive(Debug)]
pub struct Upstream {
    base: Uri,
    /// Connections with the kubeconfig's credentials.
    own: Http,
    /// Connections without them: the API server would prefer a certificate to the client's header.
    bare: Http,
    kubeconfig: Option<Kubeconfig>,
}

/// The API server can't be used.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The kubeconfig is wrong.
    #[error("kubeconfig of the API server can't be used: {0}")]
    Kubeconfig(#[from] KubeconfigError),
    /// The certificates or the credentials are wrong.
    #[error("certificates or credentials in the kubeconfig can't be used: {0}")]
    Credentials(#[source] Box<kube::Error>),
    /// The address is wrong.
    #[error("API server {0:?} is no address, use http://host:port")]
    Address(String),
}

/// A request did not get an answer.
#[derive(Debug, thiserror::Error)]
#[error("API server gave no answer: {source}{}", cause(&**source))]
pub struct NoAnswer {
    #[from]
    source: BoxError,
}

/// The reason of the reason, which is the one that tells something.
fn cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(String::new, |source| format!(": {source}{}", cause(source)))
}

impl Upstream {
    /// An API server without TLS and credentials.
    ///
    /// # Errors
    ///
    /// When `server` is no address.
    pub fn plain(server: &str) -> Result<Self, UpstreamError> {
        let base: Uri = server.parse().map_err(|_| UpstreamError::Address(server.to_owned()))?;
        if base.scheme_str() != Some("http") {
            return Err(UpstreamError::Address(server.to_owned()));
        }
        let mut config = Config::new(base);
        // Spares the search for the machine's root certificates; there is no TLS.
        config.accept_invalid_certs = true;
        Self::new(&config, None)
    }

    /// The API server of a kubeconfig's current context.
    ///
    /// # Errors
    ///
    /// When the file's content can't be used, or the program that gives its credentials fails.
    pub async fn from_kubeconfig(kubeconfig: Kubeconfig) -> Result<Self, UpstreamError> {
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &options).await?;
        Self::new(&config, Some(kubeconfig))
    }

    fn new(config: &Config, kubeconfig: Option<Kubeconfig>) -> Result<Self, UpstreamError> {
        let mut bare = config.clone();
        bare.auth_info = kube::config::AuthInfo::default();
        Ok(Self { base: config.cluster_url.clone(), own: http(config)?, bare: http(&bare)?, kubeconfig })
    }

    /// The kubeconfig that it was made from.
    pub fn kubeconfig(&self) -> Option<&Kubeconfig> {
        self.kubeconfig.as_ref()
    }

    /// Passes a request on.
    ///
    /// # Errors
    ///
    /// When there is no answer.
    pub async fn send(&self, mut parts: request::Parts, body: Bytes) -> Result<Response<Incoming>, NoAnswer> {
        strip_connection_headers(&mut parts.headers);
        parts.headers.remove(HOST);
        parts.uri = self.locate(&parts.uri);
        let http = if parts.headers.contains_key(AUTHORIZATION) { &self.bare } else { &self.own };
        let mut response = http.clone().oneshot(Request::from_parts(parts, Full::new(body))).await?;
        strip_connection_headers(response.headers_mut());
        Ok(response)
    }

    fn locate(&self, asked: &Uri) -> Uri {
        let mut parts = uri::Parts::default();
        parts.scheme = self.base.scheme().cloned();
        parts.authority = self.base.authority().cloned();
        let query = asked.path_and_query().map_or("/", |path| path.as_str());
        let path = format!("{}{query}", self.base.path().trim_end_matches('/'));
        parts.path_and_query = path.parse().ok();
        // Never fails: both halves were parts of an address before.
        Uri::from_parts(parts).unwrap_or_else(|_| self.base.clone())
    }
}

/// Connections with the credentials of `config`, renewed when their time is over.
fn http(config: &Config) -> Result<Http, UpstreamError> {
    let wrong = |error| UpstreamError::Credentials(Box::new(error));
    let connector = config.rustls_https_connector().map_err(wrong)?;
    let service = ServiceBuilder::new()
        .option_layer(config.auth_layer().map_err(wrong)?)
        .map_err(BoxError::from)
        .service(Client::builder(TokioExecutor::new()).build(connector));
    Ok(BoxCloneSyncService::new(service))
}

/// Removes what is between two neighbours only (RFC 9110, 7.6.1).
fn strip_connection_headers(headers: &mut HeaderMap) {
    const NAMES: [&str; 8] = [
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "http2-settings",
    ];
    for name in NAMES {
        headers.remove(HeaderName::from_static(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_located_under_the_servers_address() {
        for (base, asked, expected) in [
            ("http://h:1", "/api/v1/pods?limit=5", "http://h:1/api/v1/pods?limit=5"),
            ("http://h:1/", "/", "http://h:1/"),
            ("http://h:1/k8s/c1/", "/api", "http://h:1/k8s/c1/api"),
        ] {
            let upstream = Upstream::plain(base).expect("address");
            assert_eq!(upstream.locate(&asked.parse().expect("uri")), *expected);
        }
    }

    #[test]
    fn a_server_without_a_scheme_is_refused() {
        for server in ["localhost:1", "https://h:1", "", "h"] {
            assert!(matches!(Upstream::plain(server), Err(UpstreamError::Address(_))), "{server}");
        }
    }
}
