//! The handshake: what the host's environment asks for, and the one line that answers it.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::Path;

/// go-plugin's guard against being started by hand.
const COOKIE: (&str, &str) = ("VELERO_PLUGIN", "hello");

/// Why there is no handshake.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    /// The host wants its own TLS, which Velero never does.
    #[error(
        "the host asks for AutoMTLS (PLUGIN_CLIENT_CERT is set), which this plugin does not speak: Velero talks to its \
         plugins without TLS, so unset PLUGIN_CLIENT_CERT"
    )]
    AutoMtls,
    /// Standard output can't be had.
    #[error("can't take standard output for the handshake: {0}")]
    Stdout(#[source] std::io::Error),
}

/// Whether a plugin host started this process.
pub(crate) fn started_by_host() -> bool {
    std::env::var_os(COOKIE.0).is_some_and(|value| value == COOKIE.1)
}

/// Refuses what the host asks for and this side can't do.
pub(crate) fn check_environment() -> Result<(), HandshakeError> {
    match std::env::var_os("PLUGIN_CLIENT_CERT") {
        Some(certificate) if !certificate.is_empty() => Err(HandshakeError::AutoMtls),
        _ => Ok(()),
    }
}

/// The process' real standard output, taken away from everything else in it.
///
/// From here on file descriptor 1 is `/dev/null`: a `println!` of an action can neither spoil the handshake nor fill the
/// pipe (the host stops reading after one line of 64 KiB), and no child holds it open.
pub(crate) struct Stdout(File);

impl Stdout {
    pub(crate) fn take() -> Result<Self, HandshakeError> {
        let taken = || -> std::io::Result<OwnedFd> {
            let stdout = rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3)?;
            let null = File::options().write(true).open("/dev/null")?;
            rustix::stdio::dup2_stdout(&null)?;
            Ok(stdout)
        };
        taken().map(|stdout| Self(File::from(stdout))).map_err(HandshakeError::Stdout)
    }

    /// Tells the host where the plugin listens, which it must do already: the host connects at once and only once.
    /// Closes the descriptor.
    pub(crate) fn announce(mut self, socket: &Path) -> Result<(), HandshakeError> {
        let multiplexing = std::env::var_os("PLUGIN_MULTIPLEX_GRPC").is_some_and(|value| !value.is_empty());
        let line = line(socket, multiplexing);
        self.0.write_all(line.as_bytes()).map_err(HandshakeError::Stdout)
    }
}

/// Core protocol 1, application protocol 2, no certificate; the seventh field only for a host that asks for it,
/// since older ones can't read it.
fn line(socket: &Path, multiplexing: bool) -> String {
    let more = if multiplexing { "|false" } else { "" };
    format!("1|2|unix|{}|grpc|{more}\n", socket.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_the_six_fields_that_hosts_read() {
        let socket = Path::new("/tmp/velero-plugin-1-a.sock");
        assert_eq!(line(socket, false), "1|2|unix|/tmp/velero-plugin-1-a.sock|grpc|\n");
        assert_eq!(line(socket, true), "1|2|unix|/tmp/velero-plugin-1-a.sock|grpc||false\n");
    }
}
