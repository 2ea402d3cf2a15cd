//! Writes a response: its head, then its body without a copy.

use std::any::Any;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;

use actix_http::h1::Message;
use actix_http::{Response, StatusCode};
use actix_web::body::{BodySize, BoxBody, MessageBody};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::Encoder;

use super::transport::Transport;

/// A body up to this size is copied behind its head, so that one write sends both.
pub const COPIED_BODY: usize = 4 * 1024;
/// The number of bytes of a streamed body that are collected before each write.
const STREAMED_PIECE: usize = 64 * 1024;

/// A value in the extensions of a response that is dropped once the last byte is written, or the connection has ended:
/// an answer that its client does not read takes a place and memory.
pub struct UntilWritten(#[expect(dead_code, reason = "dropped")] Box<dyn Any>);

impl UntilWritten {
    /// Keeps a value.
    pub fn new(value: impl Any) -> Self {
        Self(Box::new(value))
    }
}

/// Writes a whole response, and drops what is kept until then. `head_only` is true for a response to HEAD.
///
/// # Errors
/// The connection broke, the client accepted no byte within the deadline, or the body failed.
pub(super) async fn write<IO: AsyncRead + AsyncWrite + Unpin>(
    transport: &RefCell<Transport<IO>>,
    mut response: Response<BoxBody>,
    head_only: bool,
) -> io::Result<()> {
    let _kept = response.extensions_mut().remove::<UntilWritten>();
    let (head, body) = response.into_parts();
    let has_body = !head_only && !is_bodiless(head.status());
    let mut rest = encode(transport, head, body.size())?;
    if has_body {
        match body.try_into_bytes() {
            Ok(bytes) if bytes.len() <= COPIED_BODY => transport.borrow_mut().write_buf.extend_from_slice(&bytes),
            Ok(bytes) => rest = bytes,
            Err(body) => return write_stream(transport, body).await,
        }
    }
    flush(transport, &mut rest).await
}

/// Writes raw bytes that are not an HTTP/1.1 response.
pub(super) async fn write_bytes<IO: AsyncRead + AsyncWrite + Unpin>(
    transport: &RefCell<Transport<IO>>,
    bytes: &'static [u8],
) -> io::Result<()> {
    flush(transport, &mut Bytes::from_static(bytes)).await
}

fn encode<IO>(transport: &RefCell<Transport<IO>>, head: Response<()>, size: BodySize) -> io::Result<Bytes> {
    let Transport { codec, write_buf, .. } = &mut *transport.borrow_mut();
    codec.encode(Message::Item((head, size)), write_buf)?;
    Ok(Bytes::new())
}

async fn write_stream<IO: AsyncRead + AsyncWrite + Unpin>(
    transport: &RefCell<Transport<IO>>,
    body: BoxBody,
) -> io::Result<()> {
    let mut body = std::pin::pin!(body);
    loop {
        let piece = poll_fn(|cx| body.as_mut().poll_next(cx)).await.transpose();
        let piece = piece.map_err(|error| io::Error::other(error.to_string()))?;
        let ended = piece.is_none();
        let collected = {
            let Transport { codec, write_buf, .. } = &mut *transport.borrow_mut();
            codec.encode(Message::Chunk(piece), write_buf)?;
            write_buf.len()
        };
        if ended || collected >= STREAMED_PIECE {
            flush(transport, &mut Bytes::new()).await?;
        }
        if ended {
            return Ok(());
        }
    }
}

async fn flush<IO: AsyncRead + AsyncWrite + Unpin>(
    transport: &RefCell<Transport<IO>>,
    rest: &mut Bytes,
) -> io::Result<()> {
    let written = poll_fn(|cx| transport.borrow_mut().poll_write_out(cx, rest)).await;
    if written.is_err() {
        transport.borrow_mut().write_buf = BytesMut::new();
    }
    written
}

fn is_bodiless(status: StatusCode) -> bool {
    status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}
