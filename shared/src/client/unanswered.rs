//! How a call ended that got no answer, as Go's client tells it.

use std::error::Error;

use tonic::{Code, Status};

/// A call that the plugin did not answer: the end of its connection, or of its stream alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    /// The code that Go's client gives.
    pub code: Code,
    /// Its words.
    pub message: String,
    /// The whole connection is gone, and with it every call on it.
    pub connection_lost: bool,
}

impl Unanswered {
    /// `None` for a status that the plugin sent. The client of this library reports a lost connection by different codes,
    /// as the moment has it; in Go it is always `Unavailable`.
    pub fn of(status: &Status) -> Option<Self> {
        let cause: &dyn Error = status.source()?;
        let causes = || std::iter::successors(Some(cause), |error| (*error).source());
        let reset =
            causes().filter_map(|error| error.downcast_ref::<h2::Error>()).find(|error| error.is_reset());
        if let Some(reason) = reset.and_then(h2::Error::reason) {
            let message = format!("stream terminated by RST_STREAM with error code: {reason:?}");
            return Some(Self { code: status.code(), message, connection_lost: false });
        }
        let innermost = causes().last().map_or_else(String::new, ToString::to_string);
        let message = format!("error reading from server: {innermost}");
        Some(Self { code: Code::Unavailable, message, connection_lost: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::proto::plugin::Empty;
    use crate::client::proto::plugin::grpc_controller_client::GrpcControllerClient;

    /// The status of a call to a server that takes it and then does `end`.
    async fn status(end: impl FnOnce(h2::server::SendResponse<bytes::Bytes>) + Send + 'static) -> Status {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("s");
        let listener = tokio::net::UnixListener::bind(&socket).expect("a socket");
        let server = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.expect("a client");
            let mut connection = h2::server::handshake(stream).await.expect("HTTP/2");
            let (_, respond) = connection.accept().await.expect("a call").expect("a call");
            end(respond);
            // Sends what is to be sent, until the client is gone or the patience is at its end.
            let patience = std::time::Duration::from_millis(50);
            let _ = tokio::time::timeout(patience, connection.accept()).await;
        });
        let channel = crate::client::channel(socket);
        let status = GrpcControllerClient::new(channel).shutdown(Empty {}).await.expect_err("no answer");
        server.await.expect("a server");
        status
    }

    #[tokio::test]
    async fn a_reset_stream_is_told_from_a_lost_connection() {
        let reset = status(|mut respond| respond.send_reset(h2::Reason::INTERNAL_ERROR)).await;
        let words = "stream terminated by RST_STREAM with error code: INTERNAL_ERROR";
        let unanswered = |code, message: &str, connection_lost| {
            Some(Unanswered { code, message: message.to_owned(), connection_lost })
        };
        assert_eq!(Unanswered::of(&reset), unanswered(Code::Internal, words, false));

        let lost = status(std::mem::forget).await;
        let lost = Unanswered::of(&lost).expect("no answer");
        assert!(lost.connection_lost && lost.code == Code::Unavailable, "{lost:?}");
        assert!(lost.message.starts_with("error reading from server: "), "{lost:?}");
    }

    #[test]
    fn what_the_plugin_answered_is_an_answer() {
        assert_eq!(Unanswered::of(&Status::unknown("boom")), None);
        assert_eq!(Unanswered::of(&Status::unavailable("boom")), None);
    }
}
