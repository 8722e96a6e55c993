//! A reverse proxy before a Kubernetes API server that fails, delays, cuts and counts requests as tests order.
//!
//! A client takes its server from its kubeconfig; [`proxy::Proxy::kubeconfig`] writes one that leads through the
//! proxy. Requests, answers and watches pass unchanged where no rule selects them. Not passed on are protocol
//! upgrades (exec, attach, port-forward).
//!
//! | Module | What it holds |
//! |---|---|
//! | [`request`] | what a request means to Kubernetes: verb, resource, name. Pure |
//! | [`rules`] | which rules hit a request and what they do to it. Pure |
//! | [`status`] | errors as the API server words them. Pure |
//! | [`proxy`] | listeners, forwarding, the request log |
//! | [`control`] | rules and log over HTTP and JSON, for a proxy in a process of its own |
//!
//! Without the feature `proxy` there are the pure modules only: an API server of its own applies them to its requests.

#[cfg(feature = "proxy")]
pub mod control;
#[cfg(feature = "proxy")]
pub mod kubeconfig;
#[cfg(feature = "proxy")]
pub mod proxy;
#[cfg(feature = "proxy")]
pub mod record;
pub mod request;
pub mod rules;
pub mod status;
#[cfg(feature = "proxy")]
mod tls;
#[cfg(feature = "proxy")]
pub mod upstream;
