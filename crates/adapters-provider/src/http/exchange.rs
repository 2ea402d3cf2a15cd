//! One request and response over a pooled connection.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Request, Uri};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Instant;

use super::connection_in_use::ConnectionInUse;
use super::errors::CallError;
use super::meter::BodyPhase;
use super::origin::Origin;
use super::payload::TrackedPayload;

/// The head of a response, and the connection for its body.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: AnswerBody,
}

/// The body of a response. Reading it drives the connection.
pub(super) struct AnswerBody {
    incoming: Incoming,
    phase: BodyPhase,
    in_use: ConnectionInUse,
}

/// Sends a request. If a kept connection was already closed and did not take it, sends it over another one. `host` is
/// the HTTP/1.1 header if the headers lack it.
///
/// # Errors
/// No connection could be made, or it broke before the head of the answer.
pub(super) async fn exchange(
    origin: &Origin,
    mut request: Request<TrackedPayload>,
    host: Option<&HeaderValue>,
    deadline: Option<Instant>,
) -> Result<Answer, CallError> {
    let uri = request.uri().clone();
    loop {
        let mut in_use = origin.connection(deadline).await?;
        prepare(&mut request, &in_use, &uri, host);
        let sent = match &mut in_use {
            ConnectionInUse::Http1 { connection, .. } => connection.send(request).await,
            ConnectionInUse::Http2(call) => call.send(request).await,
        };
        let mut error = match sent {
            Ok(response) => {
                let phase = in_use.meter().begin_body();
                let (parts, incoming) = response.into_parts();
                let body = AnswerBody { incoming, phase, in_use };
                return Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body });
            }
            Err(error) => error,
        };
        match error.take_message() {
            Some(untouched) if in_use.is_reused() => request = untouched,
            _ => return Err(CallError::of(error.into_error(), in_use.meter())),
        }
    }
}

/// Adapts the request to the connection's HTTP version.
fn prepare(request: &mut Request<TrackedPayload>, in_use: &ConnectionInUse, uri: &Uri, host: Option<&HeaderValue>) {
    match in_use {
        ConnectionInUse::Http1 { connection, .. } => {
            *request.uri_mut() = connection.request_target(uri);
            if let Some(host) = host {
                request.headers_mut().entry(HOST).or_insert_with(|| host.clone());
            }
        }
        ConnectionInUse::Http2(_) => {
            *request.uri_mut() = uri.clone();
            request.headers_mut().remove(HOST);
        }
    }
}

impl AnswerBody {
    /// Ends the body. The connection serves the next call, unless too much of the body is unread.
    pub(super) fn release(self) {
        let Self { incoming, phase, in_use } = self;
        drop(incoming);
        drop(phase);
        in_use.release();
    }

    /// Ends the body and closes the connection to later calls.
    pub(super) fn retire(self) {
        if let ConnectionInUse::Http2(call) = &self.in_use {
            call.retire();
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = &mut *self;
        match &mut this.in_use {
            ConnectionInUse::Http1 { connection, .. } => {
                // A small body arrives with its head.
                let mut no_wake = Context::from_waker(Waker::noop());
                if let Poll::Ready(frame) = Pin::new(&mut this.incoming).poll_frame(&mut no_wake) {
                    return Poll::Ready(frame);
                }
                connection.drive(cx);
                Pin::new(&mut this.incoming).poll_frame(&mut no_wake)
            }
            ConnectionInUse::Http2(_) => Pin::new(&mut this.incoming).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
