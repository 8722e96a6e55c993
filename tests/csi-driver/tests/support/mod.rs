//! A driver in this process, with a channel to its socket and a client of its control API.

#![allow(dead_code, reason = "no test file uses all of it")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use csi_driver::control::{CallRecord, Client, Numbered};
use csi_driver::csi::controller_client::ControllerClient;
use csi_driver::csi::group_controller_client::GroupControllerClient;
use csi_driver::csi::identity_client::IdentityClient;
use csi_driver::csi::node_client::NodeClient;
use csi_driver::csi::volume_capability::access_mode::Mode;
use csi_driver::csi::volume_capability::{AccessMode, AccessType, MountVolume};
use csi_driver::csi::{
    CreateSnapshotRequest, CreateVolumeRequest, Snapshot, Volume, VolumeCapability, VolumeContentSource,
};
use csi_driver::driver::{Config, Driver};
use csi_driver::server::Server;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

/// Nothing here takes long; a test that hangs fails instead.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Harness {
    pub(crate) channel: Channel,
    pub(crate) control: Client,
    folder: Arc<tempfile::TempDir>,
    serving: tokio::task::JoinHandle<()>,
}

impl Harness {
    pub(crate) async fn start() -> Self {
        Self::start_in(Arc::new(tempfile::tempdir().expect("tempdir"))).await
    }

    /// A new driver over the same state.
    pub(crate) async fn restart(self) -> Self {
        let folder = Arc::clone(&self.folder);
        drop(self);
        Self::start_in(folder).await
    }

    async fn start_in(folder: Arc<tempfile::TempDir>) -> Self {
        let config =
            Config { name: "csi.velero-rs.test".into(), node_id: "node".into(), pool_bytes: 1 << 40 };
        let driver = Driver::open(config, folder.path().join("state")).expect("open");
        let socket = folder.path().join("csi.sock");
        let control = "127.0.0.1:0".parse().expect("address");
        let server = Server::bind(driver, &socket, control).await.expect("bind");
        let control = Client::new(server.control_address()).expect("client");
        let serving = tokio::spawn(async move { server.serve(std::future::pending()).await.expect("serve") });
        Self { channel: connect(&socket).await, control, folder, serving }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("csi.sock")
    }

    pub(crate) fn content(&self, volume_id: &str) -> PathBuf {
        self.folder.path().join("state/volumes").join(volume_id)
    }

    pub(crate) fn controller(&self) -> ControllerClient<Channel> {
        ControllerClient::new(self.channel.clone())
    }

    pub(crate) fn groups(&self) -> GroupControllerClient<Channel> {
        GroupControllerClient::new(self.channel.clone())
    }

    pub(crate) fn identity(&self) -> IdentityClient<Channel> {
        IdentityClient::new(self.channel.clone())
    }

    pub(crate) fn node(&self) -> NodeClient<Channel> {
        NodeClient::new(self.channel.clone())
    }

    pub(crate) async fn volume(&self, name: &str) -> Volume {
        self.create_volume(name, None).await.expect("volume")
    }

    pub(crate) async fn create_volume(
        &self,
        name: &str,
        source: Option<VolumeContentSource>,
    ) -> Result<Volume, Status> {
        let request = CreateVolumeRequest {
            name: name.to_owned(),
            volume_capabilities: vec![mount()],
            volume_content_source: source,
            ..CreateVolumeRequest::default()
        };
        let reply = self.controller().create_volume(request).await?;
        Ok(reply.into_inner().volume.expect("volume in the reply"))
    }

    pub(crate) async fn snapshot(&self, name: &str, volume_id: &str) -> Result<Snapshot, Status> {
        let request = CreateSnapshotRequest {
            name: name.to_owned(),
            source_volume_id: volume_id.to_owned(),
            secrets: HashMap::from([("password".to_owned(), "hidden".to_owned())]),
            ..CreateSnapshotRequest::default()
        };
        let reply = self.controller().create_snapshot(request).await?;
        Ok(reply.into_inner().snapshot.expect("snapshot in the reply"))
    }

    /// Waits until a call of this method is in the log that `wanted` lets through.
    pub(crate) async fn wait_for_call(
        &self,
        method: &str,
        wanted: impl Fn(&CallRecord) -> bool,
    ) -> Numbered<CallRecord> {
        let search = async {
            loop {
                let calls = self.control.calls_of(method).await.expect("calls");
                if let Some(call) = calls.into_iter().find(|call| wanted(call)) {
                    return call;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, search).await.expect("call in the log")
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

pub(crate) async fn connect(socket: &Path) -> Channel {
    let endpoint = Endpoint::try_from(format!("unix://{}", socket.display())).expect("endpoint");
    endpoint.timeout(PATIENCE).connect().await.expect("connect")
}

pub(crate) fn mount() -> VolumeCapability {
    VolumeCapability {
        access_type: Some(AccessType::Mount(MountVolume::default())),
        access_mode: Some(AccessMode { mode: Mode::SingleNodeWriter.into() }),
    }
}
