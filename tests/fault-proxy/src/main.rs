//! The proxy as a process: see `fault-proxy --help`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use fault_proxy::control;
use fault_proxy::proxy::{Listen, Proxy};
use fault_proxy::upstream::Upstream;
use kube::config::Kubeconfig;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// A reverse proxy before a Kubernetes API server that fails, delays, cuts and counts requests as tests order.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// The kubeconfig whose current context leads to the API server.
    #[arg(long, required_unless_present = "server", conflicts_with = "server")]
    kubeconfig: Option<PathBuf>,
    /// The API server, when it needs neither TLS nor credentials, e.g. `http://127.0.0.1:8001`.
    #[arg(long)]
    server: Option<String>,
    /// A listener and the name of its client: NAME=ADDRESS:PORT. Port 0 takes a free one, which is printed.
    #[arg(long, required = true, value_parser = listener)]
    listen: Vec<(String, SocketAddr)>,
    /// The listeners speak TLS; the certificate's authority is in the kubeconfigs.
    #[arg(long)]
    tls: bool,
    /// A kubeconfig to write for the client of a listener: NAME=FILE.
    #[arg(long, value_parser = file)]
    write_kubeconfig: Vec<(String, PathBuf)>,
    /// Where the control API listens; port 0 takes a free one, which is printed.
    #[arg(long, default_value = "127.0.0.1:0")]
    control: SocketAddr,
}

fn named(text: &str) -> Result<(String, &str)> {
    match text.split_once('=') {
        Some((name, rest)) if !name.is_empty() => Ok((name.to_owned(), rest)),
        _ => bail!("{text:?} has no name, write NAME=…"),
    }
}

fn listener(text: &str) -> Result<(String, SocketAddr)> {
    let (name, address) = named(text)?;
    Ok((name, address.parse().with_context(|| format!("{address:?} is no ADDRESS:PORT"))?))
}

fn file(text: &str) -> Result<(String, PathBuf)> {
    let (name, path) = named(text)?;
    Ok((name, path.into()))
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let upstream = match (arguments.kubeconfig, arguments.server) {
        (Some(path), _) => Upstream::from_kubeconfig(Kubeconfig::read_from(path)?).await?,
        (None, Some(server)) => Upstream::plain(&server)?,
        (None, None) => bail!("neither --kubeconfig nor --server is given"),
    };
    let tls = arguments.tls;
    let listen = arguments.listen.into_iter().map(|(client, address)| Listen { client, address, tls });
    let proxy = Arc::new(Proxy::start(upstream, listen).await?);
    for (client, path) in &arguments.write_kubeconfig {
        proxy.write_kubeconfig(client, path)?;
    }
    let control = TcpListener::bind(arguments.control)
        .await
        .with_context(|| format!("listen for the control API on {}", arguments.control))?;
    // For whoever started the process: it serves, and where.
    let mut stdout = std::io::stdout();
    for (client, address) in proxy.addresses() {
        writeln!(stdout, "client {client} {address}")?;
    }
    writeln!(stdout, "control {}", control.local_addr()?)?;
    let serving = axum::serve(control, control::router(proxy)).into_future();
    tokio::select! {
        ended = serving => ended.context("control API ended"),
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}
