//! A small embedded Kubernetes API for tests and the demo.
//!
//! Processes talk to it over HTTP with a kubeconfig; the test that started it looks at the same objects directly:
//!
//! ```
//! # use serde_json::json;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cluster = cluster::Cluster::start().await?;
//! cluster.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "app"}}))?;
//! cluster.apply(json!({
//!     "apiVersion": "v1", "kind": "ConfigMap",
//!     "metadata": {"namespace": "app", "name": "settings"}, "data": {"colour": "blue"},
//! }))?;
//! // Any Kubernetes client can now connect to `cluster.url()`, or with the file of `cluster.kubeconfig(path)`.
//! let settings = cluster.get("configmaps", "app", "settings")?.ok_or("created above")?;
//! assert_eq!(settings["data"]["colour"], "blue");
//! assert!(cluster.requests().is_empty(), "nothing came over HTTP");
//! # Ok(())
//! # }
//! ```
//!
//! It serves the kinds that backup plugins meet (core storage kinds, pods, snapshots and group snapshots, Velero's
//! own) and whatever a `CustomResourceDefinition` adds. Everything that was created at `/status` or sent past it,
//! every refusal's wording, every watch event follows a real API server; `script` and `scenario` hold the proof. It runs no
//! pods. What it leaves out: authorization (an access review is answered by the fault rules), admission, dry runs, schemas (fields are neither pruned nor checked,
//! but for the snapshot resources' rules), field ownership of writes other than apply, foreground deletion.

mod api;
mod cluster;
mod controllers;
mod error;
mod faults;
mod kind;
mod kinds;
mod log;
mod object;
mod rest;
mod reviews;
mod rules;
#[cfg(feature = "script")]
pub mod scenario;
#[cfg(feature = "script")]
pub mod script;
mod server;
pub mod simulator;
mod state;
mod store;

pub use fault_proxy::rules::{InvalidRule, Rule, StatusAnswer};

pub use cluster::{Cluster, NotSeen, Options};
pub use error::{ApiError, FieldError, Subject};
pub use kind::{GroupResource, Kind};
pub use log::Request;
