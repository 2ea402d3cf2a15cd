//! Escapes of text that is shown to people.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns true for characters that change the order or the visibility of text: U+061C, U+200E, U+200F, U+2028 to
/// U+202E, U+2066 to U+2069 and U+FEFF.
pub fn changes_order(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Escapes every control character (C0, DEL, C1) and every character that changes the order of text as `\u001b`; for a
/// value within a line.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_where(text, |c, _| c.is_control() || changes_order(c))
}

/// Escapes the characters for which `concerns` returns true; it also receives the next character. All of them MUST be in
/// the Basic Multilingual Plane, so that the notation is valid in JSON.
pub fn escape_where(text: &str, concerns: impl Fn(char, Option<char>) -> bool) -> Cow<'_, str> {
    let mut escaped = String::new();
    let mut copied = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        if concerns(c, characters.peek().map(|(_, next)| *next)) {
            escaped.push_str(&text[copied..at]);
            // Writing to a string cannot fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            copied = at + c.len_utf8();
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    escaped.push_str(&text[copied..]);
    Cow::Owned(escaped)
}
