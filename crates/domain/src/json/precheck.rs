//! A linear scan of a text before parsing: nesting depth and lone surrogates, which parsers treat differently.

use super::lexer::{Token, Tokens, find_special};

/// The maximum nesting depth of arrays and objects.
pub const MAX_DEPTH: usize = 128;

/// The reason why a text must not be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrecheckError {
    /// More than [`MAX_DEPTH`] nested arrays and objects.
    TooDeep,
    /// A `\u` escape of half a surrogate pair, so the string is not valid Unicode.
    LoneSurrogate,
}

/// Checks the nesting and the escapes of a text, without recursion. Syntax errors are left to the parser.
///
/// # Errors
/// The first violated rule.
pub fn precheck(text: &str) -> Result<(), PrecheckError> {
    if is_trivially_valid(text) { Ok(()) } else { full_scan(text) }
}

/// Returns true if the text cannot violate a limit: few brackets (strings included) and no `\u` escape. True for nearly
/// every body; both counts process many bytes at a time.
fn is_trivially_valid(text: &str) -> bool {
    // A `u8` counts up to 255, and the compiler vectorises only sums of bytes.
    let some = |piece: &[u8]| piece.iter().map(|byte| u8::from(matches!(byte, b'{' | b'['))).sum::<u8>();
    let opening: usize = text.as_bytes().chunks(usize::from(u8::MAX)).map(|piece| usize::from(some(piece))).sum();
    opening <= MAX_DEPTH && !text.contains("\\u")
}

fn full_scan(text: &str) -> Result<(), PrecheckError> {
    let mut depth = 0_usize;
    for (token, range) in Tokens::new(text) {
        match token {
            Token::Object | Token::Array if depth == MAX_DEPTH => return Err(PrecheckError::TooDeep),
            Token::Object | Token::Array => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            Token::Name | Token::String if has_lone_surrogate(&text.as_bytes()[range.clone()]) => {
                return Err(PrecheckError::LoneSurrogate);
            }
            _ => {}
        }
    }
    Ok(())
}

fn has_lone_surrogate(string: &[u8]) -> bool {
    let mut at = 0;
    loop {
        at = find_special::<false>(string, at);
        at += match code_unit(string, at) {
            Some(0xD800..=0xDBFF) if matches!(code_unit(string, at + 6), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => return true,
            Some(_) => 6,
            None if at >= string.len() => return false,
            // A quote, or another escape of two bytes.
            None => 1 + usize::from(string[at] == b'\\'),
        };
    }
}

/// Parses a complete `\uXXXX` escape at `at`.
fn code_unit(bytes: &[u8], at: usize) -> Option<u32> {
    let escape = bytes.get(at..at + 6)?;
    let digits = escape.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)?))
}

/// The highest number of characters of a name in the message.
const MAX_CHARS: usize = 64;

/// Returns the message for an unknown member: its name, and the most similar known name if half of it is the same or it is
/// the beginning of that.
pub fn unknown_member<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    unknown_name("member", name, known)
}

/// Returns the message for an unknown name of that kind; see [`unknown_member`].
pub fn unknown_name<'a>(kind: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let shown: String = name.chars().take(MAX_CHARS).collect();
    let distance = |other: &str| strsim::damerau_levenshtein(&shown, other);
    let is_similar = |(distance, other): &(usize, &str)| {
        2 * distance <= shown.chars().count() || !shown.is_empty() && other.starts_with(&shown)
    };
    match known.into_iter().map(|other| (distance(other), other)).filter(is_similar).min() {
        Some((_, nearest)) => format!("unknown {kind} {shown:?}; the nearest known {kind} is {nearest:?}"),
        None => format!("unknown {kind} {shown:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nested(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn nesting_is_bounded() {
        assert_eq!(precheck(&nested(100)), Ok(()));
        assert_eq!(precheck(&nested(128)), Ok(()));
        assert_eq!(precheck(&nested(129)), Err(PrecheckError::TooDeep));
        assert_eq!(precheck(&"{\"a\":".repeat(100_000)), Err(PrecheckError::TooDeep));
    }

    #[test]
    fn precheck_ignores_brackets_in_strings_and_siblings() {
        assert_eq!(precheck(&format!("\"{}\\\"{}\"", "[".repeat(500), "{".repeat(500))), Ok(()));
        assert_eq!(precheck(&"[],".repeat(1_000)), Ok(()));
    }

    #[test]
    fn precheck_rejects_lone_surrogates() {
        for bad in [
            r#""\ud800""#,
            r#""\uDC00""#,
            r#"{"\ud83d":1}"#,
            r#"["a\ud83dx\ude00"]"#,
            r#""\ud83d\ud83d\ude00""#,
            r#""\ud83d\n\ude00""#,
        ] {
            assert_eq!(precheck(bad), Err(PrecheckError::LoneSurrogate), "{bad}");
        }
        for good in
            [r#""\ud83d\ude00""#, r#""\\ud800""#, r#""\u00e9\\""#, "\"😀\"", r#""\uZZZZ""#, r#""\u12"#, "\\ud800"]
        {
            assert_eq!(precheck(good), Ok(()), "{good}");
        }
    }

    proptest! {
        #[test]
        fn precheck_never_panics(text in ".{0,200}") {
            let _ = precheck(&text);
        }

        #[test]
        fn quick_check_agrees_with_full_scan(
            begin in "[\\[\\]{}\"\\\\]{0,150}",
            text in r#"(\\\\?u[dD][89aAcCfF]00|[\[\]{}"a]|\\\\){0,150}"#,
        ) {
            for text in [format!("{begin}{text}"), format!("{}{text}", "[".repeat(120))] {
                prop_assert_eq!(precheck(&text), full_scan(&text));
            }
        }

        #[test]
        fn precheck_accepts_serialized_strings(text in ".{0,200}") {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(precheck(&json), Ok(()));
        }
    }
}

#[cfg(test)]
mod unknown_member_tests {
    use super::*;

    #[test]
    fn unknown_member_names_nearest_and_truncates_long_names() {
        let known = ["content_filters", "content_filter_builtins", "name"];
        assert_eq!(
            unknown_member("content_filter_builtin", known),
            r#"unknown member "content_filter_builtin"; the nearest known member is "content_filter_builtins""#
        );
        assert_eq!(unknown_member("unheard_of", known), r#"unknown member "unheard_of""#);
        let shortened = unknown_member("limit", ["limit_usd", "name"]);
        assert_eq!(shortened, r#"unknown member "limit"; the nearest known member is "limit_usd""#);
        assert_eq!(unknown_member("", known), r#"unknown member """#);
        let message = unknown_member(&"\u{1}".repeat(10_000), []);
        assert!(message.len() < 600 && !message.contains('\u{1}'), "{message}");
    }
}
