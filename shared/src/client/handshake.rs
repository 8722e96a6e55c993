//! Reads a plugin's handshake line with the eyes of Velero's host.

use std::path::PathBuf;

/// What a plugin announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handshake {
    /// The socket it listens on.
    pub socket: PathBuf,
}

/// Why a line is no handshake. The texts begin with the host's own words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each says what it is in its text")]
pub enum HandshakeError {
    #[error(
        "Unrecognized remote plugin message: {line:?}: the first line of a plugin's output must be its handshake"
    )]
    Unrecognized { line: String },
    #[error("Incompatible core API version with plugin. Plugin version: {version}, Core version: 1")]
    CoreVersion { version: String },
    #[error("incompatible API version with plugin. Plugin version: {version}, Client versions: [2]")]
    AppVersion { version: String },
    #[error("Unknown address type: {network}: this host connects to unix sockets")]
    Network { network: String },
    #[error("Unsupported plugin protocol {protocol:?}. Supported: [grpc]")]
    Protocol { protocol: String },
    #[error("error parsing server cert: the sixth field must be empty, Velero's plugins speak without TLS")]
    Certificate,
}

/// The longest sixth field that a host does not take for a certificate.
const LONGEST_NO_CERTIFICATE: usize = 50;

impl Handshake {
    /// Reads the first line of a plugin's standard output.
    ///
    /// # Errors
    ///
    /// As the host would refuse the plugin.
    pub fn parse(line: &str) -> Result<Self, HandshakeError> {
        let fields: Vec<&str> = line.trim().splitn(7, '|').collect();
        let &[core, app, network, address, ..] = fields.as_slice() else {
            return Err(HandshakeError::Unrecognized { line: line.trim().to_owned() });
        };
        if core.parse() != Ok(1_u32) {
            return Err(HandshakeError::CoreVersion { version: core.to_owned() });
        }
        if app.parse() != Ok(2_u32) {
            return Err(HandshakeError::AppVersion { version: app.to_owned() });
        }
        if network != "unix" {
            return Err(HandshakeError::Network { network: network.to_owned() });
        }
        // A host takes a line without the field for go-plugin's old protocol.
        let protocol = fields.get(4).copied().unwrap_or("netrpc");
        if protocol != "grpc" {
            return Err(HandshakeError::Protocol { protocol: protocol.to_owned() });
        }
        if fields.get(5).is_some_and(|certificate| certificate.len() > LONGEST_NO_CERTIFICATE) {
            return Err(HandshakeError::Certificate);
        }
        Ok(Self { socket: PathBuf::from(address) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_hosts_take() {
        for line in ["1|2|unix|/tmp/s|grpc|\n", "1|2|unix|/tmp/s|grpc", "1|2|unix|/tmp/s|grpc||true"] {
            assert_eq!(Handshake::parse(line), Ok(Handshake { socket: PathBuf::from("/tmp/s") }), "{line}");
        }
    }

    #[test]
    fn lines_that_hosts_refuse_with_their_words() {
        let long = format!("1|2|unix|/s|grpc|{}", "c".repeat(60));
        let table = [
            ("loading config", "Unrecognized remote plugin message"),
            ("", "Unrecognized remote plugin message"),
            ("1|2|unix", "Unrecognized remote plugin message"),
            ("2|2|unix|/s|grpc|", "Incompatible core API version"),
            ("1|3|unix|/s|grpc|", "incompatible API version with plugin. Plugin version: 3"),
            ("1|2|pipe|/s|grpc|", "Unknown address type"),
            ("1|2|unix|/s", "Unsupported plugin protocol \"netrpc\""),
            (long.as_str(), "error parsing server cert"),
        ];
        for (line, words) in table {
            let error = Handshake::parse(line).unwrap_err().to_string();
            assert!(error.starts_with(words), "{line:?}: {error}");
        }
    }
}
