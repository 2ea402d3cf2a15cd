//! Errors of SGLang's own Decisions wire: flat.

use crate::client::ErrorResponse;
use crate::client::object::ObjectWriter;

/// Writes the body of an error.
pub fn write(error_response: &ErrorResponse<'_>) -> String {
    let body = ObjectWriter::new()
        .text("object", "error")
        .text("message", error_response.message)
        .text("type", error_type(error_response.status))
        .json("param", "null")
        .count("code", error_response.status.into())
        .json("metadata", &error_response.metadata_json());
    body.service_metadata(error_response.service_metadata).end()
}

fn error_type(status: u16) -> &'static str {
    match status {
        401 => "AuthenticationError",
        402 => "PaymentRequiredError",
        403 => "PermissionDeniedError",
        404 => "NotFoundError",
        413 => "RequestEntityTooLargeError",
        429 => "RateLimitError",
        400..500 => "BadRequestError",
        502 => "ProviderError",
        503 => "ServiceUnavailableError",
        524 => "TimeoutError",
        529 => "ProviderOverloadedError",
        _ => "InternalServerError",
    }
}
