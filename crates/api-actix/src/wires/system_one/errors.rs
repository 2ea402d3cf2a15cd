//! System One errors: `detail` for the vendor's client package, and the service's envelope for other clients.

use crate::wires::object::{Object, array, string};
use crate::wires::path::{Segment, segments};
use crate::wires::{ErrorLocation, ErrorResponse};

/// Writes the body of an error. Request errors become a list of locations, others a type and a message.
pub fn write(error_response: &ErrorResponse<'_>) -> String {
    let detail = match error_response.location {
        Some(location) if matches!(error_response.status, 400 | 422) => array([validation(error_response, location)]),
        _ => Object::with_type(error_type(error_response.status)).text("message", error_response.message).end(),
    };
    let error = Object::new()
        .count("code", error_response.status.into())
        .text("message", error_response.message)
        .json("metadata", &error_response.metadata_json());
    let body = Object::new().json("detail", &detail).json("error", &error.end());
    let user = error_response.user_id.map(string);
    let body = body.maybe("user_id", user.as_deref());
    match error_response.service_metadata {
        Some((name, service_metadata)) => body.json(name, &service_metadata.to_string()),
        None => body,
    }
    .end()
}

/// Writes one request error without quoting the caller's value.
fn validation(error_response: &ErrorResponse<'_>, location: &ErrorLocation) -> String {
    let loc = match location {
        ErrorLocation::Body => vec![string("body")],
        ErrorLocation::Header(name) => vec![string("header"), string(name)],
        ErrorLocation::Member(path) => std::iter::once(string("body"))
            .chain(segments(path).into_iter().map(|segment| match segment {
                Segment::Member(name) => string(name),
                Segment::Element(index) => index.to_string(),
            }))
            .collect(),
    };
    let kind = if error_response.fault() == "is required" { "missing" } else { "value_error" };
    Object::new().json("loc", &array(loc)).text("msg", error_response.fault()).text("type", kind).end()
}

/// Returns the machine-readable error type.
fn error_type(status: u16) -> &'static str {
    match status {
        400 => "invalid_request",
        401 => "unauthenticated",
        402 => "insufficient_credits",
        403 => "forbidden",
        404 => "not_found",
        405 => "method_not_allowed",
        413 => "payload_too_large",
        415 => "unsupported_media_type",
        422 => "unprocessable",
        429 => "rate_limited",
        499 => "client_disconnected",
        502 => "provider_failure",
        503 => "unavailable",
        524 => "timed_out",
        529 => "provider_overloaded",
        _ => "internal",
    }
}
