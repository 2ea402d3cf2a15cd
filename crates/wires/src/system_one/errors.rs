//! System One errors: those of a provider that say more than their status, and those for clients: `detail` for the
//! vendor's client package, and the service's envelope for other clients.

use domain::json::ObjectWriter;
use domain::routing::{AttemptFailureKind, FailureCause};

use crate::client::fields::{Segment, segments};
use crate::client::{ErrorLocation, ErrorResponse};
use crate::client::{array, string as quoted};
use crate::provider::{ErrorMeaning, Object, as_text, elements, number, string};

/// Reads the numbered errors of Workers AI: `{"success": false, "errors": [{"code", "message"}]}`, where `message` may
/// contain another such object.
pub fn workers_ai(status: u16, body: &[u8]) -> Option<ErrorMeaning> {
    let text = as_text(body).ok()?;
    let codes = codes(text, 2);
    let meaning = |kind, detail| Some(ErrorMeaning { kind, cause: None, retry_after: None, detail });
    let has = |code: u64| codes.contains(&code);
    if has(4006) {
        // The daily allowance.
        return Some(ErrorMeaning::of_cause(FailureCause::AccountExhausted));
    }
    if has(3040) {
        return meaning(AttemptFailureKind::Overloaded, "the provider has no capacity left");
    }
    if has(10000) {
        return Some(ErrorMeaning::of_cause(FailureCause::KeyRejected));
    }
    if has(7000) {
        // Reported as 400, although the request is valid.
        return meaning(error_kind(status), "the provider has no model of that name");
    }
    if status != 200 {
        // 5012 comes with 422 and with 529: the status decides.
        return None;
    }
    if has(5006) || has(5021) {
        return meaning(AttemptFailureKind::RejectedByProvider, "the provider rejected the request");
    }
    if Object::parse(text)?.get("success").ok()??.get() != "false" {
        return None;
    }
    meaning(AttemptFailureKind::InvalidResponse, "the provider answered with an error")
}

/// Returns the kind of an error that the request did not cause.
fn error_kind(status: u16) -> AttemptFailureKind {
    if status == 200 { AttemptFailureKind::InvalidResponse } else { AttemptFailureKind::HttpError }
}

/// Returns the error codes, including those nested in messages, up to `levels` deep.
fn codes(text: &str, levels: usize) -> Vec<u64> {
    let members = Object::parse(text);
    let errors = members.and_then(|members| members.get("errors").ok()?).and_then(elements).unwrap_or_default();
    let mut found = Vec::new();
    for error in errors.into_iter().filter_map(Object::of) {
        let code = error.get("code").ok().flatten().and_then(number);
        found.extend(code.and_then(|(code, _)| code.parse::<u64>().ok()));
        let message = error.get("message").ok().flatten().and_then(string);
        if let Some(message) = message
            && let Some(begin) = message.find('{')
            && levels > 1
        {
            found.extend(codes(message[begin..].trim_end(), levels - 1));
        }
    }
    found
}

/// Writes the body of an error. Request errors become a list of locations, others a type and a message.
pub fn write(error_response: &ErrorResponse<'_>) -> String {
    let detail = match error_response.location {
        Some(location) if matches!(error_response.status, 400 | 422) => array([validation(error_response, location)]),
        _ => ObjectWriter::with_type(error_type(error_response.status)).text("message", error_response.message).end(),
    };
    let error = ObjectWriter::new()
        .shown("code", error_response.status)
        .text("message", error_response.message)
        .json("metadata", &error_response.metadata_json());
    let body = ObjectWriter::new().json("detail", &detail).json("error", &error.end());
    let user = error_response.user_id.map(quoted);
    let body = body.maybe("user_id", user.as_deref());
    body.member(error_response.service_metadata).end()
}

/// Writes one request error without quoting the caller's value.
fn validation(error_response: &ErrorResponse<'_>, location: &ErrorLocation) -> String {
    let loc = match location {
        ErrorLocation::Body => vec![quoted("body")],
        ErrorLocation::Header(name) => vec![quoted("header"), quoted(name)],
        ErrorLocation::Member(path) => std::iter::once(quoted("body"))
            .chain(segments(path).into_iter().map(|segment| match segment {
                Segment::Member(name) => quoted(name),
                Segment::Element(index) => index.to_string(),
            }))
            .collect(),
    };
    let kind = if error_response.fault() == "is required" { "missing" } else { "value_error" };
    ObjectWriter::new().json("loc", &array(loc)).text("msg", error_response.fault()).text("type", kind).end()
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

#[cfg(test)]
mod tests;
