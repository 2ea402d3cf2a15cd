//! OpenAI errors.

use crate::client::ErrorResponse;
use crate::client::object::{ObjectWriter, string};

/// Writes the body of an error.
pub fn write(error_response: &ErrorResponse<'_>) -> String {
    let (kind, code) = error_type_and_code(error_response);
    let error = ObjectWriter::new()
        .text("message", error_response.message)
        .text("type", kind)
        .json("param", &error_response.member().map_or("null".to_owned(), string))
        .text("code", code)
        .json("metadata", &error_response.metadata_json());
    let body = ObjectWriter::new().json("error", &error.end());
    body.service_metadata(error_response.service_metadata).end()
}

/// Returns `type` and `code`.
fn error_type_and_code(error_response: &ErrorResponse<'_>) -> (&'static str, &'static str) {
    match error_response.status {
        401 => ("invalid_request_error", "invalid_api_key"),
        402 => ("insufficient_quota", "insufficient_quota"),
        403 => ("permission_error", "permission_denied"),
        404 if error_response.member() == Some("model") => ("invalid_request_error", "model_not_found"),
        404 => ("invalid_request_error", "not_found"),
        405 => ("invalid_request_error", "method_not_allowed"),
        413 => ("invalid_request_error", "request_too_large"),
        415 => ("invalid_request_error", "unsupported_media_type"),
        429 => ("rate_limit_error", "rate_limit_exceeded"),
        400..500 => ("invalid_request_error", "invalid_request"),
        502 => ("server_error", "provider_error"),
        503 => ("server_error", "service_unavailable"),
        524 => ("server_error", "timeout"),
        529 => ("server_error", "provider_overloaded"),
        _ => ("server_error", "internal_error"),
    }
}
