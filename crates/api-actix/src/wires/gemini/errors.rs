//! Gemini errors.

use crate::wires::ErrorResponse;
use crate::wires::object::{Object, array};

/// Writes the body of an error.
pub fn write(error_response: &ErrorResponse<'_>) -> String {
    let status = status_name(error_response.status);
    let mut details = vec![info(status, error_response)];
    if let Some(path) = error_response.member() {
        let violation = Object::new().text("field", path).text("description", error_response.fault()).end();
        details.push(detail("BadRequest").json("fieldViolations", &array([violation])).end());
    }
    if let Some(wait) = error_response.retry_after {
        details.push(detail("RetryInfo").text("retryDelay", &format!("{}s", wait.as_secs_f64())).end());
    }
    let error = Object::new()
        .count("code", error_response.status.into())
        .text("message", error_response.message)
        .text("status", status)
        .json("details", &array(details));
    let body = Object::new().json("error", &error.end());
    match error_response.service_metadata {
        Some((name, service_metadata)) => body.json(name, &service_metadata.to_string()),
        None => body,
    }
    .end()
}

fn detail(name: &str) -> Object {
    Object::new().text("@type", &format!("type.googleapis.com/google.rpc.{name}"))
}

/// Writes the metadata; its values are strings by definition of this format.
fn info(reason: &str, error_response: &ErrorResponse<'_>) -> String {
    let members = error_response.metadata_members();
    let metadata = members.iter().fold(Object::new(), |object, (name, json)| {
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
