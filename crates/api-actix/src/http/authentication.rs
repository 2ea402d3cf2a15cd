//! From the request's headers to a caller.

use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use domain::api_key::{Authenticate, AuthenticateError, Principal};

/// Lets the caller in, or says why not. Nothing but the `Authorization` header is looked at.
pub(crate) async fn authenticate(
    authenticate: &Authenticate,
    headers: &HeaderMap,
) -> Result<Principal, AuthenticateError> {
    authenticate.execute(bearer_token(headers)?).await
}

/// The token of exactly one header of the form `Bearer <token>`; the scheme in any case, one space or more.
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
    fn the_scheme_has_any_case_and_any_number_of_spaces() {
        for header in ["Bearer sk", "bearer sk", "BEARER sk", "Bearer   sk"] {
            assert_eq!(token_of(&[header.as_bytes()]).unwrap(), "sk", "{header}");
        }
    }

    #[test]
    fn no_header_is_missing() {
        assert!(matches!(token_of(&[]), Err(AuthenticateError::Missing)));
    }

    #[test]
    fn any_other_form_is_invalid() {
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
