//! HTTP/2 over a plugin's socket without a gRPC library, to see what is really on the wire.

use std::path::Path;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::{BufMut as _, Bytes, BytesMut};
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, StatusCode};
use prost::Message;
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

/// A connection. Closed when dropped.
#[derive(Debug)]
pub struct Connection {
    requests: SendRequest<Bytes>,
    driver: JoinHandle<()>,
}

/// A call whose request is still being sent.
#[derive(Debug)]
pub struct OpenCall {
    /// Where messages go out; see [`frame`].
    pub send: SendStream<Bytes>,
    response: ResponseFuture,
}

/// A whole reply.
#[derive(Debug)]
pub struct Reply {
    /// 200, whatever the call came to.
    pub status: StatusCode,
    /// The first block of headers.
    pub headers: HeaderMap,
    /// Everything between the headers and the trailers.
    pub body: Bytes,
    /// The block after the body, if any.
    pub trailers: Option<HeaderMap>,
    /// Whether the first block ended the stream (trailers-only).
    pub ended_by_headers: bool,
}

/// `google.rpc.Status`, as Go's client decodes it from `grpc-status-details-bin`.
#[derive(Clone, PartialEq, Message)]
#[allow(missing_docs, reason = "the standard's own words")]
pub struct RpcStatus {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<prost_types::Any>,
}

impl Connection {
    /// Connects as a host does, with prior knowledge.
    ///
    /// # Errors
    ///
    /// When nobody listens or the peer does not speak HTTP/2.
    pub async fn open(socket: &Path) -> anyhow::Result<Self> {
        let stream = UnixStream::connect(socket).await.context("connect to the plugin's socket")?;
        let (requests, connection) =
            h2::client::Builder::new().max_header_list_size(16 * 1024 * 1024).handshake(stream).await?;
        let driver = tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Self { requests, driver })
    }

    /// Starts a call with the headers of Go's client.
    ///
    /// # Errors
    ///
    /// When the connection is gone or the path is no path.
    pub async fn start(&self, authority: &str, path: &str) -> anyhow::Result<OpenCall> {
        let request = Request::post(format!("http://{authority}{path}"))
            .header("content-type", "application/grpc")
            .header("user-agent", "grpc-go/1.83.1")
            .header("te", "trailers")
            .body(())?;
        let mut requests = self.requests.clone().ready().await?;
        let (response, send) = requests.send_request(request, false)?;
        Ok(OpenCall { send, response })
    }

    /// Sends `messages` and waits for the whole reply.
    ///
    /// # Errors
    ///
    /// When the stream is reset or the connection lost.
    pub async fn call(&self, authority: &str, path: &str, messages: &[&[u8]]) -> anyhow::Result<Reply> {
        let mut call = self.start(authority, path).await?;
        for message in messages {
            call.send.send_data(frame(message), false)?;
        }
        call.send.send_data(Bytes::new(), true)?;
        call.reply().await
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl OpenCall {
    /// Waits for the whole reply.
    ///
    /// # Errors
    ///
    /// When the stream is reset or the connection lost.
    pub async fn reply(self) -> anyhow::Result<Reply> {
        let (parts, mut body) = self.response.await?.into_parts();
        let ended_by_headers = body.is_end_stream();
        let bytes = whole(&mut body).await?;
        let trailers = body.trailers().await?;
        Ok(Reply { status: parts.status, headers: parts.headers, body: bytes, trailers, ended_by_headers })
    }
}

impl Reply {
    /// `grpc-status`, from the trailers or, where there are none, the headers.
    pub fn code(&self) -> Option<i32> {
        self.outcome("grpc-status")?.parse().ok()
    }

    /// `grpc-message`, decoded.
    pub fn message(&self) -> String {
        let message = self.outcome("grpc-message").unwrap_or_default();
        percent_encoding::percent_decode_str(message).decode_utf8_lossy().into_owned()
    }

    /// `grpc-status-details-bin`, decoded.
    ///
    /// # Errors
    ///
    /// When it is absent or not what Go's client reads.
    pub fn details(&self) -> anyhow::Result<RpcStatus> {
        let header = self.outcome("grpc-status-details-bin").context("there are no details")?;
        let bytes =
            STANDARD_NO_PAD.decode(header.trim_end_matches('=')).context("the details are not base64")?;
        RpcStatus::decode(bytes.as_slice()).context("the details are no google.rpc.Status")
    }

    /// The messages of the body.
    ///
    /// # Errors
    ///
    /// When the body is no sequence of uncompressed messages.
    pub fn messages(&self) -> anyhow::Result<Vec<Bytes>> {
        let mut rest = self.body.clone();
        let mut messages = Vec::new();
        while !rest.is_empty() {
            anyhow::ensure!(rest.len() >= 5, "{} bytes are no message", rest.len());
            let head = rest.split_to(5);
            anyhow::ensure!(head[0] == 0, "the message is compressed");
            let length = usize::try_from(u32::from_be_bytes([head[1], head[2], head[3], head[4]]))?;
            anyhow::ensure!(rest.len() >= length, "the message is cut");
            messages.push(rest.split_to(length));
        }
        Ok(messages)
    }

    fn outcome(&self, name: &str) -> Option<&str> {
        self.trailers.as_ref().unwrap_or(&self.headers).get(name)?.to_str().ok()
    }
}

/// A message in gRPC's frame, not compressed.
pub fn frame(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(message.len() + 5);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    frame.put_slice(message);
    frame.freeze()
}

/// A message whose first field is this text, as every request of Velero's begins.
pub fn naming(plugin: &str) -> Vec<u8> {
    let mut message = Vec::new();
    prost::encoding::string::encode(1, &plugin.to_owned(), &mut message);
    message
}

async fn whole(body: &mut RecvStream) -> anyhow::Result<Bytes> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk?;
        body.flow_control().release_capacity(chunk.len())?;
        bytes.put(chunk);
    }
    Ok(bytes.freeze())
}
