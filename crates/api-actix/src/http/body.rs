//! Request bodies: size limit, content type, decompression, UTF-8 and nesting checks.

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use actix_web::web::Payload;
use bytes::{Buf as _, Bytes, BytesMut};
use domain::decision::AssetPart;
use domain::error::ErrorKind;
use futures_util::StreamExt;
use tokio::time::{Instant, timeout_at};

use super::body_memory::BodyLease;
use super::encoding::ContentEncoding;
use super::error::ApiError;
use super::multipart;
use wires::client;

/// The longest pause between two pieces of a body, so that a stalled client does not hold memory.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// The longest time to receive a whole body, pauses included, so that a dripping client does not hold memory. Stored in
/// the application data because it is the same for all routes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyTimeout(pub(crate) Duration);

impl BodyTimeout {
    fn from_request(request: &HttpRequest) -> Self {
        request.app_data().copied().unwrap_or(Self(Duration::from_mins(1)))
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The form part that holds the JSON.
const REQUEST_PART: &str = "request";

/// A JSON body within its limits that has passed the scan.
#[derive(Debug)]
pub(crate) struct JsonBody(Bytes);

impl JsonBody {
    /// Reads at most `max_bytes`, compressed and decompressed, within the limits of `memory`.
    pub(crate) async fn read(
        request: &HttpRequest,
        payload: Payload,
        max_bytes: usize,
        memory: BodyLease,
    ) -> Result<(Self, BodyLease), ApiError> {
        let content_type = content_type(request.headers());
        if !content_type.is_some_and(is_json) {
            return Err(ApiError::invalid_body("Content-Type must be application/json"));
        }
        let (bytes, memory) = read_decompressed(request, payload, max_bytes, memory).await?;
        Ok((Self::from_bytes(bytes)?, memory))
    }

    /// Reads a body like [`Self::read`], or a form with further parts. `max_bytes` applies to the whole form.
    pub(crate) async fn read_with_parts(
        request: &HttpRequest,
        payload: Payload,
        max_bytes: usize,
        memory: BodyLease,
    ) -> Result<(Self, Vec<AssetPart>, BodyLease), ApiError> {
        let content_type = content_type(request.headers());
        if content_type.is_some_and(is_json) {
            let (bytes, memory) = read_decompressed(request, payload, max_bytes, memory).await?;
            return Ok((Self::from_bytes(bytes)?, Vec::new(), memory));
        }
        let boundary = content_type.and_then(multipart::boundary).ok_or_else(|| {
            ApiError::invalid_body("Content-Type must be application/json, or multipart/form-data with a boundary")
        })?;
        let (bytes, memory) = read_decompressed(request, payload, max_bytes, memory).await?;
        let (body, parts) = from_form(bytes, &boundary).await?;
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
    let mut parts = multipart::parts(form, boundary).await.map_err(fault)?;
    let index = parts.iter().position(|part| part.name == REQUEST_PART);
    let request = parts.remove(index.ok_or_else(|| fault("it has no part named request"))?);
    if request.media_type.as_deref().is_some_and(|media_type| !is_json(media_type)) {
        return Err(fault("its part named request is not application/json"));
    }
    let asset = |part: multipart::Part| AssetPart {
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
    max_bytes: usize,
    mut memory: BodyLease,
) -> Result<(Bytes, BodyLease), ApiError> {
    let headers = request.headers();
    let encoding = ContentEncoding::from_headers(headers)?;
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|bytes| bytes > max_bytes as u64) {
        return Err(ApiError::from_kind(ErrorKind::PayloadTooLarge));
    }
    let BodyTimeout(whole) = BodyTimeout::from_request(request);
    let bytes = collect(payload, max_bytes, (MAX_PAUSE, whole), &mut memory).await?;
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
    let began = Instant::now();
    let mut now = began;
    loop {
        // One timer serves both limits, because each timer has a cost.
        let left = most_in_all.saturating_sub(now - began);
        let late = |_| {
            if left < most_pause {
                timeout_error(most_in_all)
            } else {
                ApiError::invalid("The body did not arrive in time")
            }
        };
        let next = timeout_at(now + most_pause.min(left), payload.next()).await.map_err(late)?;
        let Some(piece) = next else { break };
        now = Instant::now();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::body_memory::BodyMemory;
    use crate::http::body_memory::tests::{account, memory};
    use actix_web::FromRequest;
    use actix_web::http::header::CONTENT_ENCODING;
    use actix_web::test::TestRequest;

    fn lease() -> BodyLease {
        memory(usize::MAX, usize::MAX).lease(account(1))
    }

    async fn read(request: TestRequest) -> Result<String, (u16, String)> {
        let (request, mut payload) = request.to_http_parts();
        let payload = Payload::from_request(&request, &mut payload).await.unwrap();
        let shown = |error: ApiError| (error.status().as_u16(), error.view().message.to_owned());
        let (body, _) = JsonBody::read(&request, payload, 16, lease()).await.map_err(shown)?;
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
        assert_eq!((error.status().as_u16(), error.view().message), (400, "The body did not arrive in time"));
    }

    #[actix_web::test]
    async fn dripping_body_times_out() {
        let dripping = futures_util::stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Some((Ok(Bytes::from_static(b" ")), ()))
        });
        let payload: actix_web::dev::Payload = actix_web::dev::Payload::Stream { payload: Box::pin(dripping) };
        let request = json("").app_data(BodyTimeout(Duration::from_millis(40))).to_http_request();
        let payload = Payload::from_request(&request, &mut { payload }).await.unwrap();
        let error = JsonBody::read(&request, payload, 1_000_000, lease()).await.unwrap_err();
        let received = (error.status().as_u16(), error.view().message.to_owned());
        assert_eq!(received, (400, "The body took longer than 40 ms to arrive".to_owned()));
    }

    #[actix_web::test]
    async fn body_is_rejected_when_memory_is_used_up() {
        let read = async |memory: &std::sync::Arc<BodyMemory>, compressed: Vec<u8>, encoding: &'static str| {
            let request = json(compressed).insert_header((CONTENT_ENCODING, encoding));
            let (request, mut payload) = request.to_http_parts();
            let payload = Payload::from_request(&request, &mut payload).await.unwrap();
            let read = JsonBody::read(&request, payload, 1 << 20, memory.lease(account(1))).await;
            read.map_err(|error| error.status().as_u16())
        };
        let memory = memory(250_000, 120_000);
        let plain = vec![b' '; 100_000];
        let (body, lease) = read(&memory, plain.clone(), "identity").await.unwrap();
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
}
