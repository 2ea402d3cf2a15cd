//! Path segments and query parameters, percent-decoded once.

use std::borrow::Cow;

use domain::ids::WorkspaceId;
use domain::json::unknown_name;
use percent_encoding::{percent_decode, percent_decode_str};

use super::error::ApiError;

/// Returns the decoded value of the parameter `name`; other parameters are not read.
///
/// # Errors
/// 400 if the parameter occurs more than once or is not valid UTF-8.
pub(crate) fn value(query: &str, name: &str) -> Result<Option<String>, ApiError> {
    let mut found = None;
    for pair in query.split('&') {
        let (given, value) = pair.split_once('=').unwrap_or((pair, ""));
        if decode(given).as_deref() == Some(name) {
            let value = decode(value).ok_or_else(|| ApiError::invalid(format!("{name} is not UTF-8 when decoded")))?;
            if found.replace(value).is_some() {
                return Err(ApiError::invalid(format!("{name} is in the query more than once")));
            }
        }
    }
    Ok(found)
}

/// Checks that the query has no other parameters than `known`.
///
/// # Errors
/// 400 that names an unknown parameter and the nearest known one.
pub(crate) fn check_names(query: &str, known: &[&str]) -> Result<(), ApiError> {
    for name in names(query) {
        let name = name?;
        if !known.contains(&name.as_str()) {
            return Err(ApiError::invalid(unknown_name("query parameter", &name, known.iter().copied())));
        }
    }
    Ok(())
}

/// Checks that the query has none of these parameters, which published clients know and which have no function here.
///
/// # Errors
/// 400 that names the parameter.
pub(crate) fn reject_names(query: &str, unsupported: &[&str]) -> Result<(), ApiError> {
    for name in names(query) {
        let name = name?;
        if unsupported.contains(&name.as_str()) {
            return Err(ApiError::invalid(format!("{name} is not supported")));
        }
    }
    Ok(())
}

/// Returns the decoded names in the query.
fn names(query: &str) -> impl Iterator<Item = Result<String, ApiError>> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let name = pair.split_once('=').map_or(pair, |(name, _)| name);
        decode(name).ok_or_else(|| ApiError::invalid("a query parameter's name is not UTF-8 when decoded"))
    })
}

/// Checks that `check` accepts exactly the query parameters that an operation describes.
#[cfg(test)]
#[track_caller]
pub(crate) fn assert_known(operation: super::operation::Operation, check: impl Fn(&str) -> Result<(), ApiError>) {
    let description = serde_json::to_value(operation.description).unwrap();
    let described: Vec<&str> = description["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|parameter| parameter["in"] == "query")
        .map(|parameter| parameter["name"].as_str().unwrap())
        .collect();
    let described = described.join("=&");
    check(&described).map_err(|error| error.text().to_owned()).unwrap();
    let error = check("x=1").unwrap_err().text().to_owned();
    assert!(error.starts_with("unknown query parameter"), "{error}");
}

/// Returns the value of the parameter `name` as a number.
///
/// # Errors
/// As [`value`], and 400 if it is not a whole number.
pub(crate) fn count(query: &str, name: &str) -> Result<Option<usize>, ApiError> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    value(query, name)?
        .map(|text| text.parse().ok().filter(|_| is_number(&text)))
        .map(|number| number.ok_or_else(|| ApiError::invalid(format!("{name} must be a whole number"))))
        .transpose()
}

/// Returns the value of the parameter `name` as a boolean.
///
/// # Errors
/// As [`value`], and 400 if it is not `true` or `false`.
pub(crate) fn switch(query: &str, name: &str) -> Result<Option<bool>, ApiError> {
    value(query, name)?
        .map(|text| text.parse().map_err(|_| ApiError::invalid(format!("{name} must be true or false"))))
        .transpose()
}

/// Returns the workspace id in the query, if there is one.
///
/// # Errors
/// As [`value`], and 400 if it is not a UUID.
pub(crate) fn workspace(query: &str) -> Result<Option<WorkspaceId>, ApiError> {
    value(query, "workspace_id")?.as_deref().map(workspace_id).transpose()
}

/// Parses the member or parameter `workspace_id`.
pub(crate) fn workspace_id(text: &str) -> Result<WorkspaceId, ApiError> {
    text.parse().map_err(|_| ApiError::invalid("workspace_id must be a UUID"))
}

fn decode(text: &str) -> Option<String> {
    let spaced: Cow<'_, str> = if text.contains('+') { text.replace('+', " ").into() } else { text.into() };
    percent_decode(spaced.as_bytes()).decode_utf8().ok().map(Cow::into_owned)
}

/// Decodes a path segment; returns `None` if it is not UTF-8.
pub(crate) fn segment(segment: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(segment).decode_utf8().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(query: &str) -> Result<Option<String>, String> {
        value(query, "output_modalities").map_err(|error| error.text().to_owned())
    }

    #[test]
    fn value_decodes_single_parameter() {
        assert_eq!(filter("").unwrap(), None);
        assert_eq!(filter("limit=3&x").unwrap(), None);
        assert_eq!(filter("a=1&output_modalities=text%2Cimage").unwrap().unwrap(), "text,image");
        assert_eq!(filter("output%5Fmodalities=text,+image").unwrap().unwrap(), "text, image");
        assert_eq!(filter("output_modalities=").unwrap().unwrap(), "");
        assert_eq!(filter("output_modalities").unwrap().unwrap(), "");
    }

    #[test]
    fn value_rejects_duplicates_and_invalid_utf8() {
        assert!(filter("output_modalities=text&output_modalities=text").unwrap_err().contains("more than once"));
        assert!(filter("output_modalities=%ff").unwrap_err().contains("UTF-8"));
    }

    #[test]
    fn check_names_rejects_unknown_parameters_with_the_nearest_known_one() {
        let check = |query| check_names(query, &["limit", "after"]).map_err(|error| error.text().to_owned());
        for query in ["", "limit=1&after=x", "limit", "%6cimit=1", "limit=a%ffb", "&limit=1&"] {
            assert_eq!(check(query), Ok(()), "{query}");
        }
        let expected = r#"unknown query parameter "limmit"; the nearest known query parameter is "limit""#;
        assert_eq!(check("after=x&limmit=1").unwrap_err(), expected);
        assert_eq!(check("x%22=1").unwrap_err(), r#"unknown query parameter "x\"""#);
        assert!(check("%ff=1").unwrap_err().contains("UTF-8"));
    }

    #[test]
    fn reject_names_rejects_only_unsupported_parameters() {
        let check = |query| reject_names(query, &["zdr", "arch"]).map_err(|error| error.text().to_owned());
        for query in ["", "limit=1", "zdrx=1&y=zdr"] {
            assert_eq!(check(query), Ok(()), "{query}");
        }
        for query in ["zdr=true", "a=1&zdr", "%7adr=", "zdr="] {
            assert_eq!(check(query).unwrap_err(), "zdr is not supported", "{query}");
        }
    }

    #[test]
    fn switch_accepts_only_true_and_false() {
        let include = |query: &str| switch(query, "include").map_err(|error| error.text().to_owned());
        assert_eq!(include("a=1").unwrap(), None);
        assert_eq!((include("include=true").unwrap(), include("include=false").unwrap()), (Some(true), Some(false)));
        for query in ["include", "include=", "include=1", "include=True"] {
            assert_eq!(include(query).unwrap_err(), "include must be true or false", "{query}");
        }
    }

    #[test]
    fn count_accepts_only_digits() {
        let limit = |query: &str| count(query, "limit").map_err(|error| error.text().to_owned());
        assert_eq!(limit("offset=1").unwrap(), None);
        assert_eq!(limit("limit=500").unwrap(), Some(500));
        for query in ["limit=", "limit", "limit=-1", "limit=%2B1", "limit=1.0", "limit=99999999999999999999999"] {
            assert_eq!(limit(query).unwrap_err(), "limit must be a whole number", "{query}");
        }
    }

    #[test]
    fn segment_is_decoded_exactly_once() {
        assert_eq!(segment("a%2Fb").unwrap(), "a/b");
        assert_eq!(segment("%252e").unwrap(), "%2e");
        assert_eq!(segment("a+b%").unwrap(), "a+b%");
        assert_eq!(segment("%ff"), None);
    }
}
