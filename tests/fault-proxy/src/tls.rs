//! A certificate for a listener, made at its start and trusted through the kubeconfig only.

use std::net::IpAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use tokio_rustls::TlsAcceptor;

/// What a TLS listener needs and what its clients must trust.
pub(crate) struct Tls {
    pub(crate) acceptor: TlsAcceptor,
    /// The authority's certificate as PEM.
    pub(crate) authority: String,
}

/// The certificate can't be made.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// By the generator.
    #[error("certificate of the proxy can't be made: {0}")]
    Certificate(#[from] rcgen::Error),
    /// By the TLS library.
    #[error("certificate of the proxy can't be used: {0}")]
    Config(#[from] rustls::Error),
}

impl Tls {
    /// A certificate for loopback and for this address.
    pub(crate) fn new(address: IpAddr) -> Result<Self, TlsError> {
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
        let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        names.push(address.to_string());
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(names)?.signed_by(&key, &authority)?;
        let private = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        // The provider is named: a process may hold several, and no default.
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)?;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), authority: authority.pem() })
    }
}
