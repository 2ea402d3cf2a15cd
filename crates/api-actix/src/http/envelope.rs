//! Error responses: the service's envelope, or the error format of a wire.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use domain::ids::RequestId;
use domain::json::ObjectWriter;
use serde_json::Value;
use utoipa::ToSchema;
use wires::client::ErrorResponse;

use super::client::WireNames;
use super::error::{ApiError, ErrorFormat, whole_seconds};

/// The headers that ask for service metadata with the value `enabled`.
static METADATA_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("x-tollgate-metadata"), HeaderName::from_static("x-openrouter-metadata")];

/// Returns true if the caller asks for service metadata in the response.
pub(crate) fn wants_metadata(headers: &HeaderMap) -> bool {
    let asks =
        |name: &HeaderName| headers.get(name).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"enabled"));
    METADATA_HEADERS.iter().any(asks)
}

/// The retry delay in milliseconds. Client packages read it before `Retry-After`, which has whole seconds.
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// Writes the response to a failed request. `route` is the matched pattern; `format` applies if the error does not set
/// its own format.
pub(crate) fn respond(
    error: &ApiError,
    request_id: &RequestId,
    route: Option<&'static str>,
    format: ErrorFormat,
    service_metadata: Option<WireNames>,
) -> HttpResponse {
    let parts = error.parts();
    let format = parts.format.unwrap_or(format);
    let status = format.status(parts.status, parts.location.is_some());
    let wait = format.retry_after(status, parts.retry_after);
    let mut metadata = parts.metadata.clone();
    metadata.insert("request_id".to_owned(), Value::from(request_id.as_str()));
    let service_metadata = service_metadata.map(|names| {
        let mut service_metadata = parts.service_metadata.clone();
        service_metadata.insert("route".to_owned(), Value::from(route));
        (names.service_metadata(), Value::Object(service_metadata))
    });
    let error_response = ErrorResponse {
        status: status.as_u16(),
        message: error.text(),
        location: parts.location.as_ref(),
        metadata: &metadata,
        amounts: &parts.amounts,
        user_id: parts.user_id.as_deref(),
        service_metadata: service_metadata.as_ref().map(|(name, service_metadata)| (*name, service_metadata)),
        retry_after: wait,
    };
    let mut response = HttpResponse::with_body(status, body(format, &error_response)).map_into_boxed_body();
    if let Some(reason) = reason(status) {
        response.head_mut().reason = Some(reason);
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(wait) = wait {
        headers.insert(RETRY_AFTER, HeaderValue::from(whole_seconds(wait)));
        headers.insert(RETRY_AFTER_MS, HeaderValue::from(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)));
    }
    for (name, value) in &parts.headers {
        headers.insert(name.clone(), value.clone());
    }
    response
}

fn body(format: ErrorFormat, error_response: &ErrorResponse<'_>) -> String {
    match format {
        ErrorFormat::Contract => envelope(error_response),
        ErrorFormat::SystemOne | ErrorFormat::SystemOneUnderBase => wires::system_one::errors::write(error_response),
        ErrorFormat::OpenAi => wires::openai::client_response::write_error(error_response),
        ErrorFormat::Gemini => wires::gemini::errors::write(error_response),
        ErrorFormat::Sglang => wires::sglang::client_response::write_error(error_response),
    }
}

/// The error.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the schema of a body that is written as text, because its amounts are no floats")]
pub(crate) struct ErrorBody {
    /// Equals the HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    code: i32,
    message: String,
    /// Machine-readable details; always contains `request_id`.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
}

/// The body of every error response.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the schema of a body that `envelope` writes as text")]
pub(crate) struct ErrorEnvelope {
    error: ErrorBody,
    /// Service metadata about the handling of the request; only on request.
    #[schema(value_type = Option<Object>)]
    service_metadata: Option<Value>,
    /// The owner of the caller's workspace, if set.
    user_id: Option<String>,
}

fn envelope(error_response: &ErrorResponse<'_>) -> String {
    let error = ObjectWriter::new()
        .shown("code", error_response.status)
        .text("message", error_response.message)
        .json("metadata", &error_response.metadata_json());
    let body = ObjectWriter::new().json("error", &error.end());
    let body = body.member(error_response.service_metadata);
    match error_response.user_id {
        Some(user_id) => body.text("user_id", user_id),
        None => body,
    }
    .end()
}

/// Returns the reason phrase of a status that has no registered one.
fn reason(status: StatusCode) -> Option<&'static str> {
    match status.as_u16() {
        499 => Some("Client Closed Request"),
        524 => Some("A Timeout Occurred"),
        529 => Some("Site Is Overloaded"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use actix_web::body::to_bytes;
    use domain::error::ErrorKind;
    use serde_json::json;

    use super::*;

    async fn envelope(error: ApiError, names: Option<WireNames>) -> String {
        let response = respond(&error, &"req-1".parse().unwrap(), Some("/docs"), ErrorFormat::Contract, names);
        String::from_utf8(to_bytes(response.into_body()).await.unwrap().to_vec()).unwrap()
    }

    #[actix_web::test]
    async fn envelope_has_contract_members() {
        let plain = envelope(ApiError::from_kind(ErrorKind::NotFound), None).await;
        assert_eq!(plain, r#"{"error":{"code":404,"message":"Resource not found","metadata":{"request_id":"req-1"}}}"#);
    }

    #[actix_web::test]
    async fn envelope_includes_optional_members_when_present_or_requested() {
        let error = || {
            ApiError::invalid("x: y")
                .metadata("file_bytes", 3)
                .user_id(Some("acme".into()))
                .service_metadata("attempts", json!([]))
        };
        let service_metadata = envelope(error(), Some(WireNames::OpenRouter)).await;
        assert_eq!(
            service_metadata,
            concat!(
                r#"{"error":{"code":400,"message":"x: y","metadata":{"file_bytes":3,"request_id":"req-1"}},"#,
                r#""openrouter_metadata":{"attempts":[],"route":"/docs"},"user_id":"acme"}"#
            )
        );
        assert!(!envelope(error(), None).await.contains("attempts"));
    }

    #[actix_web::test]
    async fn envelope_matches_its_schema() {
        for names in [None, Some(WireNames::Interface), Some(WireNames::OpenRouter)] {
            let amount = "0.000000000001".parse().unwrap();
            let full = ApiError::invalid("x: y").user_id(Some("acme".into())).amount("limit_usd", amount);
            for error in [ApiError::not_found(), full.service_metadata("attempts", json!([]))] {
                let body = serde_json::from_str(&envelope(error, names).await).unwrap();
                crate::app::assert_valid("ErrorEnvelope", &body);
            }
        }
    }

    #[test]
    fn metadata_headers_have_one_value() {
        let headers = |name: &'static str, value: &'static str| {
            HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))])
        };
        assert!(wants_metadata(&headers("x-tollgate-metadata", "enabled")));
        assert!(wants_metadata(&headers("x-openrouter-metadata", "Enabled")));
        assert!(!wants_metadata(&headers("x-openrouter-title", "enabled")));
        assert!(!wants_metadata(&headers("x-tollgate-metadata", "no")));
    }

    #[test]
    fn vendor_errors_carry_retry_delay_in_header_and_body() {
        let answer = |error: &ApiError, format| respond(error, &"r".parse().unwrap(), None, format, None);
        let header = |response: &HttpResponse, name: &str| {
            response.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
        };
        let known = ApiError::from_kind(ErrorKind::RateLimited).retry_after(std::time::Duration::from_millis(1_250));
        for (error, seconds, ms) in [
            (&known, "2", "1250"),
            (&ApiError::from_kind(ErrorKind::Unavailable), "1", "1000"),
            (&ApiError::from_kind(ErrorKind::ProviderOverloaded), "1", "1000"),
        ] {
            let response = answer(error, ErrorFormat::OpenAi);
            assert_eq!(header(&response, "retry-after").as_deref(), Some(seconds));
            assert_eq!(header(&response, "retry-after-ms").as_deref(), Some(ms));
        }
        let response = answer(&known, ErrorFormat::Contract);
        assert_eq!(
            (header(&response, "retry-after").as_deref(), header(&response, "retry-after-ms")),
            (Some("2"), None)
        );
        assert_eq!(header(&answer(&ApiError::not_found(), ErrorFormat::Gemini), "retry-after"), None);
    }

    #[test]
    fn unregistered_statuses_have_a_phrase() {
        let response = respond(
            &ApiError::from_kind(ErrorKind::TimedOut),
            &"r".parse().unwrap(),
            None,
            ErrorFormat::Contract,
            None,
        );
        assert_eq!(response.status().as_u16(), 524);
        assert_eq!(response.head().reason(), "A Timeout Occurred");
    }
}
