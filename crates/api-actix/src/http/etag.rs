//! Strong entity tags and `If-None-Match`.

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use domain::error::ErrorKind;
use serde::Serialize;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::error::ApiError;

/// Responses need a key, so shared caches must not store them, and clients must revalidate each time.
const CACHE_POLICY: HeaderValue = HeaderValue::from_static("private, no-cache");
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
        let known = is_known(request.headers(), self.etag.as_bytes());
        let mut response = if known {
            HttpResponse::with_body(StatusCode::NOT_MODIFIED, actix_web::body::None::new()).map_into_boxed_body()
        } else {
            let mut response = HttpResponse::with_body(StatusCode::OK, self.body.clone()).map_into_boxed_body();
            response.headers_mut().insert(CONTENT_TYPE, JSON);
            response
        };
        let headers = response.headers_mut();
        headers.insert(ETAG, self.etag.clone());
        headers.insert(CACHE_CONTROL, CACHE_POLICY);
        response
    }
}

/// Returns true if an entry of any `If-None-Match` list is `*` or the tag, weak or strong.
fn is_known(headers: &HeaderMap, etag: &[u8]) -> bool {
    headers.get_all(IF_NONE_MATCH).any(|list| {
        list.as_bytes()
            .split(|&byte| byte == b',')
            .map(<[u8]>::trim_ascii)
            .any(|candidate| candidate == b"*" || candidate.strip_prefix(b"W/").unwrap_or(candidate) == etag)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::body::MessageBody;
    use actix_web::test::TestRequest;

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
}
