//! The beginning of a JSON text that was not read to its end.

/// Closes the open strings, arrays and objects of the beginning of a JSON text. An incomplete last member is dropped,
/// unless it is a string. The rest of a text that is not JSON stays as it is.
pub(crate) fn close_json(beginning: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(beginning).into_owned();
    while text.ends_with(char::REPLACEMENT_CHARACTER) {
        text.pop();
    }
    let mut scan = Scan::default();
    for (position, byte) in text.bytes().enumerate() {
        scan.read(position, byte);
    }
    let open = if scan.in_string && scan.is_value {
        text.truncate(scan.escape.map_or(text.len(), |(begin, _)| begin));
        text.push('"');
        scan.open
    } else {
        let (end, depth) = scan.last_complete;
        if end == 0 && scan.open.is_empty() {
            return text;
        }
        text.truncate(end);
        scan.open.truncate(depth);
        scan.open
    };
    text.extend(open.into_iter().rev());
    text
}

/// The state at a position of a JSON text.
#[derive(Default)]
struct Scan {
    /// The closing brackets of the open arrays and objects.
    open: Vec<char>,
    /// The last position at which all members before it are complete, and the number of open brackets there.
    last_complete: (usize, usize),
    in_string: bool,
    /// True if the string is a value and not the name of a member.
    is_value: bool,
    /// The position of an unfinished escape sequence and the number of its missing characters.
    escape: Option<(usize, usize)>,
    /// The last of `{`, `[`, `:` and `,` outside of strings.
    last_mark: u8,
}

impl Scan {
    fn read(&mut self, position: usize, byte: u8) {
        if self.in_string {
            self.escape = match (self.escape, byte) {
                (None, b'\\') => Some((position, 1)),
                (Some((begin, 1)), b'u') if begin + 1 == position => Some((begin, 4)),
                (Some((begin, missing)), _) if missing > 1 => Some((begin, missing - 1)),
                (None, b'"') => {
                    self.in_string = false;
                    None
                }
                _ => None,
            };
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.is_value = self.last_mark == b':' || self.open.last() == Some(&']');
            }
            b'{' | b'[' => {
                self.open.push(if byte == b'{' { '}' } else { ']' });
                self.last_complete = (position + 1, self.open.len());
            }
            b'}' | b']' => {
                self.open.pop();
                self.last_complete = (position + 1, self.open.len());
            }
            b',' => self.last_complete = (position, self.open.len()),
            _ => {}
        }
        if matches!(byte, b'{' | b'[' | b':' | b',') {
            self.last_mark = byte;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(r#"{"error":{"code":"a","message":"long te"#, r#"{"error":{"code":"a","message":"long te"}}"#)]
    #[case(r#"{"error":{"code":"a","mess"#, r#"{"error":{"code":"a"}}"#)]
    #[case(r#"{"error":{"code":"a","message":"x","n":12"#, r#"{"error":{"code":"a","message":"x"}}"#)]
    #[case(r#"{"a":["b",{"c":1},{"d":tr"#, r#"{"a":["b",{"c":1},{}]}"#)]
    #[case(r#"{"a":"b\u00e"#, r#"{"a":"b"}"#)]
    #[case(r#"{"a":"b\"#, r#"{"a":"b"}"#)]
    #[case(r#"{"a":"b\\"#, r#"{"a":"b\\"}"#)]
    #[case("{", "{}")]
    #[case("a plain te", "a plain te")]
    #[case("", "")]
    fn close_json_keeps_complete_members(#[case] beginning: &str, #[case] expected: &str) {
        assert_eq!(close_json(beginning.as_bytes()), expected);
    }

    #[test]
    fn close_json_makes_json_of_every_beginning() {
        let text = r#"{"error":{"code":"insufficient_quota","details":[{"a":[1,-2.5e3,true,null,"\u00e9\n"]},[]],"message":"é \"x\""},"b":{}}"#;
        for end in 1..=text.len() {
            let closed = close_json(&text.as_bytes()[..end]);
            assert!(serde_json::from_str::<serde_json::Value>(&closed).is_ok(), "{end}: {closed}");
        }
    }
}
