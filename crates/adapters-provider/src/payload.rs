//! Request bodies, and the count of their sent bytes.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use domain::decision::SentBytes;
use http::HeaderValue;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_client::body::RequestBody;
use tokio::time::Instant;
use wires::provider::{self, Piece, UnsupportedByWire};

/// A body in pieces, so that large parts are not copied, with its media type.
#[derive(Debug, Clone)]
pub(crate) struct Payload {
    media_type: HeaderValue,
    first: Option<Bytes>,
    rest: Vec<Bytes>,
}

impl Payload {
    /// The media type of a JSON body.
    pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

    /// Builds a JSON body.
    pub(crate) fn json(body: impl Into<Bytes>) -> Self {
        Self { media_type: Self::JSON, first: Some(body.into()), rest: Vec::new() }
    }

    /// Builds a body of another type, in pieces.
    pub(crate) fn of(media_type: HeaderValue, pieces: Vec<Bytes>) -> Self {
        Self { media_type, first: None, rest: pieces }
    }

    /// Returns the media type.
    pub(crate) fn media_type(&self) -> &HeaderValue {
        &self.media_type
    }

    /// Returns the length of all pieces.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.pieces().map(|piece| count(piece.len())).sum()
    }

    fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        self.first.iter().chain(&self.rest)
    }

    /// Returns the body of a request, whose bytes `sent` counts.
    pub(crate) fn with_counter(self, sent: &SentCounter) -> RequestBody {
        let (left, sending) = (self.len_bytes(), sent.call().sending);
        let tracked =
            TrackedPayload { first: self.first, rest: self.rest.into_iter(), left, sending, sent: sent.clone() };
        tracked.map_err(Into::into).boxed()
    }
}

impl TryFrom<provider::RequestBody> for Payload {
    type Error = UnsupportedByWire;

    fn try_from(body: provider::RequestBody) -> Result<Self, UnsupportedByWire> {
        let (media_type, pieces) = match body {
            provider::RequestBody::Json(text) => return Ok(Self::json(text)),
            provider::RequestBody::Form { media_type, pieces } => (media_type, pieces),
        };
        let media_type = HeaderValue::try_from(media_type).map_err(|_| UnsupportedByWire::PartName)?;
        let bytes = |piece| match piece {
            Piece::Text(text) => Bytes::from(text),
            Piece::File(data) => Bytes::from_owner(data),
        };
        Ok(Self::of(media_type, pieces.into_iter().map(bytes).collect()))
    }
}

fn count(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// The counter of sent body bytes, of one call and of its attempt. Clones share it.
///
/// A call that is repeated on another connection counts once: by the longer of its sendings.
#[derive(Debug, Clone, Default)]
pub(crate) struct SentCounter {
    call: Arc<Mutex<CallBytes>>,
    attempt: SentBytes,
    deadline: Option<Instant>,
}

/// The sent bytes of a call.
#[derive(Debug, Default)]
struct CallBytes {
    /// The number of the sending that may send bytes. A connection may hold an unwritten request of a cancelled call or
    /// of an earlier sending, and would write it after the charge was computed.
    sending: u32,
    /// The bytes of that sending.
    current: u64,
    /// The bytes of earlier sendings that the provider may have processed.
    earlier: u64,
    has_ended: bool,
}

impl CallBytes {
    fn counted(&self) -> u64 {
        self.current.max(self.earlier)
    }
}

/// Ends a call when it is dropped.
pub(crate) struct EndCallOnDrop(SentCounter);

impl Drop for EndCallOnDrop {
    fn drop(&mut self) {
        self.0.call().has_ended = true;
    }
}

/// The error of a body whose call or sending is over.
#[derive(Debug, thiserror::Error)]
#[error("the call was cancelled before its body was sent")]
struct CallEnded;

impl SentCounter {
    /// Starts the counter of a call in an attempt with this deadline.
    pub(crate) fn of(attempt: &SentBytes, deadline: Option<Instant>) -> Self {
        Self { call: Arc::default(), attempt: attempt.clone(), deadline }
    }

    /// Returns the deadline of the attempt.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Returns the bytes of the call so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.call().counted()
    }

    /// Counts bytes as if a connection had taken them.
    #[cfg(test)]
    pub(crate) fn count(&self, bytes: u64) {
        self.add(0, bytes).unwrap();
    }

    /// Ends the call when the guard is dropped: unsent bytes are never sent.
    pub(crate) fn end_on_drop(&self) -> EndCallOnDrop {
        EndCallOnDrop(self.clone())
    }

    /// Ends the current sending. Its bytes are no longer counted if the provider certainly did not process them.
    pub(crate) fn end_sending(&self, may_be_processed: bool) {
        let mut call = self.call();
        let before = call.counted();
        if may_be_processed {
            call.earlier = before;
        }
        call.current = 0;
        call.sending += 1;
        self.attempt.subtract(before - call.counted());
    }

    /// Counts bytes before they are sent, unless the call or the sending is over.
    fn add(&self, sending: u32, bytes: u64) -> Result<(), CallEnded> {
        let mut call = self.call();
        if call.has_ended || call.sending != sending {
            return Err(CallEnded);
        }
        let before = call.counted();
        call.current = call.current.saturating_add(bytes);
        self.attempt.add(call.counted() - before);
        Ok(())
    }

    fn call(&self) -> MutexGuard<'_, CallBytes> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A payload with a counter. A connection polls for pieces only when it can send them, so unpolled pieces were never
/// sent.
struct TrackedPayload {
    first: Option<Bytes>,
    rest: std::vec::IntoIter<Bytes>,
    left: u64,
    sending: u32,
    sent: SentCounter,
}

impl Body for TrackedPayload {
    type Data = Bytes;
    type Error = CallEnded;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let Some(piece) = self.first.take().or_else(|| self.rest.next()) else { return Poll::Ready(None) };
        let bytes = count(piece.len());
        self.left = self.left.saturating_sub(bytes);
        Poll::Ready(Some(self.sent.add(self.sending, bytes).map(|()| Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.as_slice().is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn payload_counts_pieces_when_polled() {
        let pieces = [&b"ab"[..], b"", b"cde"].map(Bytes::from_static).to_vec();
        let payload = Payload::of(HeaderValue::from_static("a/b"), pieces);
        assert_eq!(payload.len_bytes(), 5);
        let sent = SentCounter::default();
        let mut body = payload.with_counter(&sent);
        assert_eq!((sent.bytes(), body.size_hint().exact(), body.is_end_stream()), (0, Some(5), false));
        body.frame().await.unwrap().unwrap();
        assert_eq!((sent.bytes(), body.size_hint().exact()), (2, Some(3)));
        let rest = body.collect().await.unwrap().to_bytes();
        assert_eq!((&rest[..], sent.bytes()), (&b"cde"[..], 5));
    }

    #[tokio::test]
    async fn payload_sends_no_piece_after_end_of_call() {
        let attempt = SentBytes::default();
        let (sent, other) = (SentCounter::of(&attempt, None), SentCounter::of(&attempt, None));
        let pieces = [&b"ab"[..], b"cde"].map(Bytes::from_static).to_vec();
        let mut body = Payload::of(HeaderValue::from_static("a/b"), pieces).with_counter(&sent);
        let end = sent.end_on_drop();
        body.frame().await.unwrap().unwrap();
        drop(end);
        assert!(body.frame().await.unwrap().is_err());
        assert_eq!((sent.bytes(), attempt.get()), (2, 2));
        Payload::json("{}").with_counter(&other).collect().await.unwrap();
        assert_eq!((other.bytes(), attempt.get()), (2, 4), "other calls of the attempt go on");
    }

    #[tokio::test]
    async fn repeated_payload_counts_once() {
        let attempt = SentBytes::default();
        let sent = SentCounter::of(&attempt, None);
        let payload =
            || Payload::of(HeaderValue::from_static("a/b"), [&b"ab"[..], b"cde"].map(Bytes::from_static).into());
        let (mut first, counted) = (payload().with_counter(&sent), || (sent.bytes(), attempt.get()));
        first.frame().await.unwrap().unwrap();
        // Certainly not processed.
        sent.end_sending(false);
        assert_eq!(counted(), (0, 0));
        assert!(first.frame().await.unwrap().is_err(), "an earlier sending sends nothing more");
        payload().with_counter(&sent).collect().await.unwrap();
        sent.end_sending(true);
        assert_eq!(counted(), (5, 5));
        let mut third = payload().with_counter(&sent);
        third.frame().await.unwrap().unwrap();
        assert_eq!(counted(), (5, 5), "the longer sending counts");
        third.frame().await.unwrap().unwrap();
        sent.end_sending(false);
        assert_eq!(counted(), (5, 5));
    }

    #[tokio::test]
    async fn json_payload_is_one_piece() {
        let sent = SentCounter::default();
        let body = Payload::json("{}").with_counter(&sent);
        assert_eq!(body.size_hint().exact(), Some(2));
        assert_eq!(&body.collect().await.unwrap().to_bytes()[..], b"{}");
        assert_eq!(sent.bytes(), 2);
    }
}
