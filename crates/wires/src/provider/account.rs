//! Trouble with our account at a provider. Providers report it with almost any status; its codes and words are in the
//! body.

use domain::routing::{AttemptFailure, FailureCause};

use super::errors::{error_objects, error_text, plain_text};
use super::{Object, as_text, elements, number, string};
use FailureCause::{AccountExhausted, KeyRejected};

/// Codes, without case and punctuation. A code is never the caller's text, so it counts with every status.
const CODES: [(&str, FailureCause); 40] = [
    // OpenAI and servers with its interface.
    ("insufficientquota", AccountExhausted),
    ("billinghardlimitreached", AccountExhausted),
    ("billingnotactive", AccountExhausted),
    ("accountdeactivated", AccountExhausted),
    ("invalidapikey", KeyRejected),
    ("incorrectapikey", KeyRejected),
    ("invalidauthentication", KeyRejected),
    ("invalidauthenticationerror", KeyRejected),
    ("authenticationerror", KeyRejected),
    ("expiredapikey", KeyRejected),
    ("apikeyexpired", KeyRejected),
    ("invalidtoken", KeyRejected),
    // Anthropic.
    ("billingerror", AccountExhausted),
    // Google.
    ("apikeyinvalid", KeyRejected),
    ("apikeyserviceblocked", KeyRejected),
    ("unauthenticated", KeyRejected),
    ("billingdisabled", AccountExhausted),
    ("consumersuspended", AccountExhausted),
    // Groq.
    ("organizationrestricted", AccountExhausted),
    ("spendlimitreached", AccountExhausted),
    ("spendlimitexceeded", AccountExhausted),
    // DeepSeek, Moonshot, SiliconFlow, DashScope, Volcengine.
    ("insufficientbalance", AccountExhausted),
    ("exceededcurrentquotaerror", AccountExhausted),
    ("arrearage", AccountExhausted),
    ("allocationquotafreetieronly", AccountExhausted),
    ("accountoverdueerror", AccountExhausted),
    ("accountoverdue", AccountExhausted),
    // Together, OpenRouter, Replicate and gateways.
    ("insufficientcredit", AccountExhausted),
    ("insufficientcredits", AccountExhausted),
    ("insufficientfunds", AccountExhausted),
    ("insufficientuserquota", AccountExhausted),
    ("preconsumetokenquotafailed", AccountExhausted),
    ("creditbalancetoolow", AccountExhausted),
    ("creditlimitexceeded", AccountExhausted),
    ("creditsexhausted", AccountExhausted),
    ("quotaexhausted", AccountExhausted),
    ("budgetexceeded", AccountExhausted),
    ("paymentrequired", AccountExhausted),
    ("accountsuspended", AccountExhausted),
    ("subscriptionexpired", AccountExhausted),
];

/// Phrases of messages, in lower case.
const PHRASES: [(&str, FailureCause); 32] = [
    ("credit balance is too low", AccountExhausted),
    ("insufficient balance", AccountExhausted),
    ("balance is insufficient", AccountExhausted),
    ("insufficient credit", AccountExhausted),
    ("insufficient funds", AccountExhausted),
    ("insufficient quota", AccountExhausted),
    ("exceeded your current quota", AccountExhausted),
    ("exceeded your monthly", AccountExhausted),
    ("billing hard limit", AccountExhausted),
    ("billing to be enabled", AccountExhausted),
    ("check your billing", AccountExhausted),
    ("account is not active", AccountExhausted),
    ("account is in good standing", AccountExhausted),
    ("account is suspended", AccountExhausted),
    ("account suspended", AccountExhausted),
    ("account has been suspended", AccountExhausted),
    ("account has been deactivated", AccountExhausted),
    ("all available credits", AccountExhausted),
    ("out of credits", AccountExhausted),
    ("requires more credits", AccountExhausted),
    ("credit limit exceeded", AccountExhausted),
    ("spending limit", AccountExhausted),
    ("daily free allocation", AccountExhausted),
    ("payment required", AccountExhausted),
    // Zhipu: "insufficient balance".
    ("余额不足", AccountExhausted),
    ("incorrect api key", KeyRejected),
    ("invalid api key", KeyRejected),
    ("api key not valid", KeyRejected),
    ("api key expired", KeyRejected),
    ("api key is invalid", KeyRejected),
    ("api key was reported as leaked", KeyRejected),
    ("invalid x-api-key", KeyRejected),
];

/// Returns the failure as one of our account, if the error body says so; else the failure unchanged.
pub fn refine(failure: AttemptFailure, body: &[u8]) -> AttemptFailure {
    let has_wait = failure.retry_after.is_some();
    match failure.upstream_status.and_then(|status| read(status, body, has_wait)) {
        None => failure,
        Some(cause) => {
            let AttemptFailure { kind, detail, cause, .. } = AttemptFailure::of_cause(cause);
            AttemptFailure { kind, detail, cause, ..failure }
        }
    }
}

/// Reads an error body. `has_wait` is true if the response says when to retry.
fn read(status: u16, body: &[u8], has_wait: bool) -> Option<FailureCause> {
    let is_success = (200..300).contains(&status);
    if !is_success && !matches!(status, 400..=403 | 412 | 429) {
        return None;
    }
    let text = as_text(body).ok();
    let Some(text) = text.filter(|text| text.trim_start().starts_with(['{', '['])) else {
        let message = plain_text(body).filter(|_| !is_success);
        return message.and_then(|message| phrase(status, &message, has_wait));
    };
    let errors = error_objects(text, !is_success);
    let mut has_wait = has_wait;
    for error in &errors {
        let details = error.get("details").ok().flatten().and_then(elements).unwrap_or_default();
        let details: Vec<Object<'_>> = details.into_iter().filter_map(Object::of).collect();
        has_wait |= details.iter().any(|detail| detail.get("retryDelay").is_ok_and(|delay| delay.is_some()));
        if let Some(cause) = std::iter::once(error).chain(&details).find_map(code) {
            return Some(cause);
        }
    }
    error_text(text, &errors).and_then(|message| phrase(status, &message, has_wait))
}

/// Finds a code among the members of an error.
fn code(error: &Object<'_>) -> Option<FailureCause> {
    ["code", "type", "status", "error_code", "reason"].iter().find_map(|name| {
        let value = error.get(name).ok().flatten()?;
        let code = string(value).or_else(|| Some(number(value)?.0.to_owned()))?;
        let plain: String = code.chars().filter(char::is_ascii_alphanumeric).collect();
        CODES.iter().find(|(code, _)| plain.eq_ignore_ascii_case(code)).map(|(_, cause)| *cause)
    })
}

/// Finds a phrase in the provider's own words. A 429 that says when to retry, or speaks of a rate, is a rate limit: some
/// providers call both a quota.
fn phrase(status: u16, message: &str, has_wait: bool) -> Option<FailureCause> {
    let words = own_words(message);
    if status == 429 && (has_wait || words.contains("rate limit")) {
        return None;
    }
    PHRASES.iter().find(|(phrase, _)| words.contains(phrase)).map(|(_, cause)| *cause)
}

/// Returns the beginning of a message in lower case, up to the first quotation, value or line end: what follows may
/// repeat the request, and a caller must not be able to put an endpoint into a back-off.
fn own_words(message: &str) -> String {
    let mut before = ' ';
    let end = message.char_indices().find(|(_, c)| {
        let begins_quotation = *c == '\'' && !before.is_alphanumeric();
        before = *c;
        begins_quotation || matches!(c, ':' | '"' | '`' | '“' | '{' | '[' | '<' | '=' | '\n')
    });
    message[..end.map_or(message.len(), |(at, _)| at)].to_lowercase()
}

#[cfg(test)]
mod tests;
