//! Downloads: the requested part of a file, the file's name in a header, and a body that is sent as it is read.

use std::ops::Range;

use actix_web::HttpResponse;
use actix_web::body::SizedStream;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_DISPOSITION, HeaderMap, HeaderValue, IF_RANGE, RANGE, X_CONTENT_TYPE_OPTIONS};
use bytes::Bytes;
use domain::container::ByteSource;
use domain::error::{ErrorKind, StoreError};
use futures_util::stream;
use http_server::UntilWritten;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::call::Call;
use super::error::ApiError;

/// The media type of every download: clients decode no other, and no browser runs it.
pub(crate) const OCTET_STREAM: &str = "application/octet-stream";
/// The memory that a download may take while it is sent: a piece of the store, and the piece that is written.
const MEMORY_BYTES: usize = 1 << 20;
/// The largest piece that is handed to the connection.
const PIECE_BYTES: usize = 64 * 1024;

/// The characters of RFC 8187 (`attr-char`) that are not percent-encoded, without those that some clients misread.
const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns `Content-Disposition` for a file with this path. A name in the path is sent twice: as ASCII in which other
/// characters are underscores, and encoded by RFC 8187. Neither can end the quoted string, the parameter or the header.
pub(crate) fn disposition(path: &str) -> HeaderValue {
    let name = path.rsplit('/').find(|segment| !segment.is_empty()).unwrap_or("file");
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '.' | '_' | '~' | ' ');
    let plain: String = name.chars().map(|sign| if is_plain(sign) { sign } else { '_' }).collect();
    let encoded = utf8_percent_encode(name, NAME);
    let value = HeaderValue::try_from(format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}"));
    value.unwrap_or(HeaderValue::from_static("attachment"))
}

/// The part of a file that a request selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selection {
    Whole,
    /// At least one byte.
    Part(Range<u64>),
    /// The range begins behind the end.
    Unsatisfiable,
}

/// Returns the selected part of a file of `size` bytes. A range of another version (`If-Range`), several ranges and
/// malformed ones select the whole: RFC 9110, section 14.2.
pub(crate) fn select(headers: &HeaderMap, etag: &HeaderValue, size: u64) -> Selection {
    let mut ranges = headers.get_all(RANGE);
    let (Some(range), None) = (ranges.next(), ranges.next()) else { return Selection::Whole };
    if headers.get(IF_RANGE).is_some_and(|version| version != etag) {
        return Selection::Whole;
    }
    range.to_str().ok().and_then(|range| parse_range(range, size)).unwrap_or(Selection::Whole)
}

/// Parses `bytes=first-last`, `bytes=first-` or `bytes=-length`; `None` for any other text.
fn parse_range(text: &str, size: u64) -> Option<Selection> {
    let (unit, range) = text.split_once('=')?;
    let (first, last) = range.trim_matches([' ', '\t']).split_once('-')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let selected = match (first, last) {
        ("", length) => match number(length)? {
            0 => return Some(Selection::Unsatisfiable),
            // No part of an empty file can be named.
            _ if size == 0 => return None,
            length => size.saturating_sub(length)..size,
        },
        (first, "") => number(first)?..size,
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return None;
            }
            first..last.saturating_add(1).min(size)
        }
    };
    Some(if selected.start < size { Selection::Part(selected) } else { Selection::Unsatisfiable })
}

/// Parses digits. A number beyond the type becomes its maximum, which lies behind the end of every file.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Creates the response with bytes as an attachment. The body is read from the source as the client takes it.
///
/// The operation ends with this response: a client that reads slowly takes no place, but memory, which is counted until
/// the last byte is written. `source` is `None` for a response without a body.
///
/// # Errors
/// 429 or 503 if no memory is left for another download.
pub(crate) fn respond(
    call: &Call<'_>,
    status: StatusCode,
    path: &str,
    bytes: u64,
    source: Option<Box<dyn ByteSource>>,
) -> Result<HttpResponse, ApiError> {
    let mut memory = call.lease()?;
    memory.resize(usize::try_from(bytes).unwrap_or(MEMORY_BYTES).min(MEMORY_BYTES))?;
    let request_id = call.request_id.clone();
    let on_error = move |error: &StoreError| {
        let error_kind = error.kind();
        let error: &(dyn std::error::Error + 'static) = error;
        if error_kind == ErrorKind::Unavailable {
            tracing::warn!(request.id = %request_id, error, "download ended early");
        } else {
            tracing::error!(request.id = %request_id, error, "download ended early: stored bytes are damaged");
        }
    };
    let body = SizedStream::new(bytes, pieces(source, on_error));
    let mut response = HttpResponse::build(status)
        .content_type(OCTET_STREAM)
        .insert_header((CONTENT_DISPOSITION, disposition(path)))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .body(body);
    response.extensions_mut().insert(UntilWritten::new(memory));
    Ok(response)
}

/// The state of a body between two pieces.
struct Remaining {
    source: Box<dyn ByteSource>,
    piece: Bytes,
}

/// Returns the bytes of a source in small pieces. An error ends the connection without the rest of the body.
fn pieces(
    source: Option<Box<dyn ByteSource>>,
    on_error: impl Fn(&StoreError) + 'static,
) -> impl stream::Stream<Item = Result<Bytes, StoreError>> + 'static {
    let remaining = source.map(|source| Remaining { source, piece: Bytes::new() });
    let on_error = std::rc::Rc::new(on_error);
    stream::try_unfold(remaining, move |remaining| {
        let on_error = std::rc::Rc::clone(&on_error);
        async move {
            let Some(Remaining { mut source, mut piece }) = remaining else { return Ok(None) };
            if piece.is_empty() {
                match source.next().await.inspect_err(|error| on_error(error))? {
                    Some(next) => piece = Bytes::from(next),
                    None => return Ok(None),
                }
            }
            let next = piece.split_to(piece.len().min(PIECE_BYTES));
            Ok(Some((next, Some(Remaining { source, piece }))))
        }
    })
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderName;
    use futures_util::TryStreamExt as _;
    use percent_encoding::percent_decode_str;
    use proptest::prelude::*;

    use super::*;

    fn part(range: Range<u64>) -> Selection {
        Selection::Part(range)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    const ETAG: HeaderValue = HeaderValue::from_static("\"abc\"");

    #[test]
    fn single_range_selects_a_part() {
        for (range, size, expected) in [
            ("bytes=0-0", 10, part(0..1)),
            ("bytes=0-", 10, part(0..10)),
            ("bytes=2-4", 10, part(2..5)),
            ("bytes=9-", 10, part(9..10)),
            ("bytes=9-9", 10, part(9..10)),
            ("bytes=2-99999999999999999999999999", 10, part(2..10)),
            ("bytes=-3", 10, part(7..10)),
            ("bytes=-10", 10, part(0..10)),
            ("bytes=-11", 10, part(0..10)),
            ("BYTES=1-2", 10, part(1..3)),
            ("bytes= 1-2\t", 10, part(1..3)),
            ("bytes=000-001", 10, part(0..2)),
            ("bytes=10-", 10, Selection::Unsatisfiable),
            ("bytes=10-20", 10, Selection::Unsatisfiable),
            ("bytes=99999999999999999999999999-", 10, Selection::Unsatisfiable),
            ("bytes=-0", 10, Selection::Unsatisfiable),
            ("bytes=0-", 0, Selection::Unsatisfiable),
            ("bytes=0-0", 0, Selection::Unsatisfiable),
            ("bytes=-5", 0, Selection::Whole),
            ("bytes=18446744073709551614-18446744073709551615", u64::MAX, part(u64::MAX - 1..u64::MAX)),
        ] {
            assert_eq!(select(&headers(&[("range", range)]), &ETAG, size), expected, "{range} of {size}");
        }
    }

    #[test]
    fn several_and_malformed_ranges_select_the_whole() {
        for range in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=a-b",
            "bytes=1",
            "bytes=5-4",
            "bytes=1-2,4-5",
            "bytes=1-2,",
            "bytes=,1-2",
            "items=0-1",
            "bytes 0-1",
            "bytes=0x1-2",
            "bytes=+1-2",
            "bytes=1 -2",
            "bytes=1- 2",
            "bytes=--1",
            "bytes=1-2-3",
            "bytes==1-2",
            "0-1",
            "bytes=\u{a0}1-2",
            "bytes=1.0-2",
        ] {
            assert_eq!(select(&headers(&[("range", range)]), &ETAG, 10), Selection::Whole, "{range:?}");
        }
        let twice = headers(&[("range", "bytes=0-1"), ("range", "bytes=0-1")]);
        assert_eq!(select(&twice, &ETAG, 10), Selection::Whole);
        assert_eq!(select(&headers(&[]), &ETAG, 10), Selection::Whole);
    }

    #[test]
    fn range_of_another_version_selects_the_whole() {
        for (version, expected) in [
            ("\"abc\"", part(0..1)),
            ("\"abd\"", Selection::Whole),
            ("W/\"abc\"", Selection::Whole),
            ("Fri, 27 Nov 2026 07:00:00 GMT", Selection::Whole),
        ] {
            let headers = headers(&[("range", "bytes=0-0"), ("if-range", version)]);
            assert_eq!(select(&headers, &ETAG, 10), expected, "{version}");
        }
    }

    #[test]
    fn disposition_has_the_last_segment_in_both_forms() {
        for (path, plain, encoded) in [
            ("out/report.csv", "report.csv", "report.csv"),
            ("a b~1-2_3.txt", "a b~1-2_3.txt", "a%20b~1-2_3.txt"),
            ("x\"; filename=\"evil.exe", "x__ filename__evil.exe", "x%22%3B%20filename%3D%22evil.exe"),
            ("a\r\nSet-Cookie: x=1", "a__Set-Cookie_ x_1", "a%0D%0ASet-Cookie%3A%20x%3D1"),
            ("a\\\"b", "a__b", "a%5C%22b"),
            ("\u{202e}gpj.exe", "_gpj.exe", "%E2%80%AEgpj.exe"),
            ("עברית", "_____", "%D7%A2%D7%91%D7%A8%D7%99%D7%AA"),
            ("🦀.rs", "_.rs", "%F0%9F%A6%80.rs"),
            ("100%25.txt", "100_25.txt", "100%2525.txt"),
            ("it's(1)*.txt", "it_s_1__.txt", "it%27s%281%29%2A.txt"),
            ("a\0\u{7f}\u{85}b", "a___b", "a%00%7F%C2%85b"),
            ("", "file", "file"),
            ("a/", "a", "a"),
        ] {
            let expected = format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}");
            assert_eq!(disposition(path).to_str().unwrap(), expected, "{path:?}");
        }
    }

    proptest! {
        #[test]
        fn any_name_is_decoded_from_a_safe_header(name in "\\PC{0,40}|[\\x00-\\x7f]{0,40}|\\p{Any}{0,40}") {
            let value = disposition(&name);
            let text = value.to_str().unwrap();
            let rest = text.strip_prefix("attachment; filename=\"").unwrap();
            let (plain, encoded) = rest.split_once("\"; filename*=UTF-8''").unwrap();
            prop_assert!(plain.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~ ".contains(&byte)));
            prop_assert!(encoded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)));
            let decoded = percent_decode_str(encoded).decode_utf8().unwrap().into_owned();
            let last = name.rsplit('/').find(|segment| !segment.is_empty()).unwrap_or("file");
            prop_assert_eq!(decoded, last);
        }

        #[test]
        fn any_range_lies_within_the_file(range in "bytes=[0-9]{0,3}-[0-9]{0,3}|\\PC{0,20}", size in 0_u64..200) {
            if let Some(Selection::Part(part)) = parse_range(&range, size) {
                prop_assert!(part.start < part.end && part.end <= size);
            }
        }
    }

    /// A source of one large piece, then an error.
    struct LargePiece(Option<Vec<u8>>);

    #[async_trait::async_trait]
    impl ByteSource for LargePiece {
        async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
            self.0.take().map(Some).ok_or_else(|| StoreError::Corrupt("another SHA-256".to_owned()))
        }
    }

    #[actix_web::test]
    async fn body_is_sent_in_small_pieces_and_ends_with_the_error() {
        let reported = std::rc::Rc::new(std::cell::Cell::new(0));
        let count = std::rc::Rc::clone(&reported);
        let source = LargePiece(Some(vec![7; 3 * PIECE_BYTES + 1]));
        let mut body = std::pin::pin!(pieces(Some(Box::new(source)), move |_| count.set(count.get() + 1)));
        for expected in [PIECE_BYTES, PIECE_BYTES, PIECE_BYTES, 1] {
            assert_eq!(body.try_next().await.unwrap().map(|piece| piece.len()), Some(expected));
        }
        assert!(body.try_next().await.is_err());
        assert_eq!(reported.get(), 1);
    }
}
