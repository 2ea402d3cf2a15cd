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

/// Closes the open strings, arrays and objects of the beginning of a JSON text. An incomplete last member is dropped,
/// unless it is a string. The rest of a text that is not JSON stays as it is.
pub(crate) fn close_json(beginning: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(beginning).into_owned();
    while text.ends_with(char::REPLACEMENT_CHARACTER) {
        text.pop();
    }
    let mut scan = Scan::default();
    for (position, byte) in text.bytes().enumerate() {
        scan.read(position, byte);
    }
    let open = if scan.in_string && scan.is_value {
        text.truncate(scan.escape.map_or(text.len(), |(begin, _)| begin));
        text.push('"');
        scan.open
    } else {
        let (end, depth) = scan.last_complete;
        if end == 0 && scan.open.is_empty() {
            return text;
        }
        text.truncate(end);
        scan.open.truncate(depth);
        scan.open
    };
    text.extend(open.into_iter().rev());
    text
}

/// The state at a position of a JSON text.
#[derive(Default)]
struct Scan {
    /// The closing brackets of the open arrays and objects.
    open: Vec<char>,
    /// The last position at which all members before it are complete, and the number of open brackets there.
    last_complete: (usize, usize),
    in_string: bool,
    /// True if the string is a value and not the name of a member.
    is_value: bool,
    /// The position of an unfinished escape sequence and the number of its missing characters.
    escape: Option<(usize, usize)>,
    /// The last of `{`, `[`, `:` and `,` outside of strings.
    last_mark: u8,
}

impl Scan {
    fn read(&mut self, position: usize, byte: u8) {
        if self.in_string {
            self.escape = match (self.escape, byte) {
                (None, b'\\') => Some((position, 1)),
                (Some((begin, 1)), b'u') if begin + 1 == position => Some((begin, 4)),
                (Some((begin, missing)), _) if missing > 1 => Some((begin, missing - 1)),
                (None, b'"') => {
                    self.in_string = false;
                    None
                }
                _ => None,
            };
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.is_value = self.last_mark == b':' || self.open.last() == Some(&']');
            }
            b'{' | b'[' => {
                self.open.push(if byte == b'{' { '}' } else { ']' });
                self.last_complete = (position + 1, self.open.len());
            }
            b'}' | b']' => {
                self.open.pop();
                self.last_complete = (position + 1, self.open.len());
            }
            b',' => self.last_complete = (position, self.open.len()),
            _ => {}
        }
        if matches!(byte, b'{' | b'[' | b':' | b',') {
            self.last_mark = byte;
        }
    }
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

    #[rstest]
    #[case(r#"{"error":{"code":"a","message":"long te"#, r#"{"error":{"code":"a","message":"long te"}}"#)]
    #[case(r#"{"error":{"code":"a","mess"#, r#"{"error":{"code":"a"}}"#)]
    #[case(r#"{"error":{"code":"a","message":"x","n":12"#, r#"{"error":{"code":"a","message":"x"}}"#)]
    #[case(r#"{"a":["b",{"c":1},{"d":tr"#, r#"{"a":["b",{"c":1},{}]}"#)]
    #[case(r#"{"a":"b\u00e"#, r#"{"a":"b"}"#)]
    #[case(r#"{"a":"b\"#, r#"{"a":"b"}"#)]
    #[case(r#"{"a":"b\\"#, r#"{"a":"b\\"}"#)]
    #[case("{", "{}")]
    #[case("a plain te", "a plain te")]
    #[case("", "")]
    fn close_json_keeps_complete_members(#[case] beginning: &str, #[case] expected: &str) {
        assert_eq!(close_json(beginning.as_bytes()), expected);
    }

    #[test]
    fn close_json_makes_json_of_every_beginning() {
        let text = r#"{"error":{"code":"insufficient_quota","details":[{"a":[1,-2.5e3,true,null,"\u00e9\n"]},[]],"message":"é \"x\""},"b":{}}"#;
        for end in 1..=text.len() {
            let closed = close_json(&text.as_bytes()[..end]);
            assert!(serde_json::from_str::<serde_json::Value>(&closed).is_ok(), "{end}: {closed}");
        }
    }
}
