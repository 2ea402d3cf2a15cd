//! Gemini errors: those of a provider that say more than their status, and those for clients.

use std::time::Duration;

use domain::json::{JsonText, ObjectWriter};
use domain::routing::AttemptFailureKind;

use crate::client::ErrorResponse;
use crate::client::array;
use crate::provider::{ErrorMeaning, Object, as_text, elements, string};

/// The longest wait that is accepted.
const MAX_WAIT: Duration = Duration::from_hours(24);

/// Reads `{"error": {"code", "message", "status", "details": [..]}}`. A disabled project is reported as 400; the details
/// contain the retry delay.
pub fn read(status: u16, body: &[u8]) -> Option<ErrorMeaning> {
    let members = Object::parse(as_text(body).ok()?)?;
    let error = Object::of(members.get("error").ok()??)?;
    let text = |object: &Object<'_>, name: &str| object.get(name).ok().flatten().and_then(string);
    let details = error.get("details").ok().flatten().and_then(elements).unwrap_or_default();
    let details: Vec<Object<'_>> = details.into_iter().filter_map(|detail: JsonText<'_>| Object::of(detail)).collect();
    let named = text(&error, "status").unwrap_or_default();
    let meaning = |kind, retry_after, detail| Some(ErrorMeaning { kind, cause: None, retry_after, detail });
    match (status, named.as_str()) {
        (400, "FAILED_PRECONDITION") => {
            meaning(AttemptFailureKind::HttpError, None, "the provider does not serve this account")
        }
        (429, _) => {
            let wait = details.iter().find_map(|detail| seconds(&text(detail, "retryDelay")?));
            wait.and_then(|wait| {
                meaning(AttemptFailureKind::Overloaded, Some(wait), "the provider's rate limit is reached")
            })
        }
        _ => None,
    }
}

/// Parses a duration such as `12s` or `1.5s`.
fn seconds(text: &str) -> Option<Duration> {
    let number = text.strip_suffix('s').filter(|number| number.bytes().all(|b| b.is_ascii_digit() || b == b'.'))?;
    let wait = Duration::try_from_secs_f64(number.parse().ok()?).unwrap_or(MAX_WAIT);
    Some(wait.min(MAX_WAIT))
}

/// Writes the body of an error.
pub fn write(error_response: &ErrorResponse<'_>) -> String {
    let status = status_name(error_response.status);
    let mut details = vec![info(status, error_response)];
    if let Some(path) = error_response.member() {
        let violation = ObjectWriter::new().text("field", path).text("description", error_response.fault()).end();
        details.push(detail("BadRequest").json("fieldViolations", &array([violation])).end());
    }
    if let Some(wait) = error_response.retry_after {
        details.push(detail("RetryInfo").text("retryDelay", format!("{}s", wait.as_secs_f64())).end());
    }
    let error = ObjectWriter::new()
        .shown("code", error_response.status)
        .text("message", error_response.message)
        .text("status", status)
        .json("details", &array(details));
    let body = ObjectWriter::new().json("error", &error.end());
    body.member(error_response.service_metadata).end()
}

fn detail(name: &str) -> ObjectWriter {
    ObjectWriter::new().text("@type", format!("type.googleapis.com/google.rpc.{name}"))
}

/// Writes the metadata; its values are strings by definition of this format.
fn info(reason: &str, error_response: &ErrorResponse<'_>) -> String {
    let members = error_response.metadata_members();
    let metadata = members.iter().fold(ObjectWriter::new(), |object, (name, json)| {
        if json.starts_with('"') { object.json(name, json) } else { object.text(name, json) }
    });
    detail("ErrorInfo").text("reason", reason).text("domain", "tollgate").json("metadata", &metadata.end()).end()
}

fn status_name(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        402 | 429 => "RESOURCE_EXHAUSTED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        405 => "UNIMPLEMENTED",
        499 => "CANCELLED",
        400..500 => "INVALID_ARGUMENT",
        524 => "DEADLINE_EXCEEDED",
        502 | 503 | 529 => "UNAVAILABLE",
        _ => "INTERNAL",
    }
}
