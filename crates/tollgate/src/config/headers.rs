//! Headers that are sent to a provider with each call.

use http::{HeaderName, HeaderValue};

/// Headers of a single connection, and headers that the client writes itself.
const TAKEN: [&str; 15] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// Words in the names of secret headers.
const SECRET_WORDS: [&str; 10] = [
    "apikey",
    "auth",
    "authentication",
    "authorization",
    "cookie",
    "credential",
    "credentials",
    "password",
    "secret",
    "token",
];

/// Words before `key` in the names of secret headers; a routing key is no secret.
const KEYS: [&str; 8] = ["access", "account", "api", "functions", "private", "subscription", "user", "x"];

/// Prefixes of secret header values.
const SECRET_SCHEMES: [&str; 2] = ["bearer ", "basic "];

/// Parses `name: value`; the name becomes lower case.
///
/// # Errors
/// The reason why it cannot be sent. The value, which may be a secret, is not repeated.
pub fn parse(line: &str) -> Result<(String, String), String> {
    let Some((name, value)) = line.split_once(':') else {
        return Err("must hold headers in the form \"name: value\"".to_owned());
    };
    let name = self::name(name.trim_matches([' ', '\t'])).map_err(|fault| match fault {
        InvalidName::Malformed => {
            "has an invalid header name; names and values have the form \"name: value\"".to_owned()
        }
        InvalidName::Taken(taken) => {
            format!("must not hold {taken}, which belongs to the connection or is written by the client")
        }
    })?;
    if is_secret(&name) {
        return Err(format!(
            "must not hold {}, which is a secret by its name: api_key names the secret, and auth_header its header",
            displayed_name(&name)
        ));
    }
    let value = value.trim_matches([' ', '\t']);
    let lower = value.to_ascii_lowercase();
    if SECRET_SCHEMES.iter().any(|scheme| lower.starts_with(scheme)) {
        return Err(format!("must not hold credentials, as {} does: api_key names them", displayed_name(&name)));
    }
    let printable = value.bytes().all(|byte| byte == b' ' || byte == b'\t' || byte.is_ascii_graphic());
    if value.is_empty() || !printable || HeaderValue::from_str(value).is_err() {
        return Err(format!("has a value of {} that is not printable ASCII on one line", displayed_name(&name)));
    }
    Ok((name, value.to_owned()))
}

/// Parses the name of the header that carries the key; it becomes lower case.
///
/// # Errors
/// The reason why it cannot be used. The name, which may be the key itself, is not repeated.
pub fn auth_header(text: &str) -> Result<String, String> {
    name(text).map_err(|fault| match fault {
        InvalidName::Malformed => {
            "must be the name of a header, such as x-api-key; api_key names the key itself".to_owned()
        }
        InvalidName::Taken(taken) => {
            format!("must not be {taken}, which belongs to the connection or is written by the client")
        }
    })
}

/// The reason why a header cannot be configured.
enum InvalidName {
    /// It is not a header name.
    Malformed,
    /// Reserved for the client or the connection: this name, or names with this prefix.
    Taken(&'static str),
}

/// Checks the name of a configurable header; it becomes lower case.
fn name(name: &str) -> Result<String, InvalidName> {
    let known: HeaderName = name.parse().map_err(|_| InvalidName::Malformed)?;
    let taken = TAKEN.iter().find(|taken| **taken == known.as_str());
    if let Some(taken) = taken.copied().or(known.as_str().starts_with("proxy-").then_some("proxy-*")) {
        return Err(InvalidName::Taken(taken));
    }
    Ok(known.as_str().to_owned())
}

/// Returns a header's name for a message. A name with a digit, or a long one, may be a misplaced secret and is not
/// shown.
pub fn displayed_name(name: &str) -> &str {
    let is_plain = name.len() <= 40 && !name.bytes().any(|byte| byte.is_ascii_digit());
    if is_plain { name } else { "a header" }
}

fn is_secret(name: &str) -> bool {
    let words: Vec<&str> = name.split(['-', '_', '.']).collect();
    let opens = |pair: &[&str]| matches!(pair, [kind, "key"] if KEYS.contains(kind));
    words == ["key"] || words.iter().any(|word| SECRET_WORDS.contains(word)) || words.windows(2).any(opens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_splits_name_and_value() {
        let parsed = |line: &str| parse(line).unwrap();
        assert_eq!(
            parsed("TypeSafe-Danger-Zone-Images: true"),
            ("typesafe-danger-zone-images".to_owned(), "true".to_owned())
        );
        assert_eq!(parsed("x-region:eu"), ("x-region".to_owned(), "eu".to_owned()));
        assert_eq!(parsed("x-where:  a: b\t"), ("x-where".to_owned(), "a: b".to_owned()));
        for harmless in ["x-routing-key: eu", "keyboard: de", "x-author: me", "x-tokens-per-second: 5", "monkey: yes"] {
            assert!(parse(harmless).is_ok(), "{harmless}");
        }
    }

    #[test]
    fn parse_rejects_secrets_without_repeating_them() {
        for line in [
            "Authorization: sk-very-secret",
            "x-api-key: sk-very-secret",
            "api-key: sk-very-secret",
            "X-Goog-Api-Key: sk-very-secret",
            "ocp-apim-subscription-key: sk-very-secret",
            "cookie: sk-very-secret",
            "key: sk-very-secret",
            "x-key: sk-very-secret",
            "x_auth_token: sk-very-secret",
            "x-tenant: Bearer sk-very-secret",
            "x-tenant: basic sk-very-secret",
        ] {
            let fault = parse(line).unwrap_err();
            assert!(fault.contains("api_key names") && !fault.contains("sk-very-secret"), "{line}: {fault}");
        }
    }

    #[test]
    fn parse_rejects_reserved_and_malformed_names() {
        for line in ["Host: h", "Transfer-Encoding: chunked", "connection: close", "TE: x", "Proxy-Foo: x"] {
            assert!(parse(line).unwrap_err().contains("belongs to the connection"), "{line}");
        }
        for line in
            ["", "no colon", ": x", "a b: c", "x: ", "x: a\nb: c", "x: a\r", "x: \u{7f}", "x: é", "ü: x", "x\n: y"]
        {
            let fault = parse(line).unwrap_err();
            assert!(!fault.contains("belongs"), "{line:?}: {fault}");
            assert!(!fault.contains('\n'), "{line:?}: {fault}");
        }
    }
}
