//! A plugin that breaks the protocol in the way that its file name says, to see what a Velero server makes of it.
//!
//! The crate `velero-plugin` rules these breaches out, so this one stands on the generated code alone.

mod actions;
mod behaviour;
mod go_plugin;

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use velero_plugin::client::proto::generated::delete_item_action_server::DeleteItemActionServer;
use velero_plugin::client::proto::generated::plugin_lister_server::PluginListerServer;
use velero_plugin::client::proto::plugin::grpc_broker_server::GrpcBrokerServer;
use velero_plugin::client::proto::plugin::grpc_controller_server::GrpcControllerServer;
use velero_plugin::client::proto::plugin::grpc_stdio_server::GrpcStdioServer;
use velero_plugin::client::proto::v2::backup_item_action_server::BackupItemActionServer;

use actions::Actions;
use behaviour::Behaviour;
use go_plugin::GoPlugin;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let command = std::env::args().next().unwrap_or_default();
    let name = Path::new(&command).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Some(behaviour) = Behaviour::named(&name) else {
        bail!("{name} is no behaviour: name the file as one")
    };
    if behaviour == Behaviour::NoHandshake {
        return Ok(());
    }
    let folder = tempfile::Builder::new().prefix("misbehave-").tempdir()?;
    let socket = folder.path().join("socket");
    let listener = UnixListener::bind(&socket).with_context(|| format!("bind {}", socket.display()))?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "1|2|unix|{}|grpc|", socket.display())?;
    stdout.flush()?;

    let go_plugin = GoPlugin::default();
    let stop = go_plugin.stop.clone();
    let actions = Actions(behaviour);
    let server = Server::builder()
        .add_service(GrpcControllerServer::new(go_plugin.clone()))
        .add_service(GrpcStdioServer::new(go_plugin.clone()))
        .add_service(GrpcBrokerServer::new(go_plugin))
        .add_service(PluginListerServer::new(actions))
        .add_service(BackupItemActionServer::new(actions))
        .add_service(DeleteItemActionServer::new(actions))
        .serve_with_incoming(UnixListenerStream::new(listener));
    // The host holds its streams open until the process is gone, so nothing is waited for.
    tokio::select! {
        ended = server => ended?,
        () = stop.notified() => {}
    }
    Ok(())
}
