//! The error that a provider reports in the body of a response, and its meaning.

use std::time::Duration;

use domain::json::JsonText;
use domain::routing::{AttemptFailure, AttemptFailureKind, FailureCause};
use serde_json::value::RawValue;

use super::answer::{Object, as_text, elements, number, string};

/// The members that hold a code, in order of preference.
const CODES: [&str; 4] = ["code", "type", "status", "error_code"];
/// The members that hold a message.
const MESSAGES: [&str; 5] = ["message", "msg", "detail", "error_description", "title"];

/// The code and the message of an error, as far as it has them.
pub type CodeAndMessage = (Option<String>, Option<String>);

/// Reads the code and the message of an error body, neither bounded nor redacted. Known forms are `{"error": {"code",
/// "message"}}`, `{"error": ".."}`, `{"errors": [..]}`, `{"detail": ..}`, problem details and plain text. With a status
/// of 2xx only `error` and `errors` count.
pub fn read_error_body(status: u16, body: &[u8]) -> CodeAndMessage {
    let is_success = (200..300).contains(&status);
    match as_text(body).ok().and_then(Object::parse) {
        Some(members) => of_object(&members, !is_success),
        None if is_success => (None, None),
        None => (None, plain_text(body)),
    }
}

/// Returns the error objects of a JSON body: the innermost first. Without `is_error`, only `error` and `errors` count,
/// and the body itself is none.
pub(crate) fn error_objects(text: &str, is_error: bool) -> Vec<Object<'_>> {
    let Some(body) = Object::parse(text).or_else(|| first_element(text)) else { return Vec::new() };
    let inner = inner(&body).and_then(|value| Object::of(value).or_else(|| first_element(value.get())));
    inner.into_iter().chain(is_error.then_some(body)).collect()
}

/// Returns the message of an error body, of which [`error_objects`] returned these.
pub(crate) fn error_text(text: &str, errors: &[Object<'_>]) -> Option<String> {
    let of_body = || inner(&Object::parse(text).or_else(|| first_element(text))?).and_then(string);
    errors.iter().find_map(|error| fields(error).1).or_else(of_body)
}

/// Parses the first element of an array, if it is an object.
fn first_element(text: &str) -> Option<Object<'_>> {
    let elements: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    Object::of(JsonText::from(*elements.first()?))
}

fn inner<'a>(members: &Object<'a>) -> Option<JsonText<'a>> {
    ["error", "errors"].iter().find_map(|name| members.get(name).ok().flatten())
}

/// Reads an error object. `is_error` is true if the object itself is known to be an error.
fn of_object(members: &Object<'_>, is_error: bool) -> CodeAndMessage {
    let nested = inner(members).map(of_value).unwrap_or_default();
    if !is_error {
        return nested;
    }
    let (code, message) = fields(members);
    (nested.0.or(code), nested.1.or(message))
}

/// Reads an error: an object, a sentence, or an array whose first element counts.
fn of_value(value: JsonText<'_>) -> CodeAndMessage {
    if let Some(text) = string(value) {
        return (None, Some(text));
    }
    let first = || elements(value)?.into_iter().next();
    let Some(error) = Object::of(value).or_else(|| Object::of(first()?)) else {
        return (None, first().and_then(string));
    };
    fields(&error)
}

/// Reads the code and the message among the members of an error.
fn fields(error: &Object<'_>) -> CodeAndMessage {
    let member = |name: &&str| error.get(name).ok().flatten();
    let code =
        CODES.iter().filter_map(member).find_map(|value| string(value).or_else(|| Some(number(value)?.0.to_owned())));
    let message = MESSAGES.iter().filter_map(member).find_map(|value| {
        // FastAPI: `{"detail": [{"msg": ..}]}`.
        let nested =
            || elements(value)?.into_iter().find_map(|error| Object::of(error)?.get("msg").ok()?.and_then(string));
        string(value).or_else(nested)
    });
    (code, message)
}

/// Returns a body that is neither JSON nor a page of markup.
pub(crate) fn plain_text(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?.trim();
    (!text.is_empty() && !text.starts_with(['<', '{', '['])).then(|| text.to_owned())
}

/// The meaning of a provider's error that says more than its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorMeaning {
    /// The kind of failure.
    pub kind: AttemptFailureKind,
    /// The cause, if an operator can mend it.
    pub cause: Option<FailureCause>,
    /// The time to wait before the next call.
    pub retry_after: Option<Duration>,
    /// The description, without text of the provider.
    pub detail: &'static str,
}

/// Reads the body of a response with this status. `None` if only the status counts.
pub type ReadError = fn(status: u16, body: &[u8]) -> Option<ErrorMeaning>;

impl ErrorMeaning {
    /// Returns the meaning of a cause.
    pub fn of_cause(cause: FailureCause) -> Self {
        let AttemptFailure { kind, .. } = AttemptFailure::of_cause(cause);
        Self { kind, cause: Some(cause), retry_after: None, detail: cause.sentence() }
    }

    /// Returns the failure with this meaning and the longer of the two waits.
    #[must_use]
    pub fn of(self, by_status: &AttemptFailure) -> AttemptFailure {
        AttemptFailure {
            kind: self.kind,
            cause: self.cause,
            retry_after: self.retry_after.max(by_status.retry_after),
            detail: self.detail.to_owned(),
            ..by_status.clone()
        }
    }
}
