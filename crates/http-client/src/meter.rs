//! Byte counter of a connection: limits the bytes before an answer and yields to other tasks.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::frames::{FrameCounter, TooManyBytes};

/// Bytes after which a connection with more data yields to other tasks.
const YIELD_BYTES: usize = 64 << 10;
/// Bytes per read while the head of an answer is pending. At most two such reads pass the head before it is noticed.
const HEAD_READ_BYTES: usize = 16 << 10;

/// The counters of one connection. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Meter(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    limit: u64,
    exceeded: AtomicBool,
    answer_bytes: AtomicU64,
    /// The bytes that were read while a head was pending. HTTP/2 frames carry their own state.
    head_bytes: AtomicU64,
    /// True from an answer's head to the next request, on an HTTP/1 connection.
    in_body: AtomicBool,
}

impl Meter {
    /// Allows `limit` bytes before the body of an answer.
    pub(crate) fn new(limit: u64) -> Self {
        Self(Arc::new(Counters {
            limit,
            exceeded: AtomicBool::new(false),
            answer_bytes: AtomicU64::new(0),
            head_bytes: AtomicU64::new(0),
            in_body: AtomicBool::new(false),
        }))
    }

    /// Returns the read bytes of answers; over HTTP/2 without pings and other connection frames.
    pub(crate) fn answer_bytes(&self) -> u64 {
        self.0.answer_bytes.load(Ordering::Acquire)
    }

    /// Returns the exceeded limit, if any.
    pub(crate) fn violation(&self) -> Option<TooManyBytes> {
        self.0.exceeded.load(Ordering::Acquire).then_some(TooManyBytes(self.0.limit))
    }

    /// Awaits the head of the answer to a new request.
    pub(crate) fn begin_head(&self) {
        self.0.head_bytes.store(0, Ordering::Release);
        self.0.in_body.store(false, Ordering::Release);
    }

    /// Awaits the body, after the final head.
    pub(crate) fn begin_body(&self) {
        self.0.in_body.store(true, Ordering::Release);
    }

    fn awaits_head(&self) -> bool {
        !self.0.in_body.load(Ordering::Acquire)
    }

    /// Counts bytes from an HTTP/1 connection.
    fn count(&self, bytes: u64) -> Result<(), TooManyBytes> {
        self.0.answer_bytes.fetch_add(bytes, Ordering::AcqRel);
        let of_head = if self.awaits_head() { bytes } else { 0 };
        let before = self.0.head_bytes.fetch_add(of_head, Ordering::AcqRel);
        if of_head > 0 && before.saturating_add(of_head) > self.0.limit {
            return Err(TooManyBytes(self.0.limit));
        }
        Ok(())
    }
}

/// A connection with a [`Meter`].
pub(crate) struct MeteredStream<S> {
    stream: S,
    meter: Meter,
    frames: Option<FrameCounter>,
    unyielded_bytes: usize,
}

impl<S> MeteredStream<S> {
    /// Wraps a stream of HTTP/1, or of HTTP/2 if `http2` is true.
    pub(crate) fn new(stream: S, limit: u64, http2: bool) -> Self {
        let frames = http2.then(|| FrameCounter::new(limit));
        Self { stream, meter: Meter::new(limit), frames, unyielded_bytes: 0 }
    }

    /// Returns the meter.
    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    fn count(&mut self, read: &[u8]) -> io::Result<()> {
        self.unyielded_bytes = self.unyielded_bytes.saturating_add(read.len());
        let counted = match &mut self.frames {
            None => self.meter.count(u64::try_from(read.len()).unwrap_or(u64::MAX)),
            Some(frames) => frames.count(read).map(|bytes| {
                self.meter.0.answer_bytes.fetch_add(bytes, Ordering::AcqRel);
            }),
        };
        counted.map_err(|violation| {
            self.meter.0.exceeded.store(true, Ordering::Release);
            io::Error::other(violation)
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredStream<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.unyielded_bytes >= YIELD_BYTES {
            this.unyielded_bytes = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let polled = if buf.remaining() > HEAD_READ_BYTES && this.frames.is_none() && this.meter.awaits_head() {
            let mut piece = ReadBuf::new(buf.initialize_unfilled_to(HEAD_READ_BYTES));
            let polled = Pin::new(&mut this.stream).poll_read(cx, &mut piece);
            let read = piece.filled().len();
            buf.advance(read);
            polled
        } else {
            Pin::new(&mut this.stream).poll_read(cx, buf)
        };
        if polled.is_pending() {
            this.unyielded_bytes = 0;
        }
        ready!(polled)?;
        Poll::Ready(this.count(&buf.filled()[before..]))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MeteredStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::io::AsyncReadExt;

    /// Reads into `buf` once; `None` if the stream yields.
    async fn read_once<S: AsyncRead + Unpin>(
        stream: &mut MeteredStream<S>,
        buf: &mut [u8],
    ) -> Option<io::Result<usize>> {
        let mut buf = ReadBuf::new(buf);
        poll_fn(|cx| {
            Poll::Ready(match Pin::new(&mut *stream).poll_read(cx, &mut buf) {
                Poll::Ready(end) => Some(end.map(|()| buf.filled().len())),
                Poll::Pending => None,
            })
        })
        .await
    }

    #[tokio::test]
    async fn read_yields_when_more_data_is_available() {
        for http2 in [false, true] {
            let mut stream = MeteredStream::new(tokio::io::repeat(0), u64::MAX, http2);
            let mut reads = Vec::new();
            for _ in 0..20 {
                reads.push(read_once(&mut stream, &mut [0; 16 << 10]).await.map(|end| end.unwrap() >> 10));
            }
            let one_turn = [Some(16), Some(16), Some(16), Some(16), None];
            assert_eq!(reads, one_turn.repeat(4), "HTTP/2: {http2}");
        }
    }

    #[tokio::test]
    async fn read_fails_once_the_limit_before_an_answer_is_exceeded() {
        let mut stream = MeteredStream::new(tokio::io::repeat(b'x'), 100_000, false);
        let meter = stream.meter.clone();
        let mut bytes = Vec::new();
        let error = (&mut stream).take(1 << 30).read_to_end(&mut bytes).await.unwrap_err();
        assert_eq!(error.to_string(), "the server sent more than 100000 bytes before its answer");
        assert!(bytes.len() <= 100_000, "{}", bytes.len());
        assert_eq!(meter.violation(), Some(TooManyBytes(100_000)));
    }

    #[tokio::test]
    async fn read_limits_heads_and_not_bodies() {
        let mut stream = MeteredStream::new(tokio::io::repeat(b'x'), 100_000, false);
        let meter = stream.meter.clone();
        for _ in 0..3 {
            meter.begin_head();
            stream.read_exact(&mut vec![0; 50_000]).await.unwrap();
            meter.begin_body();
            stream.read_exact(&mut vec![0; 300_000]).await.unwrap();
        }
        assert_eq!(meter.answer_bytes(), 3 * 350_000);
        meter.begin_head();
        assert!(stream.read_exact(&mut vec![0; 300_000]).await.is_err());
    }

    #[tokio::test]
    async fn read_is_short_while_head_is_pending() {
        let mut stream = MeteredStream::new(tokio::io::repeat(b'x'), 100_000, false);
        let meter = stream.meter.clone();
        let mut buf = vec![0; 400_000];
        assert_eq!(read_once(&mut stream, &mut buf).await.unwrap().unwrap(), HEAD_READ_BYTES);
        meter.begin_body();
        assert_eq!(read_once(&mut stream, &mut buf).await.unwrap().unwrap(), 400_000);
    }

    #[tokio::test]
    async fn answer_bytes_exclude_http2_pings() {
        let ping = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let data = [0, 0, 2, 0, 1, 0, 0, 0, 1, b'{', b'}'];
        let bytes = [&ping[..], &ping, &data].concat();
        let mut stream = MeteredStream::new(&bytes[..], 1000, true);
        let meter = stream.meter.clone();
        stream.read_exact(&mut [0; 34]).await.unwrap();
        assert_eq!(meter.answer_bytes(), 0);
        stream.read_exact(&mut [0; 11]).await.unwrap();
        assert!(meter.answer_bytes() > 0);
    }
}
