//! Serving: from the first instruction to exit code 0.

use std::convert::Infallible;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixListener;
use tokio::task::JoinSet;
use tracing_subscriber::layer::SubscriberExt as _;

use super::handshake::{self, Stdout};
use super::socket::Socket;
use super::stop::{HeldSignals, ProcessWatch, Stop, StopHandle};
use super::{Calls, HostArgs, by_hand, stderr};
use crate::grpc::{ListedKinds, Router};
use crate::log::HclogLayer;
use crate::plugin::Plugin;

/// What the host may send on one connection before it is read, in bytes. Calls share it: with hyper's own megabyte, one
/// upload that its action does not read would keep the request to end from coming through.
const CONNECTION_WINDOW: u32 = 1 << 30;

/// Serves `plugin` until the host or a signal ends it.
///
/// Before the handshake there is nothing but what it needs: Velero starts a plugin thousands of times a day.
pub(crate) fn run(plugin: Plugin) -> ExitCode {
    if !handshake::started_by_host() {
        return by_hand::answer(&plugin, std::env::args_os().skip(1));
    }
    match start(plugin) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Velero logs plain text at debug level, the marked one as an error; the server is not starting anyway.
            let _ = writeln!(std::io::stderr(), "[ERROR] {error}");
            ExitCode::FAILURE
        }
    }
}

fn start(plugin: Plugin) -> Result<(), Box<dyn std::error::Error>> {
    handshake::check_environment()?;
    plugin.check()?;
    let args = HostArgs::from_env();
    let kinds = ListedKinds::new(&args, plugin.lists_volume_snapshotter_v2());
    let kinds = kinds.restricted(plugin.names().map(|(kind, _)| kind))?;
    let stdout = Stdout::take()?;
    let layer = HclogLayer::new(args.log_level(), plugin.log_targets(), stderr::for_log()?);
    // Fails only where a subscriber is set already; then that one logs.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer));
    crate::panic::install_hook();

    let socket = Socket::bind()?;
    // The host may act from the announcement on, and waits for nothing else: the runtime comes after it.
    let held = HeldSignals::hold()?;
    let parent = std::os::unix::process::parent_id();
    stdout.announce(socket.path())?;

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let watch = {
        let _entered = runtime.enter();
        ProcessWatch::new(parent)?
    };
    held.release()?;
    stderr::close()?;
    runtime.block_on(serve(plugin, kinds, &socket, watch))?;
    // A call that blocks its thread must not keep the process.
    runtime.shutdown_background();
    Ok(())
}

async fn serve(
    plugin: Plugin,
    kinds: ListedKinds,
    socket: &Socket,
    watch: ProcessWatch,
) -> std::io::Result<()> {
    tracing::debug!(version = plugin.version_line().trim_end(), "plugin started");
    let calls = Calls::default();
    let stop = StopHandle::default();
    let listener = UnixListener::from_std(socket.listener.try_clone()?)?;
    let router = Arc::new(Router::new(plugin, kinds, &calls, stop.clone()));
    let stopped = stop.stopped();
    tokio::spawn(watch.run(stop.clone()));

    let mut connections = JoinSet::new();
    let reason = {
        tokio::pin!(stopped);
        let mut swept = false;
        loop {
            tokio::select! {
                reason = &mut stopped => break reason,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(serve_connection(stream, Arc::clone(&router), stop.stopped()));
                        // After the handshake's hot path, once.
                        if !std::mem::replace(&mut swept, true) {
                            socket.sweep();
                        }
                    }
                    // Out of descriptors, say: the host would take an end of the process for worse.
                    Err(_) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
                },
                // Finished connections are collected as they come; the host may connect again.
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
            }
        }
    };
    // The host may be gone and wait for our end: what runs gets a short time, and replies that are due go out.
    let ended = async {
        calls.idle().await;
        while connections.join_next().await.is_some() {}
    };
    if tokio::time::timeout(reason.grace(), ended).await.is_err() && reason != Stop::Shutdown {
        tracing::debug!(?reason, "ending with calls still running");
    }
    Ok(())
}

/// Serves one connection until the peer closes it, or until its running calls are answered once `stopped` is done.
pub(crate) async fn serve_connection<I>(stream: I, router: Arc<Router>, stopped: impl Future<Output = Stop>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: http::Request<Incoming>| {
        let router = Arc::clone(&router);
        async move { Ok::<_, Infallible>(router.route(request).await) }
    });
    let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .initial_connection_window_size(CONNECTION_WINDOW)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection, stopped);
    let ended = tokio::select! {
        ended = &mut connection => Some(ended),
        _ = &mut stopped => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error = %error, "a connection of the host ended early");
    }
}
