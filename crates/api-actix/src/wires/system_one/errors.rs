//! System One errors: `detail` for the vendor's client package, and the service's envelope for other clients.

use crate::wires::object::{Object, array, string};
use crate::wires::path::{Segment, segments};
use crate::wires::{Place, Refusal};

/// Writes the body of an error. Request errors become a list of locations, others a type and a message.
pub fn write(refusal: &Refusal<'_>) -> String {
    let detail = match refusal.place {
        Some(place) if matches!(refusal.status, 400 | 422) => array([validation(refusal, place)]),
        _ => Object::of_type(name_of(refusal.status)).text("message", refusal.message).end(),
    };
    let error = Object::new()
        .count("code", refusal.status.into())
        .text("message", refusal.message)
        .json("metadata", &refusal.metadata_json());
    let body = Object::new().json("detail", &detail).json("error", &error.end());
    let user = refusal.user_id.map(string);
    let body = body.maybe("user_id", user.as_deref());
    match refusal.told {
        Some((name, told)) => body.json(name, &told.to_string()),
        None => body,
    }
    .end()
}

/// Writes one request error without quoting the caller's value.
fn validation(refusal: &Refusal<'_>, place: &Place) -> String {
    let loc = match place {
        Place::Body => vec![string("body")],
        Place::Header(name) => vec![string("header"), string(name)],
        Place::Member(path) => std::iter::once(string("body"))
            .chain(segments(path).into_iter().map(|segment| match segment {
                Segment::Member(name) => string(name),
                Segment::Element(index) => index.to_string(),
            }))
            .collect(),
    };
    let kind = if refusal.fault() == "is required" { "missing" } else { "value_error" };
    Object::new().json("loc", &array(loc)).text("msg", refusal.fault()).text("type", kind).end()
}

/// Returns the machine-readable error type.
fn name_of(status: u16) -> &'static str {
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
