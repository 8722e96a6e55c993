//! Finds the service of a request by its path. Every kind is served, whether or not anything is registered for it.

use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use tonic::body::Body;
use tonic::codegen::Service as _;

use super::go_plugin::GoPlugin;
use super::health::Health;
use super::lister::{ListedKinds, Lister};
use crate::generated::{generated, health, plugin, v1, v2};
use crate::kind::Handlers;
use crate::plugin::Plugin;
use crate::process::{Calls, HostArgs, StopHandle};
use crate::{backup, restore, storage};

/// Velero sends items of any size; gRPC's own default of 4 MiB would refuse the larger ones.
const LARGEST_MESSAGE: usize = i32::MAX as usize;

/// The services.
pub(crate) struct Router {
    go_plugin: Arc<GoPlugin>,
    health: Arc<Health>,
    lister: Arc<Lister>,
    backup_item_actions: Arc<Handlers<dyn backup::BackupItemAction>>,
    backup_item_actions_v2: Arc<Handlers<dyn backup::BackupItemActionV2>>,
    restore_item_actions: Arc<Handlers<dyn restore::RestoreItemAction>>,
    restore_item_actions_v2: Arc<Handlers<dyn restore::RestoreItemActionV2>>,
    delete_item_actions: Arc<Handlers<dyn backup::DeleteItemAction>>,
    item_block_actions: Arc<Handlers<dyn backup::ItemBlockAction>>,
    object_stores: Arc<Handlers<dyn storage::ObjectStore>>,
    volume_snapshotters: Arc<Handlers<dyn storage::VolumeSnapshotter>>,
    volume_snapshotters_v2: Arc<Handlers<dyn storage::VolumeSnapshotterV2>>,
}

impl Router {
    pub(crate) fn new(plugin: Plugin, args: &HostArgs, calls: &Calls, stop: StopHandle) -> Self {
        let lister = Lister {
            command: std::env::args_os().next().unwrap_or_default().to_string_lossy().into_owned(),
            plugins: plugin.names().map(|(kind, name)| (kind, name.to_string())).collect(),
            kinds: ListedKinds::new(args, plugin.lists_volume_snapshotter_v2()),
        };
        let kinds = plugin.into_kinds();
        Self {
            go_plugin: Arc::new(GoPlugin { stop: stop.clone() }),
            health: Arc::new(Health { stop }),
            lister: Arc::new(lister),
            backup_item_actions: Arc::new(kinds.backup_item_actions.counted_by(calls)),
            backup_item_actions_v2: Arc::new(kinds.backup_item_actions_v2.counted_by(calls)),
            restore_item_actions: Arc::new(kinds.restore_item_actions.counted_by(calls)),
            restore_item_actions_v2: Arc::new(kinds.restore_item_actions_v2.counted_by(calls)),
            delete_item_actions: Arc::new(kinds.delete_item_actions.counted_by(calls)),
            item_block_actions: Arc::new(kinds.item_block_actions.counted_by(calls)),
            object_stores: Arc::new(kinds.object_stores.counted_by(calls)),
            volume_snapshotters: Arc::new(kinds.volume_snapshotters.counted_by(calls)),
            volume_snapshotters_v2: Arc::new(kinds.volume_snapshotters_v2.counted_by(calls)),
        }
    }

    /// Answers one request. Never fails: an error is a gRPC status.
    pub(crate) async fn route(&self, request: Request<Incoming>) -> Response<Body> {
        macro_rules! serve {
            ($server:path, $handlers:ident) => {{
                use $server as Server;
                let service = Server::from_arc(Arc::clone(&self.$handlers));
                let answered = service.max_decoding_message_size(LARGEST_MESSAGE).call(request).await;
                answered.unwrap_or_else(|never| match never {})
            }};
        }
        let service = request.uri().path().split('/').nth(1).unwrap_or_default();
        match service {
            "plugin.GRPCController" => {
                serve!(plugin::grpc_controller_server::GrpcControllerServer, go_plugin)
            }
            "plugin.GRPCStdio" => serve!(plugin::grpc_stdio_server::GrpcStdioServer, go_plugin),
            "plugin.GRPCBroker" => serve!(plugin::grpc_broker_server::GrpcBrokerServer, go_plugin),
            "grpc.health.v1.Health" => serve!(health::health_server::HealthServer, health),
            "generated.PluginLister" => serve!(generated::plugin_lister_server::PluginListerServer, lister),
            "generated.BackupItemAction" => {
                serve!(generated::backup_item_action_server::BackupItemActionServer, backup_item_actions)
            }
            "v2.BackupItemAction" => {
                serve!(v2::backup_item_action_server::BackupItemActionServer, backup_item_actions_v2)
            }
            "generated.RestoreItemAction" => {
                serve!(generated::restore_item_action_server::RestoreItemActionServer, restore_item_actions)
            }
            "v2.RestoreItemAction" => {
                serve!(v2::restore_item_action_server::RestoreItemActionServer, restore_item_actions_v2)
            }
            "generated.DeleteItemAction" => {
                serve!(generated::delete_item_action_server::DeleteItemActionServer, delete_item_actions)
            }
            "v1.ItemBlockAction" => {
                serve!(v1::item_block_action_server::ItemBlockActionServer, item_block_actions)
            }
            "generated.ObjectStore" => {
                serve!(generated::object_store_server::ObjectStoreServer, object_stores)
            }
            "generated.VolumeSnapshotter" => {
                serve!(generated::volume_snapshotter_server::VolumeSnapshotterServer, volume_snapshotters)
            }
            "v2.VolumeSnapshotter" => {
                serve!(v2::volume_snapshotter_server::VolumeSnapshotterServer, volume_snapshotters_v2)
            }
            _ => tonic::Status::unimplemented(format!("unknown service {service}")).into_http(),
        }
    }
}
