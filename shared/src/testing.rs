//! Calls a plugin from its own unit tests: the same services and guards, without a process.
//!
//! ```
//! # use velero_plugin::{*, backup::*, client::proto::v2};
//! # struct Noop;
//! # #[async_trait]
//! # impl BackupItemActionV2 for Noop {
//! #     fn applies_to(&self) -> ResourceSelector { ResourceSelector::everything() }
//! #     async fn execute(&self, _: Item, _: Backup) -> Result<Outcome> { Ok(Outcome::unchanged()) }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use velero_plugin::testing::TestServer;
//! use v2::backup_item_action_client::BackupItemActionClient;
//!
//! let plugin = velero_plugin::plugin!().backup_item_action_v2(velero_plugin::name!("example.io/noop"), || Noop);
//! let server = TestServer::start(plugin).unwrap();
//! let mut client = BackupItemActionClient::new(server.channel());
//! let request = v2::ExecuteRequest {
//!     plugin: "example.io/noop".to_owned(),
//!     item: r#"{"kind":"Pod"}"#.into(),
//!     ..Default::default()
//! };
//! assert_eq!(client.execute(request).await.unwrap().into_inner().item, r#"{"kind":"Pod"}"#);
//! # }
//! ```

use std::sync::Arc;

use hyper_util::rt::TokioIo;
use serde_json::Value;
use tonic::transport::Channel;

use crate::grpc::{ListedKinds, Router};
use crate::plugin::{Plugin, RegistrationError};
use crate::process::{Calls, HostArgs, StopHandle, serve_connection};

/// A plugin that is served within this process. Needs a tokio runtime.
#[derive(Debug)]
pub struct TestServer {
    channel: Channel,
    stop: StopHandle,
}

impl TestServer {
    /// Serves `plugin`, to a host with arguments like those of a current server.
    ///
    /// # Errors
    ///
    /// What [`Plugin::check`] finds.
    pub fn start(plugin: Plugin) -> Result<Self, RegistrationError> {
        Self::with_args(plugin, &HostArgs::new(["--log-level=debug".into()]))
    }

    /// Serves `plugin` to a host that gave these arguments.
    ///
    /// # Errors
    ///
    /// What [`Plugin::check`] finds.
    pub fn with_args(plugin: Plugin, args: &HostArgs) -> Result<Self, RegistrationError> {
        plugin.check()?;
        let stop = StopHandle::default();
        let kinds = ListedKinds::new(args, plugin.lists_volume_snapshotter_v2());
        let router = Arc::new(Router::new(plugin, kinds, &Calls::default(), stop.clone()));
        let handle = stop.clone();
        let connector = tower::service_fn(move |_| {
            let (near, far) = tokio::io::duplex(64 * 1024);
            tokio::spawn(serve_connection(far, Arc::clone(&router), handle.stopped()));
            async move { Ok::<_, std::io::Error>(TokioIo::new(near)) }
        });
        Ok(Self { channel: crate::client::endpoint().connect_with_connector_lazy(connector), stop })
    }

    /// A connection, for the clients of [`client::proto`](crate::client::proto).
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }
}

/// An archived object as a restore action gets it for its item: Velero has taken its status and what belongs to its past
/// life out of its metadata. The action gets the object as it was archived beside it.
///
/// ```
/// # use serde_json::json;
/// let archived = json!({"kind": "Pod", "metadata": {"name": "web", "uid": "42"}, "status": {"phase": "Running"}});
/// let item = velero_plugin::testing::to_be_restored(&archived);
/// assert_eq!(item, json!({"kind": "Pod", "metadata": {"name": "web"}}));
/// ```
#[must_use]
pub fn to_be_restored(archived: &Value) -> Value {
    const PAST: [&str; 9] = [
        "generateName",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "ownerReferences",
    ];
    let mut object = archived.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !PAST.contains(&field.as_str()));
    }
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    object
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.stop(crate::process::Stop::Shutdown);
    }
}
