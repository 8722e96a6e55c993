//! The body of an answer: passed on as it comes, cut where a rule says so; its end is the end of the log entry.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::exchange::Entry;

/// Where an answer's body comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// From the proxy.
    Own(Option<Bytes>),
    /// From the API server.
    Upstream(Incoming),
    /// From the API server, up to a number of bytes.
    Truncated(Truncated),
}

/// A body that is cut.
#[derive(Debug)]
pub(super) struct Truncated {
    body: Incoming,
    /// So many bytes may still pass.
    left: u64,
    rule: String,
    /// Whether what has passed had the time to leave.
    flushed: bool,
}

/// The body of an answer.
#[derive(Debug)]
pub(super) struct Answered {
    source: Source,
    entry: Entry,
}

/// The body breaks off, and the connection with it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    /// By a rule.
    #[error("answer cut off by rule {0}")]
    ByRule(String),
    /// By the API server.
    #[error("answer of the API server broke off: {0}")]
    Upstream(#[from] hyper::Error),
}

impl Answered {
    pub(super) fn new(source: Source, entry: Entry) -> Self {
        Self { source, entry }
    }
}

impl Body for Answered {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = self.get_mut();
        let frame = match ready!(this.source.poll(context)) {
            Some(Err(broken)) => {
                this.entry.trouble(&broken.to_string());
                Some(Err(broken))
            }
            frame => frame,
        };
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Own(bytes) => bytes.is_none(),
            Source::Upstream(body) => body.is_end_stream(),
            Source::Truncated(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Own(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            // A truncated body promises what it will not keep: that is how its reader finds out.
            Source::Upstream(body) | Source::Truncated(Truncated { body, .. }) => body.size_hint(),
        }
    }
}

impl Source {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self {
            Self::Own(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Upstream(body) => Pin::new(body).poll_frame(context).map_err(Broken::from),
            Self::Truncated(truncated) => truncated.poll(context),
        }
    }
}

impl Truncated {
    pub(super) fn new(body: Incoming, after_bytes: u64, rule: &str) -> Self {
        Self { body, left: after_bytes, rule: rule.to_owned(), flushed: false }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if self.left == 0 {
            // hyper drops what it has buffered when a body fails, and sends it off when a body is not ready.
            if !self.flushed {
                self.flushed = true;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            return Poll::Ready(Some(Err(Broken::ByRule(self.rule.clone()))));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context)).transpose()?;
        Poll::Ready(frame.map(|frame| {
            let mut data = frame.into_data().unwrap_or_default();
            data.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
            self.left -= data.len() as u64;
            Ok(Frame::data(data))
        }))
    }
}
