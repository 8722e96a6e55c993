//! The API server behind the proxy.

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Response, Uri, request, uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::ConfigExt as _;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use secrecy::ExposeSecret as _;

type Http = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// An API server and how to reach it.
///
/// A request that carries an Authorization header is passed on with it, so that each client keeps its own rights.
/// One without gets the credentials of the proxy's kubeconfig.
#[derive(Debug)]
pub struct Upstream {
    base: Uri,
    token: Option<HeaderValue>,
    /// Connections that show the kubeconfig's client certificate.
    own: Http,
    /// Connections without it: the API server would prefer it to the client's header.
    bare: Http,
    kubeconfig: Option<Kubeconfig>,
}

/// The API server can't be used.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The kubeconfig is wrong.
    #[error("kubeconfig of the API server can't be used: {0}")]
    Kubeconfig(#[from] KubeconfigError),
    /// The certificates are wrong.
    #[error("certificates of the API server can't be used: {0}")]
    Tls(#[source] Box<kube::Error>),
    /// The credentials can't be used.
    #[error("credentials in the kubeconfig can't be used: {0}")]
    Credentials(String),
    /// The address is wrong.
    #[error("API server {0:?} is no address, use http://host:port")]
    Address(String),
}

/// A request did not get an answer.
#[derive(Debug, thiserror::Error)]
#[error("API server gave no answer: {source}{}", cause(source))]
pub struct NoAnswer {
    #[from]
    source: hyper_util::client::legacy::Error,
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
    /// When the file's content can't be used, or its credentials need a program.
    pub async fn from_kubeconfig(kubeconfig: Kubeconfig) -> Result<Self, UpstreamError> {
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &options).await?;
        Self::new(&config, Some(kubeconfig))
    }

    fn new(config: &Config, kubeconfig: Option<Kubeconfig>) -> Result<Self, UpstreamError> {
        let user = &config.auth_info;
        if user.exec.is_some() || user.auth_provider.is_some() {
            let reason = "they come from a program, use a token or a client certificate";
            return Err(UpstreamError::Credentials(reason.to_owned()));
        }
        let token = match (&user.token, &user.token_file) {
            (Some(token), _) => Some(token.expose_secret().to_owned()),
            (None, Some(file)) => Some(
                std::fs::read_to_string(file)
                    .map_err(|error| UpstreamError::Credentials(format!("{file}: {error}")))?,
            ),
            (None, None) => None,
        };
        let token = token
            .map(|token| HeaderValue::try_from(format!("Bearer {}", token.trim())))
            .transpose()
            .map_err(|error| UpstreamError::Credentials(format!("token: {error}")))?;
        let mut bare = config.clone();
        bare.auth_info = kube::config::AuthInfo::default();
        Ok(Self {
            base: config.cluster_url.clone(),
            token,
            own: http(config)?,
            bare: http(&bare)?,
            kubeconfig,
        })
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
        let http = if parts.headers.contains_key(AUTHORIZATION) {
            &self.bare
        } else {
            if let Some(token) = &self.token {
                parts.headers.insert(AUTHORIZATION, token.clone());
            }
            &self.own
        };
        let mut response = http.request(Request::from_parts(parts, Full::new(body))).await?;
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

fn http(config: &Config) -> Result<Http, UpstreamError> {
    let connector = config.rustls_https_connector().map_err(|error| UpstreamError::Tls(Box::new(error)))?;
    Ok(Client::builder(TokioExecutor::new()).build(connector))
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
