//! The error that a provider reports in the body of a response.

use domain::json::JsonText;
use domain::routing::ProviderError;
use serde_json::value::RawValue;

use crate::redaction::Redactor;
use crate::wire::{Object, as_text, elements, number, string};

/// The members that hold a code, in order of preference.
const CODES: [&str; 4] = ["code", "type", "status", "error_code"];
/// The members that hold a message.
const MESSAGES: [&str; 5] = ["message", "msg", "detail", "error_description", "title"];

/// Reads the code and the message of an error body, bounded and redacted. Known forms are `{"error": {"code",
/// "message"}}`, `{"error": ".."}`, `{"errors": [..]}`, `{"detail": ..}`, problem details and plain text. With a status
/// of 2xx only `error` and `errors` count. `None` without either.
pub(crate) fn read(status: u16, body: &[u8], redactor: &Redactor) -> Option<Box<ProviderError>> {
    let (code, message) = match as_text(body).ok().and_then(Object::parse) {
        Some(members) => of_object(&members, !(200..300).contains(&status)),
        None if (200..300).contains(&status) => return None,
        None => (None, plain_text(body)),
    };
    let code = code.map(|code| redactor.redact(&code, ProviderError::MAX_CODE_CHARS));
    let message = message.map(|message| redactor.redact(&message, ProviderError::MAX_MESSAGE_CHARS));
    let error = ProviderError {
        code: code.filter(|code| !code.is_empty()),
        message: message.filter(|message| !message.is_empty()),
    };
    (error.code.is_some() || error.message.is_some()).then(|| Box::new(error))
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

type CodeAndMessage = (Option<String>, Option<String>);

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

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;
    use rstest::rstest;

    #[rstest]
    #[case(
        401,
        r#"{"error":{"code":"invalid_api_key","message":"Bad key","type":"auth"}}"#,
        Some("invalid_api_key"),
        Some("Bad key")
    )]
    #[case(400, r#"{"error":{"code":400,"message":"No","status":"INVALID_ARGUMENT"}}"#, Some("400"), Some("No"))]
    #[case(
        500,
        r#"{"error":{"code":null,"type":"server_error","message":"Oops"}}"#,
        Some("server_error"),
        Some("Oops")
    )]
    #[case(500, r#"{"error":"it broke"}"#, None, Some("it broke"))]
    #[case(404, r#"{"success":false,"errors":[{"code":7000,"message":"No route"}]}"#, Some("7000"), Some("No route"))]
    #[case(404, r#"{"detail":"Not Found"}"#, None, Some("Not Found"))]
    #[case(
        422,
        r#"{"detail":[{"loc":["body","x"],"msg":"Field required","input":"secret state"}]}"#,
        None,
        Some("Field required")
    )]
    #[case(404, r#"{"type":"about:blank","title":"Not found","status":404}"#, Some("about:blank"), Some("Not found"))]
    #[case(403, r#"{"message":"Forbidden"}"#, None, Some("Forbidden"))]
    #[case(502, "upstream\r\n connect   error", None, Some("upstream connect error"))]
    #[case(200, r#"{"error":{"code":503,"message":"Overloaded"}}"#, Some("503"), Some("Overloaded"))]
    fn read_finds_code_and_message(
        #[case] status: u16,
        #[case] body: &str,
        #[case] code: Option<&str>,
        #[case] message: Option<&str>,
    ) {
        let error = read(status, body.as_bytes(), &Redactor::of(&HeaderMap::new())).unwrap();
        assert_eq!((error.code.as_deref(), error.message.as_deref()), (code, message));
    }

    #[rstest]
    #[case(500, "")]
    #[case(500, "{}")]
    #[case(500, "<h1>Bad Gateway</h1>")]
    #[case(500, r#"{"error":{"message":""#)]
    #[case(200, r#"{"message":"of an answer","model":"m"}"#)]
    #[case(200, "a text")]
    fn read_finds_no_error(#[case] status: u16, #[case] body: &str) {
        assert_eq!(read(status, body.as_bytes(), &Redactor::of(&HeaderMap::new())), None);
    }

    #[test]
    fn read_bounds_code_and_message() {
        let body = format!(r#"{{"error":{{"code":"{}","message":"{}"}}}}"#, "c ".repeat(9_000), "é ".repeat(9_000));
        let error = read(500, body.as_bytes(), &Redactor::of(&HeaderMap::new())).unwrap();
        assert_eq!(error.code.unwrap().chars().count(), ProviderError::MAX_CODE_CHARS);
        assert_eq!(error.message.unwrap().chars().count(), ProviderError::MAX_MESSAGE_CHARS);
    }
}
