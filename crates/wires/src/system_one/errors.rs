//! Meanings of errors that say more than their status.

use domain::routing::{AttemptFailureKind, FailureCause};

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

#[cfg(test)]
mod tests;
