//! Text that is shown to people: escapes, hexadecimal digits, and suggestions in errors.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

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

/// Returns the end of a sentence that suggests similar names; empty without any.
pub(crate) fn nearest_names(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; nearest: {}", names.join(", ")) }
}

/// Characters that begin a formula in spreadsheets, in ASCII and full width.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// Returns true if a spreadsheet may execute the text, with or without leading quotes. Some ignore leading spaces.
fn is_formula(text: &str) -> bool {
    let text = text.trim_start_matches('\'');
    text.starts_with(['\t', '\r']) || text.trim_start().starts_with(FORMULA)
}

/// Quotes a formula, so that spreadsheets show it as text.
pub fn quote_formula(text: &str) -> Cow<'_, str> {
    if is_formula(text) { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

/// Returns the text that [`quote_formula`] quoted.
pub fn unquote_formula(text: &str) -> &str {
    text.strip_prefix('\'').filter(|rest| is_formula(rest)).unwrap_or(text)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_formula_is_read_as_it_was() {
        for text in ["=1+1", "-1", "@team", "\tx", " =1", "'=1", "''-1", "\u{a0}\u{ff1d}1"] {
            assert_eq!(quote_formula(text), format!("'{text}"));
            assert_eq!(unquote_formula(&quote_formula(text)), text);
        }
        for text in ["", "a", "'", "'a", "a=1"] {
            assert_eq!((&*quote_formula(text), unquote_formula(text)), (text, text));
        }
    }
}
