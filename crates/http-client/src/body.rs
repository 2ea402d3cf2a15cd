//! Bodies: bounded reading, and the wrapping that clients do not ask for: gzip, and a byte order mark.

use std::io::{self, Read as _};

use bytes::{Buf as _, Bytes, BytesMut};
use flate2::bufread::GzDecoder;
use futures_util::{Stream, TryStreamExt as _};
use http_body::{Body, Frame};
use http_body_util::combinators::{BoxBody, UnsyncBoxBody};
use http_body_util::{BodyExt, Full, StreamBody};

/// An error of any type.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request. A connection polls for a piece only when it can send it.
pub type RequestBody = BoxBody<Bytes, BoxError>;

/// Returns a body of one piece.
pub fn full(bytes: impl Into<Bytes>) -> RequestBody {
    Full::new(bytes.into()).map_err(Into::into).boxed()
}

/// Returns a body of pieces.
pub fn streamed(pieces: impl Stream<Item = Result<Bytes, BoxError>> + Send + Sync + 'static) -> RequestBody {
    StreamBody::new(pieces.map_ok(Frame::data)).boxed()
}

/// Returns a body that reports the size of each piece when the connection takes it.
pub fn observed(body: RequestBody, observe: impl Fn(usize) + Send + Sync + 'static) -> RequestBody {
    let body = body.map_frame(move |frame| {
        observe(frame.data_ref().map_or(0, Bytes::len));
        frame
    });
    body.boxed()
}

/// The body of a response, over any connection.
pub type ReceivedBody = UnsyncBoxBody<Bytes, BoxError>;

/// Returns the body of a response as one of any connection.
pub fn received<B>(body: B) -> ReceivedBody
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    body.map_err(Into::into).boxed_unsync()
}

/// Reads the next piece of a body; `None` at its end.
///
/// # Errors
/// The connection broke.
pub async fn next_piece(body: &mut ReceivedBody) -> Result<Option<Bytes>, BoxError> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The first bytes of gzip: RFC 1952, section 2.3.1. No JSON text begins with them.
const GZIP: &[u8] = b"\x1f\x8b";
/// The most members of a gzip body. Each costs time, even an empty one.
const MAX_MEMBERS: usize = 1_000;

/// The reason for an incomplete body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The body is longer than the limit, as announced or as received.
    #[error("the body is too long")]
    TooLong,
    /// The connection ended within the body.
    #[error("the connection broke within the body")]
    Broken,
    /// The beginning is unwanted.
    #[error("the body is unwanted")]
    Unwanted,
    /// The body is compressed and damaged.
    #[error("the body cannot be decompressed")]
    Compressed,
    /// No memory is left for the body.
    #[error("no memory is left for the body")]
    NoMemory,
}

/// Reads the whole body, after which the connection can be reused. A body that is announced as too long is not read;
/// one that turns out too long is dropped. Stops after the first bytes if they are unwanted, and as soon as
/// `take_memory` returns false for further bytes.
pub async fn read(
    body: &mut (impl Body<Data = Bytes> + Unpin),
    limit: usize,
    is_wanted: impl Fn(&[u8]) -> bool,
    take_memory: impl Fn(usize) -> bool,
) -> Result<Bytes, BodyError> {
    let announced = body.size_hint();
    let limit_u64 = u64::try_from(limit).unwrap_or(u64::MAX);
    if announced.lower() > limit_u64 {
        return Err(BodyError::TooLong);
    }
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        let so_far = first.len() + rest.len();
        if data.len() > limit - so_far {
            return Err(BodyError::TooLong);
        }
        if so_far == 0 && !is_wanted(&data) {
            return Err(BodyError::Unwanted);
        }
        if !take_memory(data.len()) {
            return Err(BodyError::NoMemory);
        }
        if so_far == 0 {
            // Most answers arrive in one piece, which needs no copy.
            first = data;
        } else {
            if rest.is_empty() {
                rest.reserve(usize::try_from(announced.lower()).unwrap_or(0).max(so_far + data.len()));
                rest.extend_from_slice(&first);
                first = Bytes::new();
            }
            rest.extend_from_slice(&data);
        }
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

/// Reads at most `limit` bytes into `beginning`. Returns true if that is the whole body.
pub async fn read_beginning(
    body: &mut (impl Body<Data = Bytes> + Unpin),
    beginning: &mut BytesMut,
    limit: usize,
) -> bool {
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        let Ok(data) = frame.into_data() else { continue };
        let room = limit - beginning.len();
        beginning.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return false;
        }
    }
    true
}

/// Returns true if a body with these first bytes may be a JSON object or array.
pub fn may_be_json(begin: &[u8]) -> bool {
    let text = begin.strip_prefix(BYTE_ORDER_MARK).unwrap_or(begin).trim_ascii_start();
    begin.starts_with(GZIP) || matches!(text.first(), None | Some(b'{' | b'['))
}

/// Returns the text of a body without its byte order mark, decompressed to at most `limit` bytes. A body that is not
/// compressed was limited when it was read, and took its memory then. The headers do not count.
pub fn decode(body: Bytes, limit: usize, take_memory: impl Fn(usize) -> bool) -> Result<Bytes, BodyError> {
    let mut text = body;
    if text.starts_with(GZIP) {
        let compressed_bytes = text.len();
        let mut decompressed = Vec::new();
        decompress(&text, limit, &mut decompressed)?;
        text = decompressed.into();
        if !take_memory(text.len().saturating_sub(compressed_bytes)) {
            return Err(BodyError::NoMemory);
        }
    }
    if text.starts_with(BYTE_ORDER_MARK) {
        text.advance(BYTE_ORDER_MARK.len());
    }
    Ok(text)
}

/// Returns the text of the beginning of a body, and true if that is the whole text. Of a compressed body it is what the
/// beginning decompresses to, at most `limit` bytes.
pub fn decode_beginning(beginning: Bytes, is_whole: bool, limit: usize) -> (Bytes, bool) {
    let (mut text, mut is_whole) = (beginning, is_whole);
    if text.starts_with(GZIP) {
        let mut decompressed = Vec::new();
        is_whole = decompress(&text, limit, &mut decompressed).is_ok();
        decompressed.truncate(limit);
        text = decompressed.into();
    }
    if text.starts_with(BYTE_ORDER_MARK) {
        text.advance(BYTE_ORDER_MARK.len());
    }
    (text, is_whole)
}

/// Decompresses all members into `text`, which keeps what was read before an error.
fn decompress(mut compressed: &[u8], limit: usize, text: &mut Vec<u8>) -> Result<(), BodyError> {
    let broken = |_: io::Error| BodyError::Compressed;
    for _ in 0..MAX_MEMBERS {
        let mut member = GzDecoder::new(compressed);
        let room = u64::try_from(limit.saturating_add(1) - text.len()).unwrap_or(u64::MAX);
        member.by_ref().take(room).read_to_end(text).map_err(broken)?;
        if text.len() > limit {
            return Err(BodyError::TooLong);
        }
        compressed = member.into_inner();
        if compressed.is_empty() {
            return Ok(());
        }
    }
    Err(BodyError::Compressed)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn unlimited(_: usize) -> bool {
        true
    }

    #[test]
    fn decompressed_body_takes_memory() {
        let body = gzip(&vec![b' '; 1_000]);
        let most = 1_000 - body.len();
        for (left, expected) in [(most, None), (most - 1, Some(BodyError::NoMemory))] {
            assert_eq!(decode(body.clone().into(), 9_999, |bytes| bytes <= left).err(), expected);
        }
    }

    #[test]
    fn decode_beginning_reads_damaged_and_long_bodies() {
        let text: String = (0..3_000).map(|number| format!("{number},")).collect::<Vec<_>>().concat();
        let whole = gzip(text.as_bytes());
        let read = |body: &[u8], limit| decode_beginning(Bytes::copy_from_slice(body), true, limit);
        assert_eq!(read(&whole, 1 << 20), (Bytes::from(text.clone()), true));
        let (cut, is_whole) = read(&whole[..whole.len() / 2], 1 << 20);
        assert!(!cut.is_empty() && text.as_bytes().starts_with(&cut) && !is_whole);
        assert_eq!(read(&whole, 100), (Bytes::copy_from_slice(&text.as_bytes()[..100]), false));
        assert_eq!(read(b"\xef\xbb\xbf{}", 100), (Bytes::from_static(b"{}"), true));
        assert_eq!(read(b"\x1f\x8b", 100), (Bytes::new(), false));
    }

    #[test]
    fn decode_removes_compression_and_byte_order_mark() {
        let marked = [BYTE_ORDER_MARK, b"{}"].concat();
        let members = [gzip(b""), gzip(b"\xef\xbb"), gzip(b"\xbf{"), gzip(b"}")].concat();
        for body in [b"{}".to_vec(), marked.clone(), gzip(b"{}"), gzip(&marked), members] {
            assert_eq!(decode(body.clone().into(), 5, unlimited), Ok(Bytes::from_static(b"{}")), "{body:?}");
            assert!(may_be_json(&body), "{body:?}");
        }
        assert_eq!(decode(Bytes::new(), 5, unlimited), Ok(Bytes::new()));
    }

    #[test]
    fn decompression_is_bounded() {
        let bomb = gzip(&vec![b' '; 64 << 20]);
        assert!(bomb.len() < 100 << 10);
        assert_eq!(decode(bomb.into(), 1 << 20, unlimited), Err(BodyError::TooLong));
        assert_eq!(decode(gzip(b"12345").into(), 4, unlimited), Err(BodyError::TooLong));
        assert_eq!(decode([gzip(b"123"), gzip(b"45")].concat().into(), 4, unlimited), Err(BodyError::TooLong));
        assert!(decode(gzip(b"12345").into(), 5, unlimited).is_ok());
        assert!(decode(gzip(b"").repeat(MAX_MEMBERS).into(), 5, unlimited).is_ok());
        assert_eq!(decode(gzip(b"").repeat(MAX_MEMBERS + 1).into(), 5, unlimited), Err(BodyError::Compressed));
    }

    #[test]
    fn damaged_compression_is_rejected() {
        let whole = gzip(b"{\"a\":1}");
        for end in 2..whole.len() {
            assert_eq!(decode(whole[..end].to_vec().into(), 99, unlimited), Err(BodyError::Compressed), "{end}");
        }
        assert_eq!(decode([&whole[..], b"{}"].concat().into(), 99, unlimited), Err(BodyError::Compressed));
    }

    #[test]
    fn may_be_json_checks_first_character() {
        for begin in [&b""[..], b" \r\n\t", b"{", b" [1", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n{", b"\x1f\x8b\x08"] {
            assert!(may_be_json(begin), "{begin:?}");
        }
        for begin in [&b"<html>"[..], b"data: {}", b": ping", b"event: x", b"a", b"\x28\xb5\x2f\xfd", b"\xff\xfe{"] {
            assert!(!may_be_json(begin), "{begin:?}");
        }
    }

    proptest! {
        #[test]
        fn decode_never_exceeds_limit(text in prop::collection::vec(any::<u8>(), 0..300), flip in any::<usize>()) {
            let mut damaged = gzip(&text);
            let index = flip % damaged.len();
            damaged[index] ^= 1 << (flip % 8);
            let is_compressed = damaged.starts_with(GZIP);
            if let Ok(decoded) = decode(damaged.into(), 100, unlimited) {
                prop_assert!(decoded.len() <= 100 || !is_compressed);
            }
        }
    }
}
