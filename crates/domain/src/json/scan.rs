//! Finds the ranges of values in validated JSON. It does not check the grammar again, so that it reads each byte once
//! and without recursion.

use std::ops::Range;

/// A member's name as written, without its quotes.
pub(super) struct WrittenName {
    pub(super) content: Range<usize>,
    /// True if the name has escapes and must be decoded.
    pub(super) is_escaped: bool,
}

/// Iterates over the members or elements of one object or array.
pub(super) struct Scanner<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl<'t> Scanner<'t> {
    /// Starts behind the opening bracket or brace of an array or object.
    pub(super) fn inside(text: &'t str) -> Self {
        Self { bytes: text.as_bytes(), at: 1 }
    }

    /// Returns the name of the next member; `None` behind the last one.
    pub(super) fn next_name(&mut self) -> Option<WrittenName> {
        if self.next_byte()? != b'"' {
            return None;
        }
        let start = self.at + 1;
        let (end, is_escaped) = string_end(self.bytes, start);
        self.at = end + 1;
        Some(WrittenName { content: start..end, is_escaped })
    }

    /// Returns the range of the next value: an element, or the value of the last name. `None` behind the last one.
    pub(super) fn next_value(&mut self) -> Option<Range<usize>> {
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

    /// Returns the next byte that is not whitespace, a comma or a colon. The parser has checked their positions
    /// already.
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

/// Returns the position of the closing quote of the string whose content begins at `at`, and whether it has escapes.
fn string_end(bytes: &[u8], mut at: usize) -> (usize, bool) {
    let mut is_escaped = false;
    loop {
        at = quote_or_backslash(bytes, at);
        if bytes.get(at) != Some(&b'\\') {
            return (at, is_escaped);
        }
        is_escaped = true;
        // Escapes often follow each other.
        while bytes.get(at) == Some(&b'\\') {
            at += 2;
        }
    }
}

/// Returns the end of the array or object that begins at `at`.
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

/// Returns the end of the number or word that begins at `at`.
fn scalar_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
    at + rest.iter().position(ends).unwrap_or(rest.len())
}

/// Returns the position of the next quote or backslash from `at` on, or the end of the text. Most of a request body is
/// strings, so this reads eight bytes at a time.
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

/// Returns the highest bit of the first zero byte. Bits above it are meaningless. Returns 0 if no byte is zero.
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
            while let Some(value) = values.next_value() {
                prop_assert!(value.start < value.end && value.end <= text.len());
            }
            let mut names = Scanner::inside(&text);
            while names.next_name().is_some() && names.next_value().is_some() {}
        }
    }
}
