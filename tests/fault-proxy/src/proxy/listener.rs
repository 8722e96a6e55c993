//! One address that clients connect to, with or without TLS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::{Core, ProxyError, exchange};
use crate::tls::Tls;

/// A listener to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// The name by which rules and the log tell its client from others.
    pub client: String,
    /// Where; port 0 takes a free one.
    pub address: SocketAddr,
    /// With TLS or in the clear.
    pub tls: bool,
}

impl Listen {
    /// A listener in the clear on a free port of loopback.
    pub fn loopback(client: impl Into<String>) -> Self {
        Self { client: client.into(), address: SocketAddr::from(([127, 0, 0, 1], 0)), tls: false }
    }

    /// With TLS; the certificate's authority is in the kubeconfig.
    #[must_use]
    pub fn with_tls(self) -> Self {
        Self { tls: true, ..self }
    }
}

/// A bound listener.
pub(super) struct Listener {
    client: Arc<str>,
    pub(super) address: SocketAddr,
    tcp: TcpListener,
    tls: Option<Tls>,
}

impl Listener {
    pub(super) async fn bind(listen: Listen) -> Result<Self, ProxyError> {
        let Listen { client, address, tls } = listen;
        let refused = |source| ProxyError::Listen { client: client.clone(), address, source };
        let tcp = TcpListener::bind(address).await.map_err(refused)?;
        let address = tcp.local_addr().map_err(refused)?;
        let tls = tls.then(|| Tls::new(address.ip())).transpose()?;
        Ok(Self { client: client.as_str().into(), address, tcp, tls })
    }

    /// The certificate authority as PEM that clients must trust.
    pub(super) fn authority(&self) -> Option<String> {
        self.tls.as_ref().map(|tls| tls.authority.clone())
    }

    /// Serves until it is dropped, and its connections with it.
    pub(super) async fn serve(self, core: Arc<Core>) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.tcp.accept() => {
                    let Ok((stream, _)) = accepted else {
                        // No descriptor left, or the client is gone already: neither is for ever.
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        continue;
                    };
                    // Answers to a test are small and waited for.
                    let _ = stream.set_nodelay(true);
                    let (client, core) = (Arc::clone(&self.client), Arc::clone(&core));
                    let acceptor = self.tls.as_ref().map(|tls| tls.acceptor.clone());
                    connections.spawn(async move {
                        match acceptor {
                            None => talk(stream, client, core).await,
                            Some(acceptor) => {
                                // A failed handshake is the client's to report.
                                if let Ok(stream) = acceptor.accept(stream).await {
                                    talk(stream, client, core).await;
                                }
                            }
                        }
                    });
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

async fn talk(stream: impl AsyncRead + AsyncWrite + Unpin + Send, client: Arc<str>, core: Arc<Core>) {
    let service = service_fn(|request| exchange::serve(Arc::clone(&core), Arc::clone(&client), request));
    // An error is a connection that broke or that a rule closed; both are in the log.
    let _: Result<(), hyper::Error> =
        http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
