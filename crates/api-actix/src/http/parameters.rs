//! Path segments and query parameters, percent-decoded once.

use std::borrow::Cow;

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use domain::ids::WorkspaceId;
use domain::json::unknown_name;
use domain::naming::ResourceName;
use percent_encoding::{percent_decode, percent_decode_str};

use super::error::ApiError;

/// Returns the decoded value of the parameter `name`; other parameters are not read.
///
/// # Errors
/// 400 if the parameter occurs more than once, is not valid UTF-8 or has a NUL.
pub(crate) fn value(query: &str, name: &str) -> Result<Option<String>, ApiError> {
    let mut found = None;
    for pair in query.split('&') {
        let (given, value) = pair.split_once('=').unwrap_or((pair, ""));
        if decode(given).as_deref() == Some(name) {
            let value = decode(value)
                .ok_or_else(|| ApiError::invalid(format!("{name} is not UTF-8 without NUL when decoded")))?;
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
pub(crate) fn check_names(query: &str, known: impl Iterator<Item = &'static str> + Clone) -> Result<(), ApiError> {
    for name in names(query) {
        let name = name?;
        if !known.clone().any(|known| known == name) {
            return Err(ApiError::invalid(unknown_name("query parameter", &name, known)));
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
        decode(name).ok_or_else(|| ApiError::invalid("a query parameter's name is not UTF-8 without NUL when decoded"))
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

/// The only parameter of a creation.
pub(crate) const UNIQUE_NAME: &str = "unique_name";

/// Returns true if a creation rejects a name that another resource has.
///
/// # Errors
/// As [`switch`].
pub(crate) fn unique_name(query: &str) -> Result<bool, ApiError> {
    Ok(switch(query, UNIQUE_NAME)?.unwrap_or_default())
}

/// The smallest, the default and the largest size of a page of an append-only list.
pub(crate) const PAGE_LIMITS: (usize, usize, usize) = (1, 100, 1_000);

/// Returns the parameter `limit` of an append-only list.
///
/// # Errors
/// As [`count`], and 400 outside of 1 to 1,000.
pub(crate) fn page_limit(query: &str) -> Result<usize, ApiError> {
    let (min, default, max) = PAGE_LIMITS;
    let limit = count(query, "limit")?.unwrap_or(default);
    if (min..=max).contains(&limit) {
        Ok(limit)
    } else {
        Err(ApiError::invalid(format!("limit must be {min} to {max}")))
    }
}

/// Returns the value of the parameter `name` as a date.
///
/// # Errors
/// As [`value`], and 400 if it is no date.
pub(crate) fn date(query: &str, name: &str) -> Result<Option<NaiveDate>, ApiError> {
    let parse =
        |text: String| parse_date(&text).ok_or_else(|| ApiError::invalid(format!("{name} must be a date: YYYY-MM-DD")));
    value(query, name)?.map(parse).transpose()
}

fn parse_date(text: &str) -> Option<NaiveDate> {
    // Chrono also reads signs, spaces and years of other lengths.
    let fits = |(at, byte): (usize, u8)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() };
    let is_date = text.len() == 10 && text.bytes().enumerate().all(fits);
    is_date.then(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()).flatten()
}

/// Returns the value of the parameter `name` as a time: an RFC 3339 time in UTC, or a date for its beginning.
///
/// # Errors
/// As [`value`], and 400 for another text or another offset than UTC.
pub(crate) fn time(query: &str, name: &str) -> Result<Option<DateTime<Utc>>, ApiError> {
    let parse = |text: String| {
        let of_date = parse_date(&text).map(|date| date.and_time(NaiveTime::MIN).and_utc());
        of_date.or_else(|| utc_time(&text)).ok_or_else(|| {
            ApiError::invalid(format!(
                "{name} must be a date or an RFC 3339 time in UTC, for example 2026-11-27T09:00:00Z"
            ))
        })
    };
    value(query, name)?.map(parse).transpose()
}

/// Reads an RFC 3339 time in UTC. A leap second is none: clients cannot read it back.
pub(crate) fn utc_time(text: &str) -> Option<DateTime<Utc>> {
    let time = DateTime::parse_from_rfc3339(text).ok()?;
    let is_utc = time.offset().local_minus_utc() == 0;
    let is_leap = time.timestamp_subsec_millis() >= 1_000;
    (is_utc && !is_leap).then(|| time.to_utc())
}

/// Returns the value of the parameter `name` as the name of a resource.
///
/// # Errors
/// As [`value`].
pub(crate) fn resource(query: &str, name: &str) -> Result<Option<ResourceName>, ApiError> {
    Ok(value(query, name)?.map(ResourceName::new))
}

/// Parses the member `workspace_id`.
pub(crate) fn workspace_id(text: &str) -> Result<WorkspaceId, ApiError> {
    text.parse().map_err(|_| super::members::invalid("workspace_id", "must be a UUID"))
}

fn decode(text: &str) -> Option<String> {
    let spaced: Cow<'_, str> = if text.contains('+') { text.replace('+', " ").into() } else { text.into() };
    percent_decode(spaced.as_bytes()).decode_utf8().ok().filter(|text| is_storable(text)).map(Cow::into_owned)
}

/// Decodes a path segment; returns `None` if it is not UTF-8 or has a NUL.
pub(crate) fn segment(segment: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(segment).decode_utf8().ok().filter(|text| is_storable(text))
}

/// No stored text has a NUL, and PostgreSQL fails statements that ask for one.
fn is_storable(text: &str) -> bool {
    !text.contains('\0')
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
        for query in ["output_modalities=%ff", "output_modalities=%00", "output_modalities=a%00b"] {
            assert!(filter(query).is_err_and(|error| error.contains("UTF-8 without NUL")), "{query}");
        }
    }

    #[test]
    fn check_names_rejects_unknown_parameters_with_the_nearest_known_one() {
        let check = |query| check_names(query, ["limit", "after"].into_iter()).map_err(|error| error.text().to_owned());
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
    fn time_is_a_date_or_rfc_3339_in_utc() {
        let since = |query: &str| time(query, "since").map_err(|error| error.text().to_owned());
        let text = |query: &str| since(query).unwrap().map(|time| time.to_rfc3339());
        assert_eq!(text("a=1"), None);
        assert_eq!(text("since=2026-11-27").as_deref(), Some("2026-11-27T00:00:00+00:00"));
        assert_eq!(text("since=2026-11-27T09:30:00.5Z").as_deref(), Some("2026-11-27T09:30:00.500+00:00"));
        assert_eq!(text("since=2026-11-27T09:30:00%2B00:00").as_deref(), Some("2026-11-27T09:30:00+00:00"));
        for query in ["", "2026-11-27T09:30:00", "2026-11-27T09:30:00%2B01:00", "2026-02-30", "1", "2026-1-2"] {
            assert!(
                since(&format!("since={query}")).unwrap_err().starts_with("since must be a date or an RFC"),
                "{query}"
            );
        }
        let day = |query: &str| date(query, "since").map_err(|error| error.text().to_owned());
        assert_eq!(day("since=2026-11-27").unwrap().unwrap().to_string(), "2026-11-27");
        for query in ["2026-11-27T09:30:00Z", "-9999-1-01", "%2B99999-1-1", "2026-+1-+1", "2026-02-30", "20261127.."] {
            assert!(day(&format!("since={query}")).unwrap_err().contains("YYYY-MM-DD"), "{query}");
        }
    }

    #[test]
    fn page_limit_is_one_to_a_thousand() {
        let limit = |query: &str| page_limit(query).map_err(|error| error.text().to_owned());
        assert_eq!((limit(""), limit("limit=1"), limit("limit=1000")), (Ok(100), Ok(1), Ok(1_000)));
        for query in ["limit=0", "limit=1001"] {
            assert_eq!(limit(query).unwrap_err(), "limit must be 1 to 1000", "{query}");
        }
    }

    #[test]
    fn segment_is_decoded_exactly_once() {
        assert_eq!(segment("a%2Fb").unwrap(), "a/b");
        assert_eq!(segment("%252e").unwrap(), "%2e");
        assert_eq!(segment("a+b%").unwrap(), "a+b%");
        assert_eq!((segment("%ff"), segment("%00"), segment("a%00b")), (None, None, None));
    }
}
