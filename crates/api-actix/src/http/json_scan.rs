//! A linear scan of a body before parsing: nesting depth and lone surrogates, which parsers treat differently.

/// The maximum nesting depth of arrays and objects.
pub(crate) const MAX_DEPTH: usize = 128;

/// The reason why a body must not be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanError {
    /// More than [`MAX_DEPTH`] nested arrays and objects.
    TooDeep,
    /// A `\u` escape of half a surrogate pair, so the string is not valid Unicode.
    LoneSurrogate,
}

/// Scans without recursion. Syntax errors are left to the parser.
pub(crate) fn scan(text: &str) -> Result<(), ScanError> {
    if is_trivially_valid(text) { Ok(()) } else { full_scan(text) }
}

/// Returns true if the body cannot violate a limit: few brackets (strings included) and no `\u` escape. True for nearly
/// every body; both counts process many bytes at a time.
fn is_trivially_valid(text: &str) -> bool {
    // A `u8` counts up to 255, and the compiler vectorises only sums of bytes.
    let some = |piece: &[u8]| piece.iter().map(|byte| u8::from(matches!(byte, b'{' | b'['))).sum::<u8>();
    let opening: usize = text.as_bytes().chunks(usize::from(u8::MAX)).map(|piece| usize::from(some(piece))).sum();
    opening <= MAX_DEPTH && !text.contains("\\u")
}

fn full_scan(text: &str) -> Result<(), ScanError> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at + 1)?,
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(ScanError::TooDeep);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// Returns the index of the closing quote of the string that begins at `at`, or the end of the text.
fn string_end(bytes: &[u8], mut at: usize) -> Result<usize, ScanError> {
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return Ok(at),
            b'\\' if bytes.get(at + 1) == Some(&b'u') => {
                at += match code_unit(bytes, at) {
                    Some(0xD800..=0xDBFF) => match code_unit(bytes, at + 6) {
                        Some(0xDC00..=0xDFFF) => 12,
                        _ => return Err(ScanError::LoneSurrogate),
                    },
                    Some(0xDC00..=0xDFFF) => return Err(ScanError::LoneSurrogate),
                    Some(_) => 6,
                    None => 2,
                };
            }
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    Ok(at)
}

/// Parses a complete `\uXXXX` escape at `at`.
fn code_unit(bytes: &[u8], at: usize) -> Option<u32> {
    let escape = bytes.get(at..at + 6)?;
    let digits = escape.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)?))
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
        assert_eq!(scan(&nested(100)), Ok(()));
        assert_eq!(scan(&nested(128)), Ok(()));
        assert_eq!(scan(&nested(129)), Err(ScanError::TooDeep));
        assert_eq!(scan(&"{\"a\":".repeat(100_000)), Err(ScanError::TooDeep));
    }

    #[test]
    fn scan_ignores_brackets_in_strings_and_siblings() {
        assert_eq!(scan(&format!("\"{}\\\"{}\"", "[".repeat(500), "{".repeat(500))), Ok(()));
        assert_eq!(scan(&"[],".repeat(1_000)), Ok(()));
    }

    #[test]
    fn scan_rejects_lone_surrogates() {
        for bad in [
            r#""\ud800""#,
            r#""\uDC00""#,
            r#"{"\ud83d":1}"#,
            r#"["a\ud83dx\ude00"]"#,
            r#""\ud83d\ud83d\ude00""#,
            r#""\ud83d\n\ude00""#,
        ] {
            assert_eq!(scan(bad), Err(ScanError::LoneSurrogate), "{bad}");
        }
        for good in
            [r#""\ud83d\ude00""#, r#""\\ud800""#, r#""\u00e9\\""#, "\"😀\"", r#""\uZZZZ""#, r#""\u12"#, "\\ud800"]
        {
            assert_eq!(scan(good), Ok(()), "{good}");
        }
    }

    proptest! {
        #[test]
        fn scan_never_panics(text in ".{0,200}") {
            let _ = scan(&text);
        }

        #[test]
        fn fast_scan_agrees_with_full_scan(
            begin in "[\\[\\]{}\"\\\\]{0,150}",
            text in r#"(\\\\?u[dD][89aAcCfF]00|[\[\]{}"a]|\\\\){0,150}"#,
        ) {
            for text in [format!("{begin}{text}"), format!("{}{text}", "[".repeat(120))] {
                prop_assert_eq!(scan(&text), full_scan(&text));
            }
        }

        #[test]
        fn scan_accepts_serialized_strings(text in ".{0,200}") {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(scan(&json), Ok(()));
        }
    }
}
