//! The lexer of JSON: tokens, and the ranges of values. It reads each byte once, without recursion and without a check of
//! the grammar.
//!
//! The validator ([`super::checker`]) shares its search for the end of a string and nothing else: validation over tokens
//! took a third more instructions.

use std::ops::Range;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// An opening brace.
    Object,
    /// An opening bracket.
    Array,
    /// A closing brace or bracket.
    Close,
    /// A comma.
    Comma,
    /// A colon.
    Colon,
    /// The name of a member; the range includes the quotes.
    Name,
    /// A string value; the range includes the quotes.
    String,
    /// A number as written.
    Number,
    /// `true`, `false` or `null`; any other text in invalid JSON.
    Word,
}

/// Iterates over the tokens of a text. In invalid JSON, all bytes but whitespace are in some token.
#[derive(Debug)]
pub struct Tokens<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl<'t> Tokens<'t> {
    /// Starts at the begin of the text.
    pub fn new(text: &'t (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self { bytes: text.as_ref(), at: 0 }
    }

    /// Returns the tokens without commas and colons.
    pub(crate) fn without_separators(self) -> impl Iterator<Item = (Token, Range<usize>)> {
        self.filter(|(token, _)| !matches!(token, Token::Comma | Token::Colon))
    }

    /// Returns the next byte that is not whitespace, without taking it.
    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            if !is_space(byte) {
                return Some(byte);
            }
            self.at += 1;
        }
    }
}

impl Iterator for Tokens<'_> {
    type Item = (Token, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let first = self.peek()?;
        let start = self.at;
        let mut end = start + 1;
        let token = match first {
            b'{' => Token::Object,
            b'[' => Token::Array,
            b'}' | b']' => Token::Close,
            b',' => Token::Comma,
            b':' => Token::Colon,
            b'"' => {
                end = (string_end(self.bytes, end).0 + 1).min(self.bytes.len());
                self.at = end;
                let token = if self.peek() == Some(b':') { Token::Name } else { Token::String };
                return Some((token, start..end));
            }
            _ => {
                end = scalar_end(self.bytes, start);
                if first == b'-' || first.is_ascii_digit() { Token::Number } else { Token::Word }
            }
        };
        self.at = end;
        Some((token, start..end))
    }
}

/// Returns the range of a string's content, without its quotes.
pub(crate) fn string_content(string: Range<usize>) -> Range<usize> {
    let end = string.end.saturating_sub(1);
    (string.start + 1).min(end)..end
}

/// Returns true for whitespace of JSON.
#[inline]
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

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
            if !is_space(byte) && !matches!(byte, b',' | b':') {
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
        at = find_special::<false>(bytes, at);
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

/// Counts the commas outside of strings: the members and elements of a JSON text beyond the first ones.
pub fn count_commas(text: &str) -> usize {
    let (bytes, mut at, mut commas) = (text.as_bytes(), 0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at + 1).0,
            byte => commas += usize::from(*byte == b','),
        }
        at += 1;
    }
    commas
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

/// Returns the end of the number or word that begins at `at`; it is at least one byte long.
fn scalar_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at + 1..).unwrap_or_default();
    let ends = |byte: &u8| is_space(*byte) || matches!(byte, b',' | b':' | b'"' | b'{' | b'}' | b'[' | b']');
    at + 1 + rest.iter().position(ends).unwrap_or(rest.len())
}

/// Returns the position of the next quote or backslash from `at` on, with `CONTROL` that of the next control character
/// too, or the end of the text. Most of a request body is strings, so this reads eight bytes at a time.
#[inline]
pub(super) fn find_special<const CONTROL: bool>(bytes: &[u8], mut at: usize) -> usize {
    const LOWEST: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGHEST: u64 = u64::from_ne_bytes([0x80; 8]);
    const QUOTES: u64 = u64::from_ne_bytes([b'"'; 8]);
    const BACKSLASHES: u64 = u64::from_ne_bytes([b'\\'; 8]);
    const SPACES: u64 = u64::from_ne_bytes([b' '; 8]);
    // The lowest set bit marks the first byte below the limit; the bits above it are meaningless.
    let below = |word: u64, limit: u64| word.wrapping_sub(limit) & !word & HIGHEST;
    let mut rest = bytes.get(at..).unwrap_or_default();
    while let Some((word, behind)) = rest.split_first_chunk() {
        let word = u64::from_le_bytes(*word);
        let mut found = below(word ^ QUOTES, LOWEST) | below(word ^ BACKSLASHES, LOWEST);
        if CONTROL {
            found |= below(word, SPACES);
        }
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        (rest, at) = (behind, at + 8);
    }
    let special = |byte: &u8| matches!(byte, b'"' | b'\\') || CONTROL && *byte < b' ';
    at + rest.iter().position(special).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tokens_distinguish_names_and_values() {
        use Token::{Array, Close, Colon, Comma, Name, Number, Object, String, Word};
        let text = r#" {"a" : "b", "c":[ "d", -1.5e+3,true ,{"\"e\\":null}], "f":{},"g":[]} "#;
        let shown = |(token, span): (Token, Range<usize>)| (token, &text[span]);
        let all: Vec<(Token, &str)> = Tokens::new(text).map(shown).collect();
        assert_eq!(all[..5], [(Object, "{"), (Name, "\"a\""), (Colon, ":"), (String, "\"b\""), (Comma, ",")]);
        let found: Vec<(Token, &str)> = Tokens::new(text).without_separators().map(shown).collect();
        let expected = [
            (Object, "{"),
            (Name, "\"a\""),
            (String, "\"b\""),
            (Name, "\"c\""),
            (Array, "["),
            (String, "\"d\""),
            (Number, "-1.5e+3"),
            (Word, "true"),
            (Object, "{"),
            (Name, r#""\"e\\""#),
            (Word, "null"),
            (Close, "}"),
            (Close, "]"),
            (Name, "\"f\""),
            (Object, "{"),
            (Close, "}"),
            (Name, "\"g\""),
            (Array, "["),
            (Close, "]"),
            (Close, "}"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn tokens_end_on_invalid_json() {
        for text in ["\"", "\"\\", "{\"a", "}", "]]", "é", "{,"] {
            assert!(Tokens::new(text).count() <= 2, "{text}");
        }
    }

    proptest! {
        #[test]
        fn find_special_finds_bytes_at_any_position(
            bytes in prop::collection::vec(
                prop_oneof![
                    4 => any::<u8>(),
                    1 => prop::sample::select(b"\"\\!#[]\x1f\x20\x5d\xa2\xdc".to_vec()),
                ],
                0..40,
            ),
            at in 0_usize..45,
        ) {
            let expected = |special: &dyn Fn(u8) -> bool| {
                (at..bytes.len()).find(|at| special(bytes[*at])).unwrap_or(bytes.len().max(at))
            };
            let ends_plain = |byte| matches!(byte, b'"' | b'\\');
            prop_assert_eq!(find_special::<false>(&bytes, at), expected(&ends_plain));
            prop_assert_eq!(find_special::<true>(&bytes, at), expected(&|byte| ends_plain(byte) || byte < b' '));
        }

        #[test]
        fn tokens_cover_all_text_but_whitespace(text in prop_oneof![".{0,60}", r#"[\[{\\"\]}:, a1-]{0,60}"#]) {
            let mut covered = 0;
            let commas = Tokens::new(&text).filter(|(token, _)| *token == Token::Comma).count();
            prop_assert_eq!(count_commas(&text), commas);
            for (_, range) in Tokens::new(&text) {
                prop_assert!(text[covered..range.start].bytes().all(is_space) && !text[range.clone()].is_empty());
                covered = range.end;
            }
            prop_assert!(text[covered..].bytes().all(is_space));
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
