//! Where values begin and end in a text that is known to be JSON. Its grammar is not judged again, so that each byte
//! is looked at once and nothing recurses.

use std::ops::Range;

/// A member's name as it was written, without its quotes.
pub(super) struct WrittenName {
    pub(super) content: Range<usize>,
    /// Whether it has escapes, so that it is not the name yet.
    pub(super) is_escaped: bool,
}

/// Goes over what stands in one array or object.
pub(super) struct Scanner<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl<'t> Scanner<'t> {
    /// Behind the first bracket or brace of a text that is an array or an object.
    pub(super) fn inside(text: &'t str) -> Self {
        Self { bytes: text.as_bytes(), at: 1 }
    }

    /// The name of the next member; `None` behind the last one.
    pub(super) fn name(&mut self) -> Option<WrittenName> {
        if self.next_byte()? != b'"' {
            return None;
        }
        let start = self.at + 1;
        let (end, is_escaped) = string_end(self.bytes, start);
        self.at = end + 1;
        Some(WrittenName { content: start..end, is_escaped })
    }

    /// Where the next value is: an element, or what belongs to the name that was read last. `None` behind the last one.
    pub(super) fn value(&mut self) -> Option<Range<usize>> {
        let first = self.next_byte()?;
        let start = self.at;
        let end = match first {
            b'}' | b']' => return None,
            b'"' => string_end(self.bytes, start + 1).0 + 1,
            b'{' | b'[' => nested_end(self.bytes, start),
            _ => scalar_end(self.bytes, start),
        };
        self.at = end.min(self.bytes.len());
        Some(start..self.at)
    }

    /// The first byte of whatever comes next. Where commas and colons stand was settled when the text was parsed.
    fn next_byte(&mut self) -> Option<u8> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':') {
                return Some(byte);
            }
            self.at += 1;
        }
    }
}

/// Where the string whose content begins at `at` has its closing quote, and whether it has escapes.
fn string_end(bytes: &[u8], mut at: usize) -> (usize, bool) {
    let mut is_escaped = false;
    loop {
        at = quote_or_backslash(bytes, at);
        if bytes.get(at) != Some(&b'\\') {
            return (at, is_escaped);
        }
        is_escaped = true;
        // Escapes often come in a row.
        while bytes.get(at) == Some(&b'\\') {
            at += 2;
        }
    }
}

/// The end of the array or object that begins at `at`.
fn nested_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at + 1).0,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    at
}

/// The end of the number or word that begins at `at`.
fn scalar_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
    at + rest.iter().position(ends).unwrap_or(rest.len())
}

/// Where the next quote or backslash is, from `at` on; the end of the text where there is none. Most of a body is
/// strings, so they are gone through eight bytes at a time.
fn quote_or_backslash(bytes: &[u8], mut at: usize) -> usize {
    const QUOTES: u64 = u64::from_ne_bytes([b'"'; 8]);
    const BACKSLASHES: u64 = u64::from_ne_bytes([b'\\'; 8]);
    let mut rest = bytes.get(at..).unwrap_or_default();
    while let Some((word, behind)) = rest.split_first_chunk() {
        let word = u64::from_le_bytes(*word);
        let found = first_zero(word ^ QUOTES) | first_zero(word ^ BACKSLASHES);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        (rest, at) = (behind, at + 8);
    }
    at + rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).unwrap_or(rest.len())
}

/// The highest bit of the lowest byte that is zero; bits above it mean nothing. 0 where no byte is.
fn first_zero(word: u64) -> u64 {
    const LOWEST: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGHEST: u64 = u64::from_ne_bytes([0x80; 8]);
    word.wrapping_sub(LOWEST) & !word & HIGHEST
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn scan_finds_quotes_and_backslashes_at_any_position(
            bytes in prop::collection::vec(
                prop_oneof![4 => any::<u8>(), 1 => prop::sample::select(b"\"\\!#[]\x5d\xa2\xdc".to_vec())],
                0..40,
            ),
            at in 0_usize..45,
        ) {
            let expected = (at..bytes.len()).find(|at| matches!(bytes[*at], b'"' | b'\\')).unwrap_or(bytes.len().max(at));
            prop_assert_eq!(quote_or_backslash(&bytes, at), expected);
        }

        #[test]
        fn scan_never_panics(text in prop_oneof![".{0,60}", r#"[\[{]["\\\[\]{},: a1]{0,60}"#]) {
            let mut values = Scanner::inside(&text);
            while let Some(value) = values.value() {
                prop_assert!(value.start < value.end && value.end <= text.len());
            }
            let mut names = Scanner::inside(&text);
            while names.name().is_some() && names.value().is_some() {}
        }
    }
}
