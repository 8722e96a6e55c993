//! Both listeners of the driver: the CSI socket and the control API.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::{TcpListener, UnixListener};
use tokio_stream::wrappers::UnixListenerStream;

use crate::driver::Driver;
use crate::{control, rpc};

/// A driver that listens and does not serve yet.
#[derive(Debug)]
pub struct Server {
    driver: Arc<Driver>,
    socket: Socket,
    control: TcpListener,
    control_address: SocketAddr,
}

/// The driver can't listen or serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The CSI socket can't be made.
    #[error("can't listen on socket {path}: {source}", path = path.display())]
    Socket {
        /// Its path.
        path: PathBuf,
        /// Why not; a path of more than 107 bytes is one reason.
        source: io::Error,
    },
    /// The control API can't listen.
    #[error("can't listen for the control API on {address}: {source}")]
    Control {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The CSI service ended.
    #[error("csi service ended: {0}")]
    Rpc(#[from] tonic::transport::Error),
    /// The control API ended.
    #[error("control API ended: {0}")]
    Http(io::Error),
}

impl Server {
    /// Listens on both addresses; port 0 of `control` takes a free one. A socket that was left over is replaced.
    ///
    /// # Errors
    ///
    /// When one of them can't be listened on.
    pub async fn bind(driver: Arc<Driver>, socket: &Path, control: SocketAddr) -> Result<Self, ServeError> {
        let socket =
            Socket::bind(socket).map_err(|source| ServeError::Socket { path: socket.to_owned(), source })?;
        let refused = |source| ServeError::Control { address: control, source };
        let listener = TcpListener::bind(control).await.map_err(refused)?;
        let control_address = listener.local_addr().map_err(refused)?;
        Ok(Self { driver, socket, control: listener, control_address })
    }

    /// Where the control API listens.
    pub fn control_address(&self) -> SocketAddr {
        self.control_address
    }

    /// Serves until `stop` completes. Calls that hang or wait then are cut off; the socket is removed.
    ///
    /// # Errors
    ///
    /// When one of the services ends by itself.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
        let Self { driver, socket, control, .. } = self;
        let Socket { listener, file } = socket;
        let _removed_at_the_end = file;
        let rpc = tonic::transport::Server::builder()
            .add_routes(rpc::routes(&driver))
            .serve_with_incoming(UnixListenerStream::new(listener));
        let http = axum::serve(control, control::router(driver)).into_future();
        tokio::select! {
            ended = rpc => Ok(ended?),
            ended = http => ended.map_err(ServeError::Http),
            () = stop => Ok(()),
        }
    }
}

/// A listening unix socket and its file.
#[derive(Debug)]
struct Socket {
    listener: UnixListener,
    file: SocketFile,
}

/// Removes the file when it is dropped.
#[derive(Debug)]
struct SocketFile(PathBuf);

impl Socket {
    fn bind(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        // Only a socket: a path given by mistake must not cost a file.
        if std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
            std::fs::remove_file(path)?;
        }
        Ok(Self { listener: UnixListener::bind(path)?, file: SocketFile(path.to_owned()) })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Gone already when somebody else removed it.
        let _ = std::fs::remove_file(&self.0);
    }
}
