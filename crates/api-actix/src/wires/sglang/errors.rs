//! Errors of SGLang's own Decisions wire: flat.

use crate::wires::Refusal;
use crate::wires::object::Object;

/// Writes the body of an error.
pub fn write(refusal: &Refusal<'_>) -> String {
    let body = Object::new()
        .text("object", "error")
        .text("message", refusal.message)
        .text("type", kind(refusal.status))
        .json("param", "null")
        .count("code", refusal.status.into())
        .json("metadata", &refusal.metadata_json());
    match refusal.told {
        Some((name, told)) => body.json(name, &told.to_string()),
        None => body,
    }
    .end()
}

fn kind(status: u16) -> &'static str {
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
