//! Text for people: escaped control characters, and indented JSON.

use std::borrow::Cow;

use domain::json::Tokens;
pub use domain::text::escape;
use domain::text::{changes_order, escape_where};

/// Escapes like [`escape`] but keeps tabs and line ends; for a whole text.
pub(super) fn escape_text(text: &str) -> Cow<'_, str> {
    escape_where(text, |c, next| match c {
        '\n' | '\t' => false,
        '\r' => next != Some('\n'),
        other => other.is_control() || changes_order(other),
    })
}

/// Escapes like [`escape`] but keeps characters below U+0020, which JSON has between values only; for a JSON document.
pub(super) fn escape_json(text: &str) -> Cow<'_, str> {
    escape_where(text, |c, _| c >= ' ' && c.is_control() || changes_order(c))
}

/// The maximum length of an array of plain values on one line.
const SHORT: usize = 72;

/// Breaks and indents lines. The text must be JSON; order, numbers and strings are preserved.
pub fn indent(json: &str) -> String {
    let tokens: Vec<&str> = Tokens::new(json).map(|(_, range)| &json[range]).collect();
    let mut text = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&token) = tokens.get(at) {
        match token {
            "{" | "[" => {
                if let Some((line, used)) = on_one_line(&tokens[at..]) {
                    text.push_str(&line);
                    at += used - 1;
                } else {
                    depth += 1;
                    text.push_str(token);
                    new_line(&mut text, depth);
                }
            }
            "}" | "]" => {
                depth = depth.saturating_sub(1);
                new_line(&mut text, depth);
                text.push_str(token);
            }
            "," => {
                text.push(',');
                new_line(&mut text, depth);
            }
            ":" => text.push_str(": "),
            value => text.push_str(value),
        }
        at += 1;
    }
    text
}

/// Returns an empty object or array, or a short array of plain values, as one line, with its number of tokens.
fn on_one_line(tokens: &[&str]) -> Option<(String, usize)> {
    let end = tokens.iter().skip(1).position(|token| matches!(*token, "{" | "[" | "}" | "]"))? + 1;
    let closes = matches!((tokens[0], tokens[end]), ("[", "]")) || (end == 1 && tokens[end] == "}");
    let line: String = tokens[..=end].iter().map(|token| if *token == "," { ", " } else { token }).collect();
    (closes && line.len() <= SHORT).then_some((line, end + 1))
}

fn new_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.push_str(&"  ".repeat(depth));
}

/// Returns a text, and below it the next useful command.
pub fn with_next(text: &str, next: &str) -> String {
    format!("{}\n\nNext: {next}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_removes_terminal_control_characters() {
        for c in (0..0x20).chain(0x7f..0xa0).filter_map(char::from_u32) {
            assert_eq!(escape(&format!("a{c}é")), format!("a\\u{:04x}é", u32::from(c)));
        }
        for (text, expected) in [
            ("\u{1b}[31mred", "\\u001b[31mred"),
            ("\u{202e}evil\u{2066}", "\\u202eevil\\u2066"),
            ("\u{200f}\u{61c}\u{feff}\u{2028}", "\\u200f\\u061c\\ufeff\\u2028"),
            ("a\r\nb\tc", "a\\u000d\\u000ab\\u0009c"),
        ] {
            assert_eq!(escape(text), expected, "{text:?}");
        }
        assert!(matches!(escape("plain, é, 中, \u{200d}"), Cow::Borrowed(_)));
    }

    #[test]
    fn escape_text_keeps_lines() {
        assert_eq!(escape_text("a\tb\r\nc\n"), "a\tb\r\nc\n");
        assert_eq!(escape_text("a\rb\u{9b}1m\u{7f}\r"), "a\\u000db\\u009b1m\\u007f\\u000d");
    }

    #[test]
    fn escape_json_keeps_the_value() {
        let document = "{\"a\":\r\n\t[\"\u{7f}\u{9b}2J\u{202e}\\u001b\"]}";
        let escaped = escape_json(document);
        assert_eq!(escaped, "{\"a\":\r\n\t[\"\\u007f\\u009b2J\\u202e\\u001b\"]}");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&escaped), value(document));
    }

    #[test]
    fn indent_preserves_tokens() {
        let json = r#"{"b":[1.50, {}],"a" : "x\"{,\\","c":[ ],"d":["é",  null,1e400]}"#;
        let expected = r#"{
  "b": [
    1.50,
    {}
  ],
  "a": "x\"{,\\",
  "c": [],
  "d": ["é", null, 1e400]
}"#;
        assert_eq!(indent(json), expected);
        assert_eq!(indent(expected), expected);
    }

    #[test]
    fn indent_breaks_long_array() {
        let json = format!("[{}]", ["\"0123456789\""; 9].join(","));
        assert_eq!(indent(&json).lines().count(), 11);
    }

    #[test]
    fn indent_accepts_invalid_json() {
        for text in ["", "}", "\"", "\"\\", "Bad Gateway", "[", "]]"] {
            indent(text);
        }
    }
}
