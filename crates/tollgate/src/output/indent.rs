//! Indentation of JSON that preserves all tokens.

use domain::json::Tokens;

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

#[cfg(test)]
mod tests {
    use super::*;

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
