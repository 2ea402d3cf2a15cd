//! The wrapping of answers that clients do not ask for: gzip, and a byte order mark.

use std::io::{self, Read as _};

use bytes::{Buf as _, Bytes};
use flate2::bufread::GzDecoder;

use super::body::BodyError;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The first bytes of gzip: RFC 1952, section 2.3.1. No JSON text begins with them.
const GZIP: &[u8] = b"\x1f\x8b";
/// The most members of a gzip body. Each costs time, even an empty one.
const MAX_MEMBERS: usize = 1_000;

/// Returns true if a body with these first bytes may be a JSON object or array.
pub(super) fn may_be_json(begin: &[u8]) -> bool {
    let text = begin.strip_prefix(BYTE_ORDER_MARK).unwrap_or(begin).trim_ascii_start();
    begin.starts_with(GZIP) || matches!(text.first(), None | Some(b'{' | b'['))
}

/// Returns the text of a body without its byte order mark, decompressed to at most `limit` bytes. A body that is not
/// compressed was limited when it was read, and took its memory then. The headers do not count.
pub(super) fn decode(body: Bytes, limit: usize, take_memory: impl Fn(usize) -> bool) -> Result<Bytes, BodyError> {
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
pub(super) fn decode_beginning(beginning: Bytes, is_whole: bool, limit: usize) -> (Bytes, bool) {
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
