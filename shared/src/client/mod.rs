//! The other side, in small: starts a plugin's process as the Velero server does, calls it, and ends it.
//!
//! It works with plugins in any language. What plays a whole server on top of it is the command `velero-host`.

mod handshake;
mod place;
mod process;
mod unanswered;

pub use handshake::{Handshake, HandshakeError};
pub use place::Place;
pub use process::{PluginProcess, StartError, Stopped};
pub use unanswered::Unanswered;

/// The messages and clients of the protocol, as generated.
pub mod proto {
    pub use crate::generated::{generated, health, plugin, v1, v2};
}

use tonic::transport::{Channel, Endpoint};

/// The largest message that a host takes, and the largest list of headers: an error of a Go plugin carries its
/// stack there.
pub const LARGEST_MESSAGE: usize = i32::MAX as usize;
const LARGEST_HEADERS: u32 = 16 * 1024 * 1024;
/// In Go's client a download that nobody reads holds up no other call: only its own window fills.
const CONNECTION_WINDOW: u32 = 1024 * 1024 * 1024;

/// The end of a connection as go-plugin's hosts open one. They name no real authority.
pub(crate) fn endpoint() -> Endpoint {
    Endpoint::from_static("http://unused")
        .http2_max_header_list_size(LARGEST_HEADERS)
        .initial_connection_window_size(CONNECTION_WINDOW)
}

/// A channel over a unix socket; it connects again when the connection is lost.
pub(crate) fn channel(socket: std::path::PathBuf) -> Channel {
    endpoint().connect_with_connector_lazy(tower::service_fn(move |_| {
        let socket = socket.clone();
        async move { tokio::net::UnixStream::connect(socket).await.map(hyper_util::rt::TokioIo::new) }
    }))
}
