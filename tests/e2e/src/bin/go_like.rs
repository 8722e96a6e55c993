//! A plugin that answers every call as a Go plugin answers a deep panic: a long text and a stack of 200 frames.

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use e2e::raw::RpcStatus;
use http::{HeaderMap, Response};
use prost::Message as _;
use std::io::Write as _;
use tokio::net::UnixListener;
use velero_plugin::client::proto::generated::{Stack, StackFrame};

/// `grpc-status` of a panic.
const ABORTED: i32 = 10;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("go-like");
    let listener = UnixListener::bind(&socket)?;
    writeln!(std::io::stdout(), "1|2|unix|{}|grpc|", socket.display())?;
    let (stream, _) = listener.accept().await?;
    let mut connection = h2::server::handshake(stream).await?;
    while let Some(request) = connection.accept().await {
        let (_, mut respond) = request.context("read a request")?;
        let response = Response::builder().header("content-type", "application/grpc").body(())?;
        let mut send = respond.send_response(response, false)?;
        send.send_trailers(trailers()?)?;
    }
    Ok(())
}

fn trailers() -> anyhow::Result<HeaderMap> {
    let message = format!("plugin panicked: {}", "goroutine ".repeat(7000));
    let frame = |line| StackFrame {
        file: format!("/go/src/example.io/plugin/internal/deep/recursion_{line}.go"),
        line,
        function: "example.io/plugin/internal/deep.(*Walker).descend".to_owned(),
    };
    let stack = Stack { frames: (1..=200).map(frame).collect() };
    let details = RpcStatus {
        code: ABORTED,
        message: message.clone(),
        details: vec![prost_types::Any {
            type_url: "type.googleapis.com/generated.Stack".to_owned(),
            value: stack.encode_to_vec(),
        }],
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", ABORTED.into());
    trailers.insert("grpc-message", message.trim_end().parse()?);
    trailers.insert("grpc-status-details-bin", STANDARD_NO_PAD.encode(details.encode_to_vec()).parse()?);
    Ok(trailers)
}
