//! The connection to the API server, made when it is first needed.
//!
//! It is put together from `kube`'s parts and not by its default, which tries again by itself, beyond our time
//! limits, and logs a failed request as an error: that would spoil the user's backup.

use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt as _};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::{BoxError, ServiceBuilder};
use velero_plugin::HostArgs;

use super::error::{ApiError, Reason};

/// How API servers and their audit logs name us.
const USER_AGENT: &str = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));

/// Connects as the server does: by `--kubeconfig`, by `KUBECONFIG`, by the pod's service account, else by the user's
/// own kubeconfig.
pub(super) async fn connect(arguments: &HostArgs) -> Result<Client, ApiError> {
    let refused = |error: BoxError| ApiError::new("find the cluster", Reason::NoCluster, error.to_string());
    let config = config(arguments).await.map_err(refused)?;
    client(config).map_err(refused)
}

/// A client of `config`.
pub(super) fn client(mut config: Config) -> Result<Client, BoxError> {
    // An error only means that another one is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    config.headers.push((http::header::USER_AGENT, http::HeaderValue::from_static(USER_AGENT)));
    let https = config.rustls_https_connector()?;
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(legacy::Client::builder(TokioExecutor::new()).build::<_, Body>(https));
    Ok(Client::new(service, config.default_namespace))
}

fn kubeconfig_at_home() -> bool {
    std::env::var_os("HOME").is_some_and(|home| std::path::Path::new(&home).join(".kube/config").is_file())
}

async fn config(arguments: &HostArgs) -> Result<Config, BoxError> {
    let options = KubeConfigOptions {
        context: arguments.value("kubecontext").map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    if let Some(path) = arguments.value("kubeconfig").filter(|path| !path.is_empty()) {
        return Ok(Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &options).await?);
    }
    if std::env::var_os("KUBECONFIG").is_some_and(|path| !path.is_empty()) {
        return Ok(Config::from_kubeconfig(&options).await?);
    }
    match Config::incluster() {
        Ok(config) => Ok(config),
        // As the server does outside of a cluster: the user's own file.
        Err(_) if kubeconfig_at_home() => Ok(Config::from_kubeconfig(&options).await?),
        Err(error) => Err(error.into()),
    }
}
