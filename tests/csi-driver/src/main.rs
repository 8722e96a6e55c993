//! The driver as a process: see `csi-driver --help`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Parser;
use csi_driver::driver::{Config, Driver, socket_path};
use csi_driver::server::Server;
use tokio::signal::unix::{SignalKind, signal};

/// A CSI driver for tests: volumes and snapshots are directories, and faults can be ordered while it runs.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// The CSI socket, e.g. `unix:///run/csi.sock`.
    #[arg(long)]
    endpoint: String,
    /// The folder of the volumes, the snapshots and the state; created when absent.
    #[arg(long)]
    state_dir: PathBuf,
    /// Where the control API listens; port 0 takes a free one, which is printed.
    #[arg(long, default_value = "127.0.0.1:0")]
    control: SocketAddr,
    /// The driver's name in storage and snapshot classes.
    #[arg(long, default_value = "csi.velero-rs.test")]
    driver_name: String,
    /// The node's name in Kubernetes.
    #[arg(long, env = "KUBE_NODE_NAME", default_value = "node")]
    node_id: String,
    /// The size of the storage in bytes.
    #[arg(long, default_value_t = 1 << 40)]
    pool_bytes: i64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let config =
        Config { name: arguments.driver_name, node_id: arguments.node_id, pool_bytes: arguments.pool_bytes };
    let driver = Driver::open(config, arguments.state_dir).context("open the state directory")?;
    let socket = socket_path(&arguments.endpoint);
    let server = Server::bind(driver, socket, arguments.control).await?;
    // One line for whoever started the process: it may connect now, and to where.
    writeln!(std::io::stdout(), "csi {} control {}", socket.display(), server.control_address())?;
    server
        .serve(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
        .await?;
    Ok(())
}
