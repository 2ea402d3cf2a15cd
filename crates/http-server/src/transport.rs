//! The bytes of one connection: reads one request at a time and writes with a deadline.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_http::h1::{Codec, Message, MessageType};
use actix_http::{Request, ServiceConfig};
use actix_web::error::PayloadError;
use actix_web::http::header::CONTENT_LENGTH;
use bytes::{Buf, Bytes, BytesMut};
use futures_util::Stream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::codec::Decoder;
use tokio_util::io::poll_read_buf;

use super::body::BodyProgress;
use super::head_error::HeadError;
use super::registry::{IdleAction, OpenConnection};
use super::settings::ConnectionSettings;
use super::slots::State;
use super::socket::Socket;

/// The maximum size of a request head, in bytes.
const MAX_HEAD: usize = 128 * 1024;
/// The maximum number of bytes of empty lines before a head.
const MAX_BLANK: usize = 64;
/// The buffer space that one read reserves, except for large bodies.
const READ_SIZE: usize = 8 * 1024;
/// The buffer space that one read of a large body reserves.
const MAX_READ_SIZE: usize = 64 * 1024;
/// A buffer with less free space grows before a read.
const MIN_ROOM: usize = 1024;
/// The maximum number of bytes that are read before the handler asks for the body, and beyond the request.
const READ_AHEAD: usize = 64 * 1024;
/// A larger buffer is released when its connection becomes idle.
const IDLE_BUFFER: usize = 16 * 1024;
/// The grace period of a connection without requests when the server stops: its client may already have sent one.
const FIRST_REQUEST: Duration = Duration::from_secs(2);
/// The first bytes of an HTTP/2 connection.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2";

/// The result of waiting for a request head.
#[derive(Debug)]
pub(super) enum Head {
    Request(Request),
    Fault(HeadError),
    /// The client closed the connection, or it was idle for too long.
    Closed,
}

/// The result of one read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadOutcome {
    Bytes(usize),
    /// The client closed its side, or the connection broke.
    End,
}

pub(super) struct Transport<IO> {
    pub(super) io: IO,
    pub(super) codec: Codec,
    pub(super) read_buf: BytesMut,
    pub(super) write_buf: BytesMut,
    pub(super) body: BodyProgress,
    pub(super) settings: ConnectionSettings,
    deadline: Deadline,
    /// True once the client has closed its side.
    ended: bool,
    head: HeadProgress,
    write_deadline: Option<Instant>,
}

/// The read progress of the next request head.
struct HeadProgress {
    /// The deadline of the current state.
    deadline: Instant,
    /// The time of admission, until the first request.
    first_since: Option<Instant>,
    /// The arrival of its first byte.
    begun: Option<Instant>,
    blank: usize,
    /// The number of bytes at the last parse attempt.
    parsed: usize,
    /// The number of bytes already searched for the end.
    scanned: usize,
}

impl HeadProgress {
    fn new(deadline: Instant, first_since: Option<Instant>) -> Self {
        Self { deadline, first_since, begun: None, blank: 0, parsed: 0, scanned: 0 }
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> Transport<IO> {
    pub(super) fn new(io: IO, http: ServiceConfig, settings: ConnectionSettings) -> Self {
        let now = Instant::now();
        Self {
            io,
            codec: Codec::new(http),
            read_buf: BytesMut::new(),
            write_buf: BytesMut::new(),
            body: BodyProgress::default(),
            settings,
            deadline: Deadline::default(),
            ended: false,
            head: HeadProgress::new(now + settings.header_timeout, Some(now)),
            write_deadline: None,
        }
    }

    /// Returns true once the client has closed its side.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// Prepares for the next request after a response.
    pub(super) fn await_next(&mut self, now: Instant) {
        self.head = HeadProgress::new(now + self.settings.keep_alive, None);
        if self.read_buf.is_empty() && self.read_buf.capacity() > IDLE_BUFFER {
            self.read_buf = BytesMut::new();
        }
        if self.write_buf.capacity() > IDLE_BUFFER {
            self.write_buf = BytesMut::new();
        }
    }

    /// Returns the arrival of the head that was read.
    pub(super) fn head_began(&self) -> Instant {
        self.head.begun.unwrap_or_else(Instant::now)
    }

    fn begin_head(&mut self, connection: &OpenConnection) {
        let now = Instant::now();
        self.head.begun = Some(now);
        self.head.deadline = now + self.settings.header_timeout;
        connection.set(State::ReadingHead, now);
    }

    fn timed_out(&self) -> HeadError {
        HeadError::TimedOut(u64::try_from(self.settings.header_timeout.as_millis()).unwrap_or(u64::MAX))
    }

    /// Parses the next head if it is complete. An incomplete head is parsed at its first piece, whenever it has
    /// doubled, and at its end. So invalid bytes are found early and the work stays linear.
    fn decode_head(&mut self) -> Result<Option<Request>, HeadError> {
        self.skip_blank_lines()?;
        let len = self.read_buf.len();
        if len == 0 || HTTP2_PREFACE.starts_with(&self.read_buf) {
            return Ok(None);
        }
        if self.read_buf.starts_with(HTTP2_PREFACE) {
            return Err(HeadError::Http2);
        }
        if len < 2 * self.head.parsed && len < MAX_HEAD && !self.has_end() {
            return Ok(None);
        }
        self.head.parsed = len;
        match self.codec.decode(&mut self.read_buf)? {
            Some(Message::Item(request)) => {
                if len - self.read_buf.len() > MAX_HEAD {
                    return Err(HeadError::TooLarge);
                }
                self.begin_body(&request);
                Ok(Some(request))
            }
            Some(Message::Chunk(_)) => Err(HeadError::Malformed("a body where a head was expected")),
            None if len >= MAX_HEAD => Err(HeadError::TooLarge),
            None => Ok(None),
        }
    }

    fn skip_blank_lines(&mut self) -> Result<(), HeadError> {
        loop {
            let blank = match &self.read_buf[..] {
                [b'\r', b'\n', ..] => 2,
                [b'\n', ..] => 1,
                _ => return Ok(()),
            };
            self.read_buf.advance(blank);
            self.head.blank += blank;
            if self.head.blank > MAX_BLANK {
                return Err(HeadError::Malformed("too many empty lines before it"));
            }
        }
    }

    /// Searches the new bytes for an empty line.
    fn has_end(&mut self) -> bool {
        // The end may have begun in the last bytes of the previous piece.
        let new = &self.read_buf[self.head.scanned.saturating_sub(3)..];
        self.head.scanned = self.read_buf.len();
        let ends = |at: usize| matches!(new[at + 1..], [b'\n', ..] | [b'\r', b'\n', ..]);
        new.iter().enumerate().any(|(at, byte)| *byte == b'\n' && ends(at))
    }

    fn begin_body(&mut self, request: &Request) {
        let kind = self.codec.message_type();
        let length = || request.head().headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse::<usize>().ok();
        let read_size = match kind {
            MessageType::None => READ_SIZE,
            _ => length().map_or(2 * READ_SIZE, |length| length.clamp(READ_SIZE, MAX_READ_SIZE)),
        };
        self.body.begin(kind, read_size, request.head().expect());
    }

    /// Reads more of the body for the handler.
    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, PayloadError>>> {
        loop {
            match self.body.decode(&mut self.codec, &mut self.read_buf) {
                Poll::Ready(piece) => return Poll::Ready(piece),
                Poll::Pending if self.ended => {
                    self.body.fail();
                    return Poll::Ready(Some(Err(PayloadError::Incomplete(None))));
                }
                Poll::Pending => {}
            }
            self.body.waiting = true;
            ready!(self.poll_continue(cx));
            let read_size = self.body.read_size;
            ready!(self.poll_fill(cx, read_size));
            self.body.waiting = false;
        }
    }

    /// Writes the rest of `100 Continue`. A failure shows in the following read.
    fn poll_continue(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let interim @ [_, ..] = self.body.interim {
            match ready!(Pin::new(&mut self.io).poll_write(cx, interim)) {
                Ok(written @ 1..) => self.body.interim = &interim[written..],
                _ => self.body.interim = &[],
            }
        }
        Poll::Ready(())
    }

    /// Reads ahead while a handler works; ready when the client has disconnected.
    pub(super) fn poll_disconnect(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // The handler reads the socket itself and notices the end first.
        if self.body.waiting {
            return Poll::Pending;
        }
        while !self.ended && self.read_buf.len() < READ_AHEAD {
            ready!(self.poll_fill(cx, READ_SIZE));
        }
        if self.ended { Poll::Ready(()) } else { Poll::Pending }
    }

    pub(super) fn poll_fill(&mut self, cx: &mut Context<'_>, room: usize) -> Poll<ReadOutcome> {
        if self.read_buf.capacity() - self.read_buf.len() < MIN_ROOM {
            self.read_buf.reserve(room);
        }
        let read = ready!(poll_read_buf(Pin::new(&mut self.io), cx, &mut self.read_buf));
        Poll::Ready(if let Ok(read @ 1..) = read {
            ReadOutcome::Bytes(read)
        } else {
            self.ended = true;
            ReadOutcome::End
        })
    }

    /// Writes the buffer and then `rest`, without a copy.
    ///
    /// # Errors
    /// The connection broke, or the client accepted no byte within the deadline.
    pub(super) fn poll_write_out(&mut self, cx: &mut Context<'_>, rest: &mut Bytes) -> Poll<io::Result<()>> {
        while self.write_buf.has_remaining() || rest.has_remaining() {
            let io = Pin::new(&mut self.io);
            let written = match (self.write_buf.is_empty(), rest.is_empty()) {
                (false, false) => io.poll_write_vectored(cx, &[IoSlice::new(&self.write_buf), IoSlice::new(rest)]),
                (false, true) => io.poll_write(cx, &self.write_buf),
                _ => io.poll_write(cx, rest),
            };
            let Poll::Ready(written) = written else {
                let timeout = self.settings.write_timeout;
                let at = *self.write_deadline.get_or_insert_with(|| Instant::now() + timeout);
                ready!(self.deadline.poll_until(cx, at));
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            };
            let written = written?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.write_deadline = None;
            let of_buffer = written.min(self.write_buf.len());
            self.write_buf.advance(of_buffer);
            rest.advance(written - of_buffer);
        }
        Poll::Ready(Ok(()))
    }

    /// Discards input until the client closes or the limits of the lingering close are reached.
    pub(super) fn poll_discard(&mut self, cx: &mut Context<'_>, until: Instant, left: &mut u64) -> Poll<()> {
        loop {
            self.read_buf.clear();
            if self.ended || *left == 0 {
                return Poll::Ready(());
            }
            match self.poll_fill(cx, READ_SIZE) {
                Poll::Ready(ReadOutcome::Bytes(read)) => *left = left.saturating_sub(read as u64),
                Poll::Ready(ReadOutcome::End) => return Poll::Ready(()),
                Poll::Pending => return self.deadline.poll_until(cx, until),
            }
        }
    }
}

impl<IO: Socket> Transport<IO> {
    /// Reads up to the end of the next head.
    pub(super) fn poll_head(&mut self, cx: &mut Context<'_>, connection: &OpenConnection) -> Poll<Head> {
        loop {
            match self.decode_head() {
                Ok(Some(request)) => return Poll::Ready(Head::Request(request)),
                Ok(None) if self.ended => return Poll::Ready(Head::Closed),
                Ok(None) => {}
                Err(fault) => return Poll::Ready(Head::Fault(fault)),
            }
            if self.head.begun.is_none() && !self.read_buf.is_empty() {
                self.begin_head(connection);
            }
            if let Poll::Ready(filled) = self.poll_fill(cx, READ_SIZE) {
                if filled != ReadOutcome::End && self.head.begun.is_none() {
                    self.begin_head(connection);
                }
                continue;
            }
            if self.deadline.poll_until(cx, self.head.deadline).is_ready() {
                return Poll::Ready(if self.head.begun.is_some() {
                    Head::Fault(self.timed_out())
                } else {
                    Head::Closed
                });
            }
            if self.head.begun.is_none() {
                ready!(self.poll_idle_end(cx, connection.idle_action(cx)));
                return Poll::Ready(Head::Closed);
            }
            return Poll::Pending;
        }
    }

    /// Returns ready once a connection without request bytes must be closed.
    fn poll_idle_end(&mut self, cx: &mut Context<'_>, action: IdleAction) -> Poll<()> {
        match (action, self.head.first_since) {
            (IdleAction::Stay, _) => Poll::Pending,
            // A request has arrived; the runtime will report it.
            _ if self.io.has_input() => Poll::Pending,
            (IdleAction::Close, Some(since)) => self.deadline.poll_until(cx, since + FIRST_REQUEST),
            _ => Poll::Ready(()),
        }
    }
}

/// The handle of a request body, held by its handler.
pub(super) struct RequestBody<IO> {
    transport: Rc<RefCell<Transport<IO>>>,
    request: u64,
}

impl<IO> RequestBody<IO> {
    /// Returns the body of the request whose head was just read; `None` if it has none.
    pub(super) fn current(transport: &Rc<RefCell<Transport<IO>>>) -> Option<Self> {
        let read = transport.borrow();
        read.body.is_unread().then(|| Self { transport: Rc::clone(transport), request: read.body.request })
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> Stream for RequestBody<IO> {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut transport = self.transport.borrow_mut();
        if transport.body.request != self.request {
            return Poll::Ready(Some(Err(PayloadError::Incomplete(None))));
        }
        transport.poll_body(cx)
    }
}

impl<IO> Drop for RequestBody<IO> {
    fn drop(&mut self) {
        if let Ok(mut transport) = self.transport.try_borrow_mut()
            && transport.body.request == self.request
        {
            transport.body.waiting = false;
        }
    }
}

/// A reusable timer. Moving the deadline later costs nothing until the armed timer fires.
#[derive(Default)]
pub(super) struct Deadline {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// Resolves once `at` has passed.
    pub(super) fn poll_until(&mut self, cx: &mut Context<'_>, at: Instant) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(at)));
        loop {
            if sleep.deadline() > at {
                sleep.as_mut().reset(at);
            }
            ready!(sleep.as_mut().poll(cx));
            if sleep.deadline() >= at {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn deadline_resolves_at_requested_time_when_rearmed() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut deadline = Deadline::default();
        assert!(futures_util::poll!(poll_fn(|cx| deadline.poll_until(cx, at(10)))).is_pending());
        poll_fn(|cx| deadline.poll_until(cx, at(30))).await;
        assert_eq!(began.elapsed().as_secs(), 30);
        assert!(futures_util::poll!(poll_fn(|cx| deadline.poll_until(cx, at(90)))).is_pending());
        poll_fn(|cx| deadline.poll_until(cx, at(40))).await;
        assert_eq!(began.elapsed().as_secs(), 40);
        poll_fn(|cx| deadline.poll_until(cx, at(20))).await;
        assert_eq!(began.elapsed().as_secs(), 40);
    }
}
