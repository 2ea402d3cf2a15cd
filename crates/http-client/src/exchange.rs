//! One request and response over a pooled connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use tokio::time::Instant;

use crate::body::{self, BodyError, RequestBody};
use crate::errors::{Error, Loss, http2_error};
use crate::origin::{ConnectionInUse, Origin};

/// The origin of calls to one host, and the headers that the client adds to them.
#[derive(Clone)]
pub struct Target {
    pub(crate) origin: Arc<Origin>,
    pub(crate) headers: HeaderMap,
    /// The `host` header for HTTP/1.1.
    pub(crate) host: Option<HeaderValue>,
    pub(crate) is_https: bool,
}

impl Target {
    /// Returns the headers that the client adds unless a request has its own: the user agent, and the credentials of a
    /// proxy that forwards.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Adds the headers that the client adds, among them `host`, unless there are others.
    pub fn add_headers(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.headers {
            headers.entry(name).or_insert_with(|| value.clone());
        }
        if let Some(host) = &self.host {
            headers.entry(HOST).or_insert_with(|| host.clone());
        }
    }
}

/// The losses after which a request is sent again, once, on another connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// If the server certainly did not process it.
    IfNotProcessed,
    /// Also if a reused connection ended without an answer, for requests that change nothing at the server.
    IfSilent,
}

/// The body of a response. Reading it drives the connection. Dropped at its end, the connection serves the next call;
/// dropped before, one of HTTP/1.1 closes.
pub struct ResponseBody {
    open: Option<OpenBody>,
    has_ended: bool,
}

/// A body before its end, and its connection.
struct OpenBody {
    incoming: Incoming,
    in_use: ConnectionInUse,
}

impl Loss {
    fn of<T>(error: &TrySendError<T>, in_use: &ConnectionInUse, answer_bytes_before: u64) -> Self {
        let of_http2 = http2_error(error.error());
        if error.message().is_some() || of_http2.is_some_and(is_refusal) {
            return Self::NotProcessed;
        }
        // A server that resets a stream has received its request.
        let is_cut = of_http2.is_none() && in_use.meter().answer_bytes() == answer_bytes_before;
        if in_use.is_reused() && is_cut { Self::Silent } else { Self::Unknown }
    }
}

/// Returns true for a stream that was refused, or was opened after the last one that a GOAWAY announces as processed:
/// the library ends only those with the GOAWAY.
fn is_refusal(error: &h2::Error) -> bool {
    error.is_remote() && (error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM))
}

/// Sends the request that `build` builds, which learns the loss of the sending before.
pub(crate) async fn exchange<E: From<Error>>(
    target: &Target,
    deadline: Option<Instant>,
    repeat: Repeat,
    mut build: impl FnMut(Option<Loss>) -> Result<Request<RequestBody>, E>,
) -> Result<Response<ResponseBody>, E> {
    let (mut is_repeat, mut loss_before) = (false, None);
    loop {
        let mut request = build(loss_before.take())?;
        let mut in_use = match target.origin.connection(deadline, is_repeat).await {
            Err(Error::Handshake(_)) if !is_repeat => {
                is_repeat = true;
                continue;
            }
            opened => opened?,
        };
        let answer_bytes = in_use.meter().answer_bytes();
        in_use.meter().begin_head();
        prepare(&mut request, &in_use, target);
        let response = match &mut in_use {
            ConnectionInUse::Http1 { connection, .. } => connection.send(request).await,
            ConnectionInUse::Http2(call) => call.send(request).await,
        };
        let error = match response {
            Ok(response) => {
                in_use.meter().begin_body();
                let open = |incoming| OpenBody { incoming, in_use };
                return Ok(response.map(|incoming| ResponseBody { open: Some(open(incoming)), has_ended: false }));
            }
            Err(error) => error,
        };
        let loss = Loss::of(&error, &in_use, answer_bytes);
        if is_repeat || loss == Loss::Unknown || (loss == Loss::Silent && repeat == Repeat::IfNotProcessed) {
            return Err(Error::lost(error.into_error(), loss, in_use.meter()).into());
        }
        tracing::debug!(?loss, "connection ended before its answer, repeating the request once");
        in_use.retire();
        (is_repeat, loss_before) = (true, Some(loss));
    }
}

/// Adapts the request to the connection.
fn prepare(request: &mut Request<RequestBody>, in_use: &ConnectionInUse, target: &Target) {
    target.add_headers(request.headers_mut());
    match in_use {
        ConnectionInUse::Http1 { connection, .. } => {
            *request.uri_mut() = connection.request_target(request.uri());
        }
        ConnectionInUse::Http2(_) => {
            request.headers_mut().remove(HOST);
        }
    }
}

impl ResponseBody {
    /// Reads the whole body of at most `limit` bytes.
    ///
    /// # Errors
    /// The body is longer, or the connection broke.
    pub async fn read(mut self, limit: usize) -> Result<Bytes, BodyError> {
        body::read(&mut self, limit, |_| true, |_| true).await
    }

    /// Reads and drops the rest of the body, so that the connection serves the next call. A rest of more than `limit`
    /// bytes closes it.
    pub async fn drain(mut self, mut limit: usize) {
        while let Some(Ok(frame)) = self.frame().await {
            let Some(left) = limit.checked_sub(frame.data_ref().map_or(0, Bytes::len)) else { return };
            limit = left;
        }
    }

    /// Ends the body. The connection serves the next call, unless too much of the body is unread.
    pub fn release(mut self) {
        self.end();
    }

    /// Ends the body and closes the connection to later calls.
    pub fn retire(mut self) {
        if let Some(open) = self.open.take() {
            open.in_use.retire();
        }
    }

    fn end(&mut self) {
        if let Some(OpenBody { incoming, in_use }) = self.open.take() {
            drop(incoming);
            in_use.release();
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        if self.has_ended || self.is_end_stream() {
            self.end();
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = &mut *self;
        let Some(open) = &mut this.open else { return Poll::Ready(None) };
        let incoming = Pin::new(&mut open.incoming);
        let polled = match &mut open.in_use {
            ConnectionInUse::Http1 { connection, .. } => {
                // A small body arrives with its head.
                let mut no_wake = Context::from_waker(Waker::noop());
                match incoming.poll_frame(&mut no_wake) {
                    Poll::Pending => {
                        connection.drive(cx);
                        Pin::new(&mut open.incoming).poll_frame(&mut no_wake)
                    }
                    frame @ Poll::Ready(_) => frame,
                }
            }
            ConnectionInUse::Http2(_) => incoming.poll_frame(cx),
        };
        this.has_ended = matches!(polled, Poll::Ready(None));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.open.as_ref().is_none_or(|open| open.incoming.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.open.as_ref().map_or_else(|| SizeHint::with_exact(0), |open| open.incoming.size_hint())
    }
}
