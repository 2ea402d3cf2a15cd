//! An iterator over the tokens of a JSON text, without recursion. The text must be valid JSON.

use std::ops::Range;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// An opening brace.
    Object,
    /// An opening bracket.
    Array,
    /// A closing brace or bracket.
    Close,
    /// The name of a member; the range includes the quotes.
    Key,
    /// A string value; the range includes the quotes.
    String,
    /// A number as written.
    Number,
    /// `true`, `false` or `null`.
    Word,
}

/// Iterates over the tokens of a JSON text.
#[derive(Debug)]
pub(super) struct Tokens<'t> {
    bytes: &'t [u8],
    at: usize,
    /// The open arrays (false) and objects (true).
    open: Vec<bool>,
    /// True if a name comes next.
    name_next: bool,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { bytes: text.as_bytes(), at: 0, open: Vec::new(), name_next: false }
    }

    /// Returns the end of the string whose opening quote is at `at`.
    fn end_of_string(&self) -> usize {
        let mut at = self.at + 1;
        while let Some(byte) = self.bytes.get(at) {
            match byte {
                b'"' => return at + 1,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        self.bytes.len()
    }
}

impl Iterator for Tokens<'_> {
    type Item = (Token, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let start = self.at;
            let token = match *self.bytes.get(start)? {
                b'{' => {
                    self.open.push(true);
                    self.name_next = true;
                    self.at += 1;
                    Token::Object
                }
                b'[' => {
                    self.open.push(false);
                    self.name_next = false;
                    self.at += 1;
                    Token::Array
                }
                b'}' | b']' => {
                    self.open.pop();
                    self.name_next = false;
                    self.at += 1;
                    Token::Close
                }
                b',' => {
                    self.name_next = self.open.last() == Some(&true);
                    self.at += 1;
                    continue;
                }
                b'"' => {
                    self.at = self.end_of_string();
                    if std::mem::take(&mut self.name_next) { Token::Key } else { Token::String }
                }
                b'-' | b'0'..=b'9' => {
                    let rest = &self.bytes[start..];
                    let is_part = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                    self.at += rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
                    Token::Number
                }
                b'a'..=b'z' => {
                    let rest = &self.bytes[start..];
                    self.at += rest.iter().position(|byte| !byte.is_ascii_lowercase()).unwrap_or(rest.len());
                    Token::Word
                }
                _ => {
                    self.at += 1;
                    continue;
                }
            };
            return Some((token, start..self.at));
        }
    }
}

/// Returns the range of a string's content, without its quotes.
pub(super) fn content(string: Range<usize>) -> Range<usize> {
    let end = string.end.saturating_sub(1);
    (string.start + 1).min(end)..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_distinguish_names_and_values() {
        use Token::{Array, Close, Key, Number, Object, String, Word};
        let text = r#" {"a" : "b", "c":[ "d", -1.5e+3,true ,{"\"e\\":null}], "f":{},"g":[]} "#;
        let found: Vec<(Token, &str)> = Tokens::new(text).map(|(token, span)| (token, &text[span])).collect();
        let expected = [
            (Object, "{"),
            (Key, "\"a\""),
            (String, "\"b\""),
            (Key, "\"c\""),
            (Array, "["),
            (String, "\"d\""),
            (Number, "-1.5e+3"),
            (Word, "true"),
            (Object, "{"),
            (Key, r#""\"e\\""#),
            (Word, "null"),
            (Close, "}"),
            (Close, "]"),
            (Key, "\"f\""),
            (Object, "{"),
            (Close, "}"),
            (Key, "\"g\""),
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
}
