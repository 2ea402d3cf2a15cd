//! Inline content: content in the JSON of an asset instead of a separate multipart part.

use crate::json::{JsonKind, JsonPart, Member};

/// Members of an asset with base64 content.
pub(crate) const INLINE_CONTENT: [&str; 3] = ["data", "data_base64", "base64"];

/// The depth to which the members of an asset are searched for content.
const MAX_DEPTH: usize = 4;

/// Returns the names of the members of an asset that hold inline content: base64, a `data:` URL, or an object with one
/// of these.
pub(crate) fn inline_contents<'m>(members: &'m [Member<'_>]) -> impl Iterator<Item = &'m str> {
    members.iter().filter(|member| is_content(member, MAX_DEPTH)).map(|member| &*member.name)
}

fn is_content(member: &Member<'_>, depth: usize) -> bool {
    INLINE_CONTENT.contains(&&*member.name) && !member.value.is_null() || holds_content(member.value, depth)
}

fn holds_content(value: JsonPart<'_>, depth: usize) -> bool {
    match value.kind() {
        JsonKind::String => value.as_str().is_some_and(|text| is_data_url(&text)),
        JsonKind::Object if depth > 0 => {
            let mut members = value.iter_members().into_iter().flatten().flatten();
            members.any(|member| is_content(&member, depth - 1))
        }
        JsonKind::Array if depth > 0 => value.iter_elements().any(|part| holds_content(part, depth - 1)),
        _ => false,
    }
}

/// Returns true for a `data:` URL that names a media type or base64.
pub(crate) fn is_data_url(text: &str) -> bool {
    let Some(rest) = after_data_scheme(text) else { return false };
    let header: Vec<u8> = rest.take_while(|byte| *byte != b',').map(|byte| byte.to_ascii_lowercase()).collect();
    // A URL without a comma has no content.
    if after_data_scheme(text).is_none_or(|mut rest| !rest.any(|byte| byte == b',')) {
        return false;
    }
    let mut parameters = header.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let is_token = |part: &[u8]| {
        !part.is_empty() && part.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-*".contains(byte))
    };
    let media_type = parameters.next().unwrap_or_default();
    let is_media_type = media_type.split(|byte| *byte == b'/').all(is_token) && media_type.contains(&b'/');
    is_media_type || parameters.any(|parameter| parameter == b"base64")
}

/// Returns true for any URL with the scheme `data`.
pub(crate) fn has_data_scheme(text: &str) -> bool {
    after_data_scheme(text).is_some()
}

/// Returns the bytes after `data:`, as URL parsers read them: they skip leading spaces and control characters, and tabs
/// and line breaks everywhere.
fn after_data_scheme(text: &str) -> Option<impl Iterator<Item = u8>> {
    let rest = text.bytes().skip_while(|byte| *byte <= b' ');
    let mut rest = rest.filter(|byte| !matches!(byte, b'\t' | b'\n' | b'\r'));
    b"data:".iter().all(|expected| rest.next().is_some_and(|byte| byte.eq_ignore_ascii_case(expected))).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("data:image/png;base64,AA==", true)]
    #[case("DATA:Image/SVG+xml,%3Csvg", true)]
    #[case(" \u{1}\nda\tta:\nimage/png,AA", true)]
    #[case("data: image/png ; base64 ,AA", true)]
    #[case("data:;base64,AA", true)]
    #[case("data:text/plain;charset=utf-8,a", true)]
    #[case("data:,a", false)]
    #[case("data: one, two", false)]
    #[case("data:image/png", false)]
    #[case("data", false)]
    #[case("the data:image/png,a", false)]
    #[case("https://example.org/a,b", false)]
    fn is_data_url_requires_media_type_or_base64(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(is_data_url(text), expected);
    }

    #[test]
    fn is_data_url_reads_headers_of_any_length() {
        assert!(is_data_url(&format!("data:image/png;x={};base64,AA", "y".repeat(10_000))));
    }
}
