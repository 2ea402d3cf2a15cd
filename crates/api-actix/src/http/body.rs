//! Request bodies: size limit, content type, UTF-8 and nesting checks, and the parts of forms.
//!
//! `multer` finds the parts. It searches the name of a part inside quoted file names too, so names are parsed by
//! actix-web.

use std::convert::Infallible;
use std::future::ready;
use std::task::Poll;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header::{CONTENT_LENGTH, CONTENT_TYPE, ContentDisposition, HeaderMap, HeaderValue};
use actix_web::web::Payload;
use bytes::{Buf as _, Bytes, BytesMut};
use domain::decision::AssetPart;
use domain::error::ErrorKind;
use futures_util::{StreamExt, poll, stream};
use multer::{Error, Field, Multipart};
use tokio::time::{Instant, timeout_at};
use wires::client;

use super::admission::BodyLease;
use super::encoding::ContentEncoding;
use super::error::ApiError;

/// The longest pause between two pieces of a body, so that a stalled client does not hold memory.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// The bounds of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyBounds {
    /// The maximum size, compressed and decompressed, that of a whole form included.
    pub(crate) max_bytes: usize,
    /// The longest time to receive a whole body, pauses included, so that a dripping client does not hold memory.
    pub(crate) timeout: Duration,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The form part that holds the JSON.
const REQUEST_PART: &str = "request";

/// A JSON body within its limits that has passed the scan.
#[derive(Debug, Clone)]
pub(crate) struct JsonBody(Bytes);

impl JsonBody {
    /// Reads a JSON body within its bounds and the limits of `memory`; if `takes_form` is true, also a form with further
    /// parts.
    pub(crate) async fn read(
        request: &HttpRequest,
        payload: Payload,
        bounds: BodyBounds,
        memory: BodyLease,
        takes_form: bool,
    ) -> Result<(Self, Vec<AssetPart>, BodyLease), ApiError> {
        let content_type = content_type(request.headers());
        let is_json = content_type.is_some_and(is_json);
        let boundary = content_type.filter(|_| takes_form && !is_json).and_then(boundary);
        if boundary.is_none() && !is_json {
            let form = if takes_form { ", or multipart/form-data with a boundary" } else { "" };
            return Err(ApiError::invalid_body(format!("Content-Type must be application/json{form}")));
        }
        let (bytes, memory) = read_decompressed(request, payload, bounds, memory).await?;
        let (body, parts) = match boundary {
            Some(boundary) => from_form(bytes, &boundary).await?,
            None => (Self::from_bytes(bytes)?, Vec::new()),
        };
        Ok((body, parts, memory))
    }

    /// Ignores a byte order mark: RFC 8259, section 8.1.
    fn from_bytes(mut bytes: Bytes) -> Result<Self, ApiError> {
        if bytes.starts_with(BYTE_ORDER_MARK) {
            bytes.advance(BYTE_ORDER_MARK.len());
        }
        if bytes.is_empty() {
            return Err(ApiError::invalid_body("The body is empty; a JSON object is expected"));
        }
        Ok(Self(bytes))
    }

    /// Returns the length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the body as text that is safe to parse.
    pub(crate) fn text(&self) -> Result<&str, ApiError> {
        Ok(client::text(&self.0)?)
    }
}

/// Splits a form into its request part and the asset parts.
pub(crate) async fn from_form(form: Bytes, boundary: &str) -> Result<(JsonBody, Vec<AssetPart>), ApiError> {
    let fault = |fault: &str| ApiError::invalid_body(format!("The body is not a valid multipart form: {fault}"));
    let mut parts = parts(form, boundary).await.map_err(fault)?;
    let index = parts.iter().position(|part| part.name == REQUEST_PART);
    let request = parts.remove(index.ok_or_else(|| fault("it has no part named request"))?);
    if request.media_type.as_deref().is_some_and(|media_type| !is_json(media_type)) {
        return Err(fault("its part named request is not application/json"));
    }
    let asset = |part: Part| AssetPart {
        name: part.name,
        media_type: part.media_type,
        data: std::sync::Arc::from(&part.data[..]),
    };
    Ok((JsonBody::from_bytes(request.data)?, parts.into_iter().map(asset).collect()))
}

/// Returns the content type, if present.
fn content_type(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(CONTENT_TYPE);
    let only = values.next().filter(|_| values.next().is_none());
    only.and_then(|value| value.to_str().ok())
}

async fn read_decompressed(
    request: &HttpRequest,
    payload: Payload,
    BodyBounds { max_bytes, timeout }: BodyBounds,
    mut memory: BodyLease,
) -> Result<(Bytes, BodyLease), ApiError> {
    let headers = request.headers();
    let encoding = ContentEncoding::from_headers(headers)?;
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|bytes| bytes > max_bytes as u64) {
        return Err(ApiError::from_kind(ErrorKind::PayloadTooLarge));
    }
    let bytes = collect(payload, max_bytes, (MAX_PAUSE, timeout), &mut memory).await?;
    // An empty body needs no decompression, regardless of its encoding.
    if bytes.is_empty() { Ok((bytes, memory)) } else { encoding.decompress(bytes, max_bytes, memory).await }
}

/// Returns true for `application/json` and `application/<something>+json`, with or without parameters.
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().as_bytes();
    let Some((kind, subtype)) = essence.split_first_chunk::<12>() else { return false };
    let is_of_vendor =
        |(vendor, suffix): (&[u8], &[u8; 5])| !vendor.is_empty() && suffix.eq_ignore_ascii_case(b"+json");
    kind.eq_ignore_ascii_case(b"application/")
        && (subtype.eq_ignore_ascii_case(b"json") || subtype.split_last_chunk().is_some_and(is_of_vendor))
}

fn timeout_error(whole: Duration) -> ApiError {
    ApiError::invalid(format!("The body took longer than {} ms to arrive", whole.as_millis()))
}

/// Reads the whole body. A body in one piece is not copied.
async fn collect(
    mut payload: Payload,
    max_bytes: usize,
    (most_pause, most_in_all): (Duration, Duration),
    memory: &mut BodyLease,
) -> Result<Bytes, ApiError> {
    let mut whole = Bytes::new();
    let mut joined = BytesMut::new();
    let mut began = None;
    loop {
        let next = match poll!(payload.next()) {
            Poll::Ready(next) => next,
            Poll::Pending => {
                // One timer serves both limits, because each timer has a cost.
                let now = Instant::now();
                let left = most_in_all.saturating_sub(now - *began.get_or_insert(now));
                let late = |_| {
                    if left < most_pause {
                        timeout_error(most_in_all)
                    } else {
                        ApiError::invalid("The body did not arrive in time")
                    }
                };
                timeout_at(now + most_pause.min(left), payload.next()).await.map_err(late)?
            }
        };
        let Some(piece) = next else { break };
        let piece = piece.map_err(|_| ApiError::invalid("The body could not be read completely"))?;
        if whole.len() + joined.len() + piece.len() > max_bytes {
            return Err(ApiError::from_kind(ErrorKind::PayloadTooLarge));
        }
        memory.resize(joined.capacity().max(whole.len() + joined.len() + piece.len()))?;
        if whole.is_empty() && joined.is_empty() {
            whole = piece;
        } else {
            if joined.is_empty() {
                joined.extend_from_slice(&std::mem::take(&mut whole));
            }
            joined.extend_from_slice(&piece);
            memory.resize(joined.capacity())?;
        }
    }
    Ok(if joined.is_empty() { whole } else { joined.freeze() })
}

/// The maximum number of parts of a body.
const MAX_PARTS: usize = 64;
/// The maximum size of a part's headers, in bytes.
const MAX_HEAD_BYTES: usize = 8 << 10;

/// One part of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) media_type: Option<String>,
    pub(crate) data: Bytes,
}

/// Returns the boundary of a `multipart/form-data` content type; `None` for other types or without a boundary.
pub(crate) fn boundary(content_type: &str) -> Option<String> {
    let parsed = parse_parameters(content_type).filter(|parsed| parsed.is_ext("multipart/form-data"))?;
    let boundary = parsed.get_unknown("boundary")?;
    let fits = (1..=70).contains(&boundary.len()) && boundary.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    fits.then(|| boundary.to_owned())
}

/// Parses a type with parameters: the grammar of Content-Disposition is also that of Content-Type.
fn parse_parameters(header: &str) -> Option<ContentDisposition> {
    ContentDisposition::from_raw(&HeaderValue::from_bytes(header.as_bytes()).ok()?).ok()
}

/// Returns the parts of a body, in order. Takes the body, so that it is freed when the parser has copied it.
///
/// # Errors
/// Describes the violation without quoting the body.
pub(crate) async fn parts(mut body: Bytes, boundary: &str) -> Result<Vec<Part>, &'static str> {
    let first = first_boundary(&body, boundary).ok_or("the body does not begin with its boundary")?;
    body.advance(first);
    let mut form = Multipart::new(stream::once(ready(Ok::<_, Infallible>(body))), boundary);
    let mut parts: Vec<Part> = Vec::new();
    while let Some(field) = form.next_field().await.map_err(|error| describe(&error))? {
        let part = read_part(field).await?;
        if parts.iter().any(|other| other.name == part.name) {
            return Err("two parts of the body have one name");
        }
        if parts.len() == MAX_PARTS {
            return Err("the body has more than 64 parts");
        }
        parts.push(part);
    }
    Ok(parts)
}

/// Finds the boundary at the start of a line, because `multer` takes one in the middle of a line too.
fn first_boundary(body: &[u8], boundary: &str) -> Option<usize> {
    let wanted = format!("--{boundary}");
    let starts_line = |at: &usize| *at == 0 || body[..*at].ends_with(b"\r\n");
    let line_feeds = body.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let mut lines = std::iter::once(0).chain(line_feeds.map(|(at, _)| at + 1)).filter(starts_line);
    lines.find(|at| body[*at..].starts_with(wanted.as_bytes()))
}

fn describe(error: &Error) -> &'static str {
    match error {
        Error::IncompleteStream | Error::IncompleteFieldData { .. } => {
            "the body ends before its last boundary, or a boundary is followed by what is no line"
        }
        _ => "the headers of a part are not valid",
    }
}

/// Reads one part, whose data is complete.
async fn read_part(mut field: Field<'_>) -> Result<Part, &'static str> {
    let headers = field.headers();
    if headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>() > MAX_HEAD_BYTES {
        return Err("the headers of a part are too large");
    }
    let header = |name: &str| {
        let value = headers.get(name).map(|value| std::str::from_utf8(value.as_bytes()));
        value.transpose().map_err(|_| "the headers of a part are not UTF-8")
    };
    if header("content-transfer-encoding")?.is_some_and(|encoding| !is_plain(encoding)) {
        return Err("a part of the body is encoded; parts are taken as they are");
    }
    let media_type = header("content-type")?.map(|value| value.trim().to_owned());
    let disposition = header("content-disposition")?.and_then(parse_parameters).ok_or(NO_NAME)?;
    if !disposition.is_form_data() {
        return Err("a part of the body is no form-data");
    }
    let name = disposition.get_name().ok_or(NO_NAME)?.to_owned();
    let data = field.chunk().await.map_err(|error| describe(&error))?.unwrap_or_default();
    Ok(Part { name, media_type, data })
}

const NO_NAME: &str = "a part of the body has no name";

/// Returns true for encodings that change no bytes. Others are deprecated for forms (RFC 7578, 4.7) and are rejected.
fn is_plain(encoding: &str) -> bool {
    ["7bit", "8bit", "binary"].iter().any(|plain| encoding.trim().eq_ignore_ascii_case(plain))
}

#[cfg(test)]
mod tests {
    use actix_web::FromRequest;
    use actix_web::http::header::CONTENT_ENCODING;
    use actix_web::test::TestRequest;
    use futures_util::FutureExt;
    use proptest::prelude::*;

    use super::*;
    use crate::http::admission::BodyMemory;
    use crate::http::admission::memory_tests::{account, memory};

    fn lease() -> BodyLease {
        memory(usize::MAX, usize::MAX).lease(account(1))
    }

    fn bounds(max_bytes: usize) -> BodyBounds {
        BodyBounds { max_bytes, timeout: Duration::from_mins(1) }
    }

    async fn read(request: TestRequest) -> Result<String, (u16, String)> {
        let (request, mut payload) = request.to_http_parts();
        let payload = Payload::from_request(&request, &mut payload).await.unwrap();
        let shown = |error: ApiError| (error.status().as_u16(), error.text().to_owned());
        let (body, ..) = JsonBody::read(&request, payload, bounds(16), lease(), false).await.map_err(shown)?;
        body.text().map(str::to_owned).map_err(shown)
    }

    fn json(body: impl Into<Bytes>) -> TestRequest {
        TestRequest::post().insert_header((CONTENT_TYPE, "application/json")).set_payload(body)
    }

    #[actix_web::test]
    async fn stalled_body_times_out() {
        let begun = futures_util::stream::once(async { Ok(Bytes::from_static(b"{")) });
        let payload: actix_web::dev::Payload =
            actix_web::dev::Payload::Stream { payload: Box::pin(begun.chain(futures_util::stream::pending())) };
        let request = TestRequest::post().to_http_request();
        let payload = Payload::from_request(&request, &mut { payload }).await.unwrap();
        let error = collect(payload, 16, (Duration::from_millis(20), Duration::MAX), &mut lease()).await.unwrap_err();
        assert_eq!((error.status().as_u16(), error.text()), (400, "The body did not arrive in time"));
    }

    #[actix_web::test]
    async fn dripping_body_times_out() {
        let dripping = futures_util::stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Some((Ok(Bytes::from_static(b" ")), ()))
        });
        let payload: actix_web::dev::Payload = actix_web::dev::Payload::Stream { payload: Box::pin(dripping) };
        let bounds = BodyBounds { max_bytes: 1_000_000, timeout: Duration::from_millis(40) };
        let request = json("").to_http_request();
        let payload = Payload::from_request(&request, &mut { payload }).await.unwrap();
        let error = JsonBody::read(&request, payload, bounds, lease(), false).await.unwrap_err();
        let received = (error.status().as_u16(), error.text().to_owned());
        assert_eq!(received, (400, "The body took longer than 40 ms to arrive".to_owned()));
    }

    #[actix_web::test]
    async fn body_is_rejected_when_memory_is_used_up() {
        let read = async |memory: &std::sync::Arc<BodyMemory>, compressed: Vec<u8>, encoding: &'static str| {
            let request = json(compressed).insert_header((CONTENT_ENCODING, encoding));
            let (request, mut payload) = request.to_http_parts();
            let payload = Payload::from_request(&request, &mut payload).await.unwrap();
            let read = JsonBody::read(&request, payload, bounds(1 << 20), memory.lease(account(1)), false).await;
            read.map_err(|error| error.status().as_u16())
        };
        let memory = memory(250_000, 120_000);
        let plain = vec![b' '; 100_000];
        let (body, _, lease) = read(&memory, plain.clone(), "identity").await.unwrap();
        assert_eq!((body.len(), memory.held()), (100_000, 100_000));
        assert_eq!(read(&memory, plain.clone(), "identity").await.unwrap_err(), 429);
        drop(lease);
        assert_eq!(memory.held(), 0);
        // A small body that decompresses beyond the share.
        let bomb = compressed(&vec![b' '; 1 << 20]);
        assert!(bomb.len() < 2_000);
        assert_eq!(read(&memory, bomb.clone(), "gzip").await.unwrap_err(), 429);
        let mut others = [memory.lease(account(2)), memory.lease(account(3))];
        for other in &mut others {
            other.resize(90_000).unwrap();
        }
        assert_eq!(read(&memory, bomb, "gzip").await.unwrap_err(), 503);
        assert_eq!(memory.held(), 180_000, "a rejected body holds nothing");
    }

    fn compressed(plain: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut encoder, plain).unwrap();
        encoder.finish().unwrap()
    }

    #[actix_web::test]
    async fn json_content_types_are_accepted() {
        for good in
            ["application/json", "Application/JSON; charset=utf-8", "application/vnd.acme+json", "application/json;x"]
        {
            let request = TestRequest::post().insert_header((CONTENT_TYPE, good)).set_payload("{}");
            assert_eq!(read(request).await.unwrap(), "{}", "{good}");
        }
    }

    #[actix_web::test]
    async fn other_content_types_are_rejected() {
        for bad in [
            "text/plain",
            "text/json",
            "application/jsonp",
            "application/+json",
            "application/x-www-form-urlencoded",
            "",
        ] {
            let request = TestRequest::post().insert_header((CONTENT_TYPE, bad)).set_payload("{}");
            assert_eq!(read(request).await.unwrap_err().0, 400, "{bad}");
        }
        assert_eq!(read(TestRequest::post().set_payload("{}")).await.unwrap_err().0, 400);
        let twice = json("{}").append_header((CONTENT_TYPE, "application/json"));
        assert_eq!(read(twice).await.unwrap_err().0, 400);
    }

    #[actix_web::test]
    async fn body_above_limit_is_rejected_by_content_length_and_by_bytes() {
        let announced = json("{}").insert_header((CONTENT_LENGTH, "17"));
        assert_eq!(read(announced).await.unwrap_err().0, 413);
        assert_eq!(read(json(vec![b' '; 17])).await.unwrap_err(), (413, "Request payload too large".to_owned()));
        assert!(read(json(vec![b' '; 16])).await.is_ok());
    }

    #[actix_web::test]
    async fn body_rejects_invalid_utf8() {
        assert!(read(json("")).await.unwrap_err().1.contains("empty"));
        assert!(read(json(&b"{\"\xff\":1}"[..])).await.unwrap_err().1.contains("UTF-8"));
        assert!(read(json(r#""\ud800""#)).await.unwrap_err().1.contains("surrogate"));
        let compressed = json("{}").insert_header((CONTENT_ENCODING, "gzip"));
        assert_eq!(read(compressed).await.unwrap_err(), (400, "The body is sent as gzip and is cut short".to_owned()));
        let unknown = json("{}").insert_header((CONTENT_ENCODING, "br"));
        assert_eq!(read(unknown).await.unwrap_err().0, 415);
        assert!(read(json("{}").insert_header((CONTENT_ENCODING, "identity"))).await.is_ok());
    }

    /// The name, media type and content of a part.
    type Shown = (String, Option<String>, String);

    fn parts_of(body: &str) -> Result<Vec<Shown>, &'static str> {
        let parts = parts(Bytes::from(body.to_owned()), "B").now_or_never().expect("the body is complete")?;
        let shown = |part: Part| (part.name, part.media_type, String::from_utf8(part.data.to_vec()).unwrap());
        Ok(parts.into_iter().map(shown).collect())
    }

    #[test]
    fn boundary_is_read_from_content_type() {
        assert_eq!(boundary("multipart/form-data; boundary=abc").as_deref(), Some("abc"));
        assert_eq!(boundary("Multipart/Form-Data;charset=x; Boundary=\"a b;\\\"c\"").as_deref(), Some("a b;\"c"));
        for other in [
            "multipart/form-data",
            "multipart/mixed; boundary=a",
            "application/json; boundary=a",
            "multipart/form-data; boundary=",
            "multipart/form-data; boundary=\"open",
            &format!("multipart/form-data; boundary={}", "x".repeat(71)),
        ] {
            assert_eq!(boundary(other), None, "{other}");
        }
    }

    #[test]
    fn parts_keep_order_and_bytes() {
        let body = "--B\r\nContent-Disposition: form-data; name=\"request\"\r\nContent-Type: application/json\r\n\r\n{}\r\n\
                    --B  \r\ncontent-disposition: form-data; filename=\"a;name=x\"; name=\"asset-0\"\r\n\r\n\r\n--b\r\n-\r\n\
                    --B\r\nContent-Disposition: form-data; name=empty\r\n\r\n\r\n--B--\r\nepilogue";
        assert_eq!(
            parts_of(body).unwrap(),
            [
                ("request".to_owned(), Some("application/json".to_owned()), "{}".to_owned()),
                ("asset-0".to_owned(), None, "\r\n--b\r\n-".to_owned()),
                ("empty".to_owned(), None, String::new()),
            ]
        );
        let binary =
            "--B\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: Binary\r\n\r\nx\r\n--B--";
        assert_eq!(parts_of(binary).unwrap(), [("a".to_owned(), None, "x".to_owned())]);
        assert_eq!(parts_of("--B--").unwrap(), []);
        assert_eq!(parts_of("preamble\r\n--B--\r\n").unwrap(), []);
        let within_line = "x--B\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--B--";
        assert_eq!(parts_of(within_line).unwrap(), []);
    }

    #[test]
    fn parts_rejects_malformed_forms() {
        let named = "Content-Disposition: form-data; name=\"a\"";
        for body in [
            String::new(),
            "B".to_owned(),
            "--B".to_owned(),
            "--B\r\n".to_owned(),
            "--Bx".to_owned(),
            "--Bxy\r\n".to_owned(),
            format!("--B\r\n{named}\r\n\r\nx"),
            format!("--B\r\n{named}\r\n--B--"),
            "--B\r\n\r\nx\r\n--B--".to_owned(),
            format!("--B\r\n{named}\r\nContent-Transfer-Encoding: base64\r\n\r\neA==\r\n--B--"),
            "--B\r\nContent-Type: x\r\n\r\nx\r\n--B--".to_owned(),
            "--B\r\nContent-Disposition: attachment; name=a\r\n\r\nx\r\n--B--".to_owned(),
            "--B\r\nno colon\r\n\r\nx\r\n--B--".to_owned(),
            format!("--B\r\n{named}\r\n\r\nx\r\n--B\r\n{named}\r\n\r\ny\r\n--B--"),
            format!("--B\r\n{named}\r\nX: {}\r\n\r\nx\r\n--B--", "x".repeat(9_000)),
        ] {
            assert!(parts_of(&body).is_err(), "{body:?}");
        }
        let many: String = (0..65).fold(String::new(), |body, i| {
            format!("{body}--B\r\nContent-Disposition: form-data; name={i}\r\n\r\n\r\n")
        });
        assert_eq!(parts_of(&format!("{many}--B--")), Err("the body has more than 64 parts"));
    }

    proptest! {
        #[test]
        fn parts_never_panics(pieces in prop::collection::vec(prop::sample::select(vec![
            "--B", "\r\n", "--", "Content-Disposition: form-data; name=", "\"", "a", ":", " ", "\r", "\n", "\\", ";", "=", "é",
        ]), 0..30)) {
            let _ = parts_of(&pieces.concat());
            boundary(&pieces.concat());
        }

        #[test]
        fn parts_round_trip(contents in prop::collection::vec("[\r\n\\-aB\"é]{0,12}", 1..5)) {
            prop_assume!(contents.iter().all(|content| !format!("\r\n{content}").contains("\r\n--B")));
            let mut body = String::new();
            for (index, content) in contents.iter().enumerate() {
                let head = format!("Content-Disposition: form-data; name=\"{index}\"");
                body = [&body, "--B\r\n", &head, "\r\n\r\n", content, "\r\n"].concat();
            }
            let read = parts_of(&(body + "--B--\r\n")).unwrap();
            prop_assert_eq!(read.into_iter().map(|(_, _, content)| content).collect::<Vec<_>>(), contents);
        }
    }
}
