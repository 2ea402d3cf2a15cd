//! Meanings of errors that say more than their status.

use std::time::Duration;

use domain::routing::AttemptFailureKind;

use crate::provider::{ErrorMeaning, Object, as_text, elements, string};
use domain::json::JsonText;

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
