//! The body of a request, read on demand and never past its end.

use std::task::Poll;

use actix_http::h1::{Codec, Message, MessageType};
use actix_web::error::PayloadError;
use bytes::{Bytes, BytesMut};
use tokio_util::codec::Decoder;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// The maximum number of bytes of chunk sizes, extensions and trailers of a body,
const MAX_FRAMING: usize = 16 * 1024;
/// plus this many for each content byte: a one-byte chunk needs six.
const FRAMING_PER_BYTE: usize = 8;

/// The read progress of the current request body.
#[derive(Debug, Default)]
pub(super) struct BodyProgress {
    /// The request number. Handles of an already answered request must not read the next body.
    pub(super) request: u64,
    state: BodyState,
    /// True while the handler waits for more bytes.
    pub(super) waiting: bool,
    /// The unsent rest of the interim response that precedes the first read.
    pub(super) interim: &'static [u8],
    /// The buffer space that a read reserves.
    pub(super) read_size: usize,
    framing: usize,
    content: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum BodyState {
    /// The request has no body, or it was read completely.
    #[default]
    Complete,
    Reading,
    /// The body is malformed, or was cut off.
    Failed,
}

impl BodyProgress {
    pub(super) fn begin(&mut self, kind: MessageType, read_size: usize, expects_continue: bool) {
        let state = if kind == MessageType::None { BodyState::Complete } else { BodyState::Reading };
        let interim = if expects_continue && kind == MessageType::Payload { CONTINUE } else { &[] };
        *self = Self { request: self.request + 1, state, interim, read_size, ..Self::default() };
    }

    /// Returns true if the next byte of the connection belongs to another request.
    pub(super) fn is_complete(&self) -> bool {
        self.state == BodyState::Complete
    }

    /// Returns true while bytes of the body are to be read.
    pub(super) fn is_unread(&self) -> bool {
        self.state == BodyState::Reading
    }

    pub(super) fn fail(&mut self) {
        self.state = BodyState::Failed;
    }

    /// Skips the received bytes of an unread body and invalidates its handles.
    pub(super) fn skip(&mut self, codec: &mut Codec, buffer: &mut BytesMut) {
        self.request += 1;
        self.interim = &[];
        self.waiting = false;
        while self.state == BodyState::Reading && self.decode(codec, buffer).is_ready() {}
    }

    /// Decodes the next piece from the buffer; pending if more bytes are needed.
    pub(super) fn decode(
        &mut self,
        codec: &mut Codec,
        buffer: &mut BytesMut,
    ) -> Poll<Option<Result<Bytes, PayloadError>>> {
        match self.state {
            BodyState::Complete => return Poll::Ready(None),
            BodyState::Failed => return Poll::Ready(Some(Err(PayloadError::EncodingCorrupted))),
            BodyState::Reading => {}
        }
        let before = buffer.len();
        let decoded = codec.decode(buffer);
        let consumed = before - buffer.len();
        // A client that has already sent body bytes does not wait for `100 Continue`.
        if before > 0 {
            self.interim = &[];
        }
        let piece = match decoded {
            Ok(Some(Message::Chunk(piece))) => piece,
            Ok(None) => {
                self.framing += consumed;
                return if self.is_framed_excessively() {
                    Poll::Ready(Some(Err(self.corrupted())))
                } else {
                    Poll::Pending
                };
            }
            Ok(Some(Message::Item(_))) | Err(_) => return Poll::Ready(Some(Err(self.corrupted()))),
        };
        let Some(piece) = piece else {
            self.state = BodyState::Complete;
            return Poll::Ready(None);
        };
        self.content += piece.len();
        self.framing += consumed - piece.len();
        if self.is_framed_excessively() {
            return Poll::Ready(Some(Err(self.corrupted())));
        }
        Poll::Ready(Some(Ok(piece)))
    }

    fn is_framed_excessively(&self) -> bool {
        self.framing > self.content.saturating_mul(FRAMING_PER_BYTE).saturating_add(MAX_FRAMING)
    }

    fn corrupted(&mut self) -> PayloadError {
        self.fail();
        PayloadError::EncodingCorrupted
    }
}
