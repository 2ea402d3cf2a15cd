//! The headers that make a change conditional or repeatable: `If-Match` and `Idempotency-Key`.

use actix_web::http::header::{HeaderMap, IF_MATCH};
use domain::repetition::{IdempotencyKey, InvalidIdempotencyKey};
use domain::version::IfMatch;

use super::error::ApiError;

/// Reads `Idempotency-Key`.
///
/// # Errors
/// 400 if it is given twice or is not 1 to 255 visible ASCII characters.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, ApiError> {
    let mut values = headers.get_all("idempotency-key");
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(ApiError::invalid("Idempotency-Key is in the request more than once"));
    }
    let key = value.to_str().ok().and_then(|text| text.parse().ok());
    key.map(Some).ok_or_else(|| ApiError::invalid(InvalidIdempotencyKey.to_string()))
}

/// Reads `If-Match`: entity tags, or `*`. The comparison is strong, so weak tags match no version (RFC 9110, 13.1.1).
///
/// # Errors
/// 400 if a value is not a list of entity tags, or lists `*` with others.
pub(crate) fn if_match(headers: &HeaderMap) -> Result<Option<IfMatch>, ApiError> {
    let mut tags = Vec::new();
    for value in headers.get_all(IF_MATCH) {
        let list = value.to_str().ok().and_then(entity_tags).ok_or_else(invalid_list)?;
        tags.extend(list);
    }
    match tags.as_slice() {
        [] if headers.contains_key(IF_MATCH) => Err(invalid_list()),
        [] => Ok(None),
        ["*"] => Ok(Some(IfMatch::Any)),
        tags if tags.contains(&"*") => Err(invalid_list()),
        tags => {
            let strong = tags.iter().filter_map(|tag| tag.strip_prefix('"')?.strip_suffix('"'));
            Ok(Some(IfMatch::Versions(strong.filter_map(|tag| tag.parse().ok()).collect())))
        }
    }
}

fn invalid_list() -> ApiError {
    ApiError::invalid("If-Match must be entity tags in quotes, separated by commas, or *")
}

/// Splits a list into its entity tags, with their quotes, and `*`. A tag may contain commas.
fn entity_tags(list: &str) -> Option<Vec<&str>> {
    let mut tags = Vec::new();
    let mut rest = list.trim_matches([' ', '\t', ',']);
    while !rest.is_empty() {
        let (tag, after) = if let Some(after) = rest.strip_prefix('*') {
            ("*", after)
        } else {
            let opaque = rest.strip_prefix("W/").unwrap_or(rest).strip_prefix('"')?;
            let after = opaque.split_once('"')?.1;
            (&rest[..rest.len() - after.len()], after)
        };
        tags.push(tag);
        let after = after.trim_start_matches([' ', '\t']);
        rest = match after.strip_prefix(',') {
            Some(after) => after.trim_start_matches([' ', '\t', ',']),
            None if after.is_empty() => after,
            None => return None,
        };
    }
    Some(tags)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderName, HeaderValue};
    use domain::version::Version;

    use super::*;

    fn headers(name: &'static str, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    #[test]
    fn idempotency_key_is_read_once_and_visible_ascii() {
        let key = |values: &[&str]| {
            let key = idempotency_key(&headers("idempotency-key", values));
            key.map(|key| key.map(|key| key.to_string())).map_err(|error| error.status().as_u16())
        };
        let longest = "~".repeat(255);
        assert_eq!(key(&[]), Ok(None));
        assert_eq!(key(&["!a"]), Ok(Some("!a".to_owned())));
        assert_eq!(key(&[&longest]), Ok(Some(longest.clone())));
        for values in [&["a", "a"][..], &[""], &["a b"], &["é"], &[&format!("{longest}~")]] {
            assert_eq!(key(values), Err(400), "{values:?}");
        }
    }

    #[test]
    fn if_match_lists_known_tags_and_ignores_weak_and_foreign_ones() {
        let [one, two] = [1, 2].map(|first| Version::from_digest([first; 32]));
        let read = |values: &[&str]| if_match(&headers("if-match", values)).map_err(|error| error.status().as_u16());
        let versions = |versions: &[Version]| Ok(Some(IfMatch::Versions(versions.to_vec())));
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[" * "]), Ok(Some(IfMatch::Any)));
        assert_eq!(read(&[&format!("\"{one}\"")]), versions(&[one]));
        assert_eq!(read(&[&format!("\"a,b\" , \"{one}\",,\t\"{two}\"")]), versions(&[one, two]));
        assert_eq!(read(&[&format!("\"{one}\""), &format!("\"{two}\"")]), versions(&[one, two]));
        assert_eq!(read(&[&format!("W/\"{one}\"")]), versions(&[]));
        assert_eq!(read(&["\"\""]), versions(&[]));
        let bare = one.to_string();
        for values in [
            &[""][..],
            &[","],
            &[bare.as_str()],
            &["\"a"],
            &["\"a\" \"b\""],
            &["\"a\"b"],
            &["*, \"a\""],
            &["*", "\"a\""],
            &["w/\"a\""],
            &["é"],
        ] {
            assert_eq!(read(values), Err(400), "{values:?}");
        }
    }
}
