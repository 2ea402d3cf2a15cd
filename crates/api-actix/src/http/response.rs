//! Response bodies: envelopes, entity tags, JSON without floats, and closed sets of values.

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use chrono::{SecondsFormat, Utc};
use domain::error::ErrorKind;
use domain::json::Json;
use domain::money::Usd;
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::error::ApiError;

/// The types of members, with the names by which schemas know them.
pub(crate) type Object = Box<RawValue>;
pub(crate) type Decimal = Box<RawValue>;
pub(crate) type DateTime = String;
pub(crate) type Uuid = String;

/// One record: `{"data":…}`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Data<T> {
    pub(crate) data: T,
}

/// A page of records: `{"data":[…],"total_count":…}`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<T> {
    pub(crate) data: Vec<T>,
    /// The total number of records, including those on other pages.
    pub(crate) total_count: u64,
}

/// A page of an append-only list: `{"data":[…],"next_cursor":…}`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CursorPage<T> {
    pub(crate) data: Vec<T>,
    /// The cursor of the next page; null at the end.
    #[schema(required)]
    pub(crate) next_cursor: Option<String>,
}

impl<T: Serialize + ToSchema> CursorPage<T> {
    /// Creates the response with a page of records.
    pub(crate) fn respond(self) -> HttpResponse {
        HttpResponse::Ok().json(self)
    }
}

/// Confirms a deletion.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Deleted {
    deleted: bool,
}

impl<T: Serialize + ToSchema> Data<T> {
    /// Creates the response with one record.
    pub(crate) fn respond(status: StatusCode, data: T) -> HttpResponse {
        HttpResponse::build(status).json(Self { data })
    }
}

impl<T: Serialize + ToSchema> Page<T> {
    /// Creates the response with a page of records.
    pub(crate) fn respond(data: Vec<T>, total_count: u64) -> HttpResponse {
        HttpResponse::Ok().json(Self { data, total_count })
    }
}

impl Deleted {
    /// Creates the response to a deletion.
    pub(crate) fn respond() -> HttpResponse {
        HttpResponse::Ok().json(Self { deleted: true })
    }
}

/// The policy of responses that need a key: shared caches must not store them, and clients must revalidate each time.
pub(crate) const CACHE_POLICY: HeaderValue = HeaderValue::from_static("private, no-cache");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A response body with its entity tag, ready to be sent any number of times.
#[derive(Debug, Clone)]
pub(crate) struct TaggedBody {
    body: Bytes,
    etag: HeaderValue,
}

impl TaggedBody {
    /// Computes the tag from the content.
    pub(crate) fn new(body: String) -> Self {
        let digest = Sha256::digest(body.as_bytes());
        let mut tag = String::with_capacity(34);
        tag.push('"');
        for byte in &digest[..16] {
            tag.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
            tag.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
        }
        tag.push('"');
        // Quotes and hex digits are always a valid header value. `*` as a fallback would match too often.
        let etag = HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\""));
        Self { body: Bytes::from(body), etag }
    }

    /// Serialises the content and computes its tag.
    pub(crate) fn json(content: &(impl Serialize + ToSchema)) -> Result<Self, ApiError> {
        let body = serde_json::to_string(content);
        body.map(Self::new).map_err(|error| ApiError::from_kind(ErrorKind::Internal).caused_by(error))
    }

    /// Returns 200 with the body, or 304 if the client has it.
    pub(crate) fn respond(&self, request: &HttpRequest) -> HttpResponse {
        if is_known(request.headers(), self.etag.as_bytes()) {
            return not_modified(self.etag.clone());
        }
        let mut response = HttpResponse::with_body(StatusCode::OK, self.body.clone()).map_into_boxed_body();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ETAG, self.etag.clone());
        headers.insert(CACHE_CONTROL, CACHE_POLICY);
        response
    }
}

/// Creates the response to a client that has the content with this tag.
pub(crate) fn not_modified(etag: HeaderValue) -> HttpResponse {
    let response = HttpResponse::with_body(StatusCode::NOT_MODIFIED, actix_web::body::None::new());
    let mut response = response.map_into_boxed_body();
    response.headers_mut().insert(ETAG, etag);
    response.headers_mut().insert(CACHE_CONTROL, CACHE_POLICY);
    response
}

/// Returns true if an entry of any `If-None-Match` list is `*` or the tag, weak or strong.
pub(crate) fn is_known(headers: &HeaderMap, etag: &[u8]) -> bool {
    headers.get_all(IF_NONE_MATCH).any(|list| {
        list.as_bytes()
            .split(|&byte| byte == b',')
            .map(<[u8]>::trim_ascii)
            .any(|candidate| candidate == b"*" || candidate.strip_prefix(b"W/").unwrap_or(candidate) == etag)
    })
}

/// Wraps JSON text. Invalid JSON becomes null.
pub(crate) fn raw(text: String) -> Box<RawValue> {
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Returns opaque JSON, byte for byte.
pub(crate) fn opaque(json: &Json) -> Box<RawValue> {
    raw(json.text().to_owned())
}

/// Formats a time as RFC 3339 in UTC, with milliseconds.
pub(crate) fn time(at: chrono::DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Returns a time that a caller wrote: with a fraction of a second only if it has one.
pub(crate) fn written_time(at: chrono::DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// Returns an amount as a number with all its digits.
pub(crate) fn usd(amount: Usd) -> Box<RawValue> {
    raw(amount.to_string())
}

/// A budget period in UTC; weeks start on Monday.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the schema of names")]
#[serde(rename_all = "lowercase")]
pub(crate) enum ResetInterval {
    Daily,
    Weekly,
    Monthly,
}

/// The action on a match.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the schema of names")]
#[serde(rename_all = "lowercase")]
pub(crate) enum FilterAction {
    Block,
    Redact,
    Flag,
}

#[cfg(test)]
mod tests {
    use actix_web::body::{MessageBody, to_bytes};
    use actix_web::test::TestRequest;
    use serde_json::{json, to_value};
    use utoipa::PartialSchema;

    use super::*;

    async fn written(response: HttpResponse) -> String {
        String::from_utf8(to_bytes(response.into_body()).await.unwrap().to_vec()).unwrap()
    }

    #[actix_web::test]
    async fn envelopes_have_their_members_in_order() {
        assert_eq!(written(Data::respond(StatusCode::CREATED, 7)).await, r#"{"data":7}"#);
        assert_eq!(written(Page::respond(vec!["a"], 9)).await, r#"{"data":["a"],"total_count":9}"#);
        assert_eq!(written(Deleted::respond()).await, r#"{"deleted":true}"#);
    }

    fn answer(if_none_match: &[&str]) -> HttpResponse {
        let request = if_none_match
            .iter()
            .fold(TestRequest::get(), |request, value| request.append_header((IF_NONE_MATCH, *value)));
        TaggedBody::new("{}".to_owned()).respond(&request.to_http_request())
    }

    #[test]
    fn etag_is_strong_and_depends_on_content() {
        let etag = answer(&[]).headers().get(ETAG).unwrap().clone();
        assert_eq!(etag, "\"44136fa355b3678a1146ad16f7e8649e\"");
        assert_ne!(TaggedBody::new("{ }".to_owned()).etag, etag);
    }

    #[test]
    fn matching_etag_returns_304_without_body() {
        let etag = "\"44136fa355b3678a1146ad16f7e8649e\"";
        for lists in [
            vec![etag],
            vec![&*format!("W/{etag}")],
            vec!["*"],
            vec!["\"a\" , ", etag],
            vec![&*format!("\"a\",{etag} ")],
        ] {
            let response = answer(&lists);
            assert_eq!(response.status(), StatusCode::NOT_MODIFIED, "{lists:?}");
            assert_eq!(response.headers().get(ETAG).unwrap(), etag);
            assert_eq!(response.body().size(), actix_web::body::BodySize::None);
        }
        for lists in [vec![], vec!["\"a\""], vec!["44136fa355b3678a1146ad16f7e8649e"], vec![""]] {
            assert_eq!(answer(&lists).status(), StatusCode::OK, "{lists:?}");
        }
    }

    #[test]
    fn usd_keeps_every_digit() {
        for text in ["0", "5", "0.000000000001", "9223372.036854775807"] {
            assert_eq!(usd(text.parse().unwrap()).get(), text);
        }
    }

    #[test]
    fn opaque_keeps_bytes() {
        let text = r#"{"a" : 1.0, "a":1e400}"#;
        assert_eq!(opaque(&Json::parse(text).unwrap()).get(), text);
        assert_eq!(raw("{".to_owned()).get(), "null");
    }

    #[test]
    fn values_are_written_with_the_names_of_all_interfaces() {
        let intervals = domain::budget::ResetInterval::ALL.map(domain::budget::ResetInterval::as_str);
        assert_eq!(to_value(ResetInterval::schema()).unwrap()["enum"], json!(intervals));
        let [flag, redact, block] = domain::usage::FilterAction::ALL.map(domain::usage::FilterAction::as_str);
        assert_eq!(to_value(FilterAction::schema()).unwrap()["enum"], json!([block, redact, flag]));
    }
}
