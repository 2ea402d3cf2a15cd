//! JSON laid out for reading, with every byte that counts left as it is.

/// Breaks lines and indents them. The text must be JSON; order, numbers and strings stay as they are.
pub fn indent(json: &str) -> String {
    let mut text = String::with_capacity(json.len() * 2);
    let mut depth = 0;
    let mut in_string = false;
    let mut escaped = false;
    let mut rest = json.chars().peekable();
    while let Some(c) = rest.next() {
        if in_string {
            text.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            ' ' | '\t' | '\n' | '\r' => {}
            '{' | '[' => {
                text.push(c);
                while rest.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                if let Some(close) = rest.next_if(|next| matches!(next, '}' | ']')) {
                    text.push(close);
                } else {
                    depth += 1;
                    new_line(&mut text, depth);
                }
            }
            '}' | ']' => {
                depth -= 1;
                new_line(&mut text, depth);
                text.push(c);
            }
            ',' => {
                text.push(c);
                new_line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            _ => {
                in_string = c == '"';
                text.push(c);
            }
        }
    }
    text
}

fn new_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.push_str(&"  ".repeat(depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_changes_and_content_does_not() {
        let json = r#"{"b":[1.50, {}],"a" : "x\"{,\\","c":[ ]}"#;
        let expected = "{\n  \"b\": [\n    1.50,\n    {}\n  ],\n  \"a\": \"x\\\"{,\\\\\",\n  \"c\": []\n}";
        assert_eq!(indent(json), expected);
        assert_eq!(indent(&indent(json)), expected);
    }
}
