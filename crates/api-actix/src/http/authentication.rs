//! Authentication of the caller from the request headers.

use actix_web::http::header::{AUTHORIZATION, HeaderMap, HeaderName};
use domain::api_key::{Authenticate, AuthenticateError, Principal};

/// The headers that may hold a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// `Authorization` only; other headers are not read.
    Bearer,
    /// `Authorization` and the API key headers of vendor clients.
    AnyHeader,
}

/// The headers that replace a bearer token on the vendor routes.
const KEY_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("x-goog-api-key"),
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-api-key"),
];

/// Authenticates the caller.
pub(crate) async fn authenticate(
    authenticate: &Authenticate,
    headers: &HeaderMap,
    accepted: Credentials,
) -> Result<Principal, AuthenticateError> {
    let token = match accepted {
        Credentials::Bearer => bearer_token(headers)?,
        Credentials::AnyHeader => any_token(headers)?,
    };
    authenticate.execute(token).await
}

/// Returns the token if all present headers hold the same one.
fn any_token(headers: &HeaderMap) -> Result<&str, AuthenticateError> {
    let mut token = headers.contains_key(AUTHORIZATION).then(|| bearer_token(headers)).transpose()?;
    for name in &KEY_HEADERS {
        for value in headers.get_all(name) {
            let value = value.to_str().map_err(|_| AuthenticateError::Invalid)?;
            if *token.get_or_insert(value) != value {
                return Err(AuthenticateError::Invalid);
            }
        }
    }
    token.ok_or(AuthenticateError::Missing)
}

/// Returns the token of exactly one `Bearer <token>` header; the scheme is case-insensitive and one or more spaces
/// follow.
fn bearer_token(headers: &HeaderMap) -> Result<&str, AuthenticateError> {
    let mut values = headers.get_all(AUTHORIZATION);
    let value = values.next().ok_or(AuthenticateError::Missing)?;
    if values.next().is_some() {
        return Err(AuthenticateError::Invalid);
    }
    let text = value.to_str().map_err(|_| AuthenticateError::Invalid)?;
    let (scheme, token) = text.split_once(' ').ok_or(AuthenticateError::Invalid)?;
    if scheme.eq_ignore_ascii_case("bearer") {
        Ok(token.trim_start_matches(' '))
    } else {
        Err(AuthenticateError::Invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::HeaderValue;

    fn token_of(values: &[&[u8]]) -> Result<String, AuthenticateError> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        bearer_token(&headers).map(str::to_owned)
    }

    #[test]
    fn vendor_header_replaces_bearer_and_conflicts_are_rejected() {
        let token_of = |given: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in given {
                headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
            }
            any_token(&headers).map(str::to_owned)
        };
        for name in ["x-goog-api-key", "api-key", "x-api-key"] {
            assert_eq!(token_of(&[(name, "sk")]).unwrap(), "sk", "{name}");
            assert_eq!(token_of(&[("authorization", "Bearer sk"), (name, "sk")]).unwrap(), "sk", "{name}");
            for differing in [("authorization", "Bearer other"), ("authorization", "Basic sk"), (name, "other")] {
                assert!(matches!(token_of(&[(name, "sk"), differing]), Err(AuthenticateError::Invalid)), "{name}");
            }
        }
        assert_eq!(token_of(&[("authorization", "Bearer sk")]).unwrap(), "sk");
        assert!(matches!(token_of(&[("x-api-key", "a"), ("api-key", "b")]), Err(AuthenticateError::Invalid)));
        assert!(matches!(token_of(&[]), Err(AuthenticateError::Missing)));
    }

    #[test]
    fn bearer_scheme_accepts_any_case_and_spaces() {
        for header in ["Bearer sk", "bearer sk", "BEARER sk", "Bearer   sk"] {
            assert_eq!(token_of(&[header.as_bytes()]).unwrap(), "sk", "{header}");
        }
    }

    #[test]
    fn absent_header_is_missing_credentials() {
        assert!(matches!(token_of(&[]), Err(AuthenticateError::Missing)));
    }

    #[test]
    fn malformed_header_is_invalid_credentials() {
        let other: [&[&[u8]]; 7] = [
            &[b""],
            &[b"Bearer"],
            &[b"Basic c2s="],
            &[b"sk"],
            &[b"Bearer s\xc3\xa9"],
            &[b"Bearer sk", b"Bearer sk"],
            &[b"Bearer\tsk"],
        ];
        for values in other {
            assert!(matches!(token_of(values), Err(AuthenticateError::Invalid)), "{values:?}");
        }
    }
}
