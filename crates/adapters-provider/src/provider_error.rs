//! The error that a provider reports in the body of a response, bounded and redacted.

use domain::routing::ProviderError;
use wires::provider::read_error_body;

use crate::redaction::Redactor;

/// Reads the code and the message of an error body. `None` without either.
pub(crate) fn read(status: u16, body: &[u8], redactor: &Redactor) -> Option<Box<ProviderError>> {
    let (code, message) = read_error_body(status, body);
    let code = code.map(|code| redactor.redact(&code, ProviderError::MAX_CODE_CHARS));
    let message = message.map(|message| redactor.redact(&message, ProviderError::MAX_MESSAGE_CHARS));
    let error = ProviderError {
        code: code.filter(|code| !code.is_empty()),
        message: message.filter(|message| !message.is_empty()),
    };
    (error.code.is_some() || error.message.is_some()).then(|| Box::new(error))
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
