//! One request and response over a pooled connection.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use domain::routing::AttemptFailure;
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Request};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;

use super::connection_in_use::ConnectionInUse;
use super::errors::{CallError, http2_error};
use super::meter::BodyPhase;
use super::origin::Origin;
use super::payload::{SentCounter, TrackedPayload};

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

/// How a connection ended a request without the head of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// The provider certainly did not process the request: it was not sent, or the provider refused it (RFC 9113,
    /// section 8.7).
    NotProcessed,
    /// A reused connection ended without a byte of an answer. Most providers had closed it before the request arrived.
    Silent,
    /// The provider may have processed the request.
    Unknown,
}

impl Loss {
    fn of<T>(error: &TrySendError<T>, in_use: &ConnectionInUse, answer_bytes_before: u64) -> Self {
        let of_http2 = http2_error(error.error());
        if error.message().is_some() || of_http2.is_some_and(is_refusal) {
            return Self::NotProcessed;
        }
        // A stream that the provider reset says that the provider works on it.
        let is_cut = of_http2.is_none() && in_use.meter().answer_bytes() == answer_bytes_before;
        if in_use.is_reused() && is_cut { Self::Silent } else { Self::Unknown }
    }
}

/// Returns true for a stream that was refused, or was opened after the last one that a GOAWAY announces as processed:
/// the library ends only those with the GOAWAY.
fn is_refusal(error: &h2::Error) -> bool {
    error.is_remote() && (error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM))
}

/// Sends the request that `build` builds. It is repeated once, on another connection, if the provider did not process
/// it or a reused connection ended without an answer: a decision changes nothing at a provider. `host` is the HTTP/1.1
/// header if the headers lack it. `sent` counts the longer sending, and none that was not processed.
///
/// # Errors
/// No connection could be made, or it broke before the head of the answer.
pub(super) async fn exchange(
    origin: &Origin,
    build: impl Fn() -> Result<Request<TrackedPayload>, AttemptFailure>,
    host: Option<&HeaderValue>,
    sent: &SentCounter,
) -> Result<Answer, AttemptFailure> {
    let mut is_repeat = false;
    loop {
        let mut request = build()?;
        let mut in_use = match origin.connection(sent.deadline(), is_repeat).await {
            Err(CallError::Handshake) if !is_repeat => {
                is_repeat = true;
                continue;
            }
            opened => opened.map_err(CallError::into_failure)?,
        };
        let answer_bytes = in_use.meter().answer_bytes();
        prepare(&mut request, &in_use, host);
        let response = match &mut in_use {
            ConnectionInUse::Http1 { connection, .. } => connection.send(request).await,
            ConnectionInUse::Http2(call) => call.send(request).await,
        };
        let error = match response {
            Ok(response) => {
                let phase = in_use.meter().begin_body();
                let (parts, incoming) = response.into_parts();
                let body = AnswerBody { incoming, phase, in_use };
                return Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body });
            }
            Err(error) => error,
        };
        let loss = Loss::of(&error, &in_use, answer_bytes);
        sent.end_sending(loss != Loss::NotProcessed);
        if is_repeat || loss == Loss::Unknown {
            return Err(CallError::of(error.into_error(), in_use.meter()).into_failure());
        }
        tracing::debug!(?loss, "provider connection ended before its answer, repeating the request once");
        in_use.retire();
        is_repeat = true;
    }
}

/// Adapts the request to the connection's HTTP version.
fn prepare(request: &mut Request<TrackedPayload>, in_use: &ConnectionInUse, host: Option<&HeaderValue>) {
    match in_use {
        ConnectionInUse::Http1 { connection, .. } => {
            *request.uri_mut() = connection.request_target(request.uri());
            if let Some(host) = host {
                request.headers_mut().entry(HOST).or_insert_with(|| host.clone());
            }
        }
        ConnectionInUse::Http2(_) => {
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
        self.in_use.retire();
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
