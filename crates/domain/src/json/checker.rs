//! Validates JSON in one pass without copies and recursion.

use std::borrow::Cow;
use std::fmt;

use serde_json::value::RawValue;

use super::MAX_DEPTH;
use super::lexer::{find_special, is_space};

/// One JSON value, borrowed from a validated text. Its `Debug` output hides the content.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct JsonText<'t>(&'t str);

impl<'t> JsonText<'t> {
    /// Returns the text without surrounding whitespace.
    pub fn get(self) -> &'t str {
        self.0
    }
}

impl<'t> From<&'t RawValue> for JsonText<'t> {
    fn from(raw: &'t RawValue) -> Self {
        Self(raw.get())
    }
}

impl fmt::Debug for JsonText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonText({} bytes)", self.0.len())
    }
}

/// Calls `member` with each member of the object in `text`, in order and with duplicates. Returns `None` if `text` is
/// not an object, nested deeper than [`super::MAX_DEPTH`], or has a name with a lone surrogate: [`super::precheck`]
/// rejects the latter two.
pub fn read_object<'t>(text: &'t str, mut member: impl FnMut(Cow<'t, str>, JsonText<'t>)) -> Option<()> {
    let mut checker = Checker { bytes: text.as_bytes(), at: 0 };
    if checker.next_token()? != b'{' {
        return None;
    }
    if checker.peek_token()? == b'}' {
        checker.at += 1;
        return checker.is_at_end().then_some(());
    }
    loop {
        let (start, is_escaped) = checker.skip_name()?;
        let name = match text.get(start..checker.at)? {
            quoted if is_escaped => Cow::Owned(serde_json::from_str(quoted).ok()?),
            quoted => Cow::Borrowed(quoted.get(1..quoted.len() - 1)?),
        };
        checker.skip_colon()?;
        checker.skip_space();
        let start = checker.at;
        checker.skip_value()?;
        member(name, JsonText(text.get(start..checker.at)?));
        match checker.next_token()? {
            b',' => {}
            b'}' => return checker.is_at_end().then_some(()),
            _ => return None,
        }
    }
}

/// Returns true if `text` is exactly one JSON value. Returns false as well if the nesting is too deep for this checker.
pub(super) fn is_json(text: &str) -> bool {
    let mut checker = Checker { bytes: text.as_bytes(), at: 0 };
    text.bytes().next().is_some_and(|first| !is_space(first))
        && checker.skip_value().is_some()
        && checker.at == checker.bytes.len()
}

struct Checker<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Checker<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
    }

    fn peek_token(&mut self) -> Option<u8> {
        self.skip_space();
        self.peek()
    }

    fn next_token(&mut self) -> Option<u8> {
        let token = self.peek_token()?;
        self.at += 1;
        Some(token)
    }

    fn is_at_end(&mut self) -> bool {
        self.peek_token().is_none()
    }

    /// Skips a value.
    fn skip_value(&mut self) -> Option<()> {
        // One bit per open array or object: 1 for an object.
        let (mut objects, mut depth) = (0_u128, 0_usize);
        loop {
            match self.peek_token()? {
                open @ (b'{' | b'[') => {
                    self.at += 1;
                    let is_object = open == b'{';
                    if self.peek_token()? == if is_object { b'}' } else { b']' } {
                        self.at += 1;
                    } else if depth == MAX_DEPTH {
                        return None;
                    } else {
                        (objects, depth) = (objects << 1 | u128::from(is_object), depth + 1);
                        if is_object {
                            self.skip_name()?;
                            self.skip_colon()?;
                        }
                        continue;
                    }
                }
                b'"' => drop(self.skip_string()?),
                b't' => self.skip_word(b"true")?,
                b'f' => self.skip_word(b"false")?,
                b'n' => self.skip_word(b"null")?,
                _ => self.skip_number()?,
            }
            // The end of a value may also be the end of the arrays and objects around it.
            loop {
                if depth == 0 {
                    return Some(());
                }
                match (self.next_token()?, objects & 1 == 1) {
                    (b',', false) => break,
                    (b',', true) => {
                        self.skip_name()?;
                        self.skip_colon()?;
                        break;
                    }
                    (b'}', true) | (b']', false) => (objects, depth) = (objects >> 1, depth - 1),
                    _ => return None,
                }
            }
        }
    }

    /// Skips a member's name. Returns its start, at the quote, and whether it has escapes.
    fn skip_name(&mut self) -> Option<(usize, bool)> {
        if self.peek_token()? != b'"' {
            return None;
        }
        Some((self.at, self.skip_string()?))
    }

    fn skip_colon(&mut self) -> Option<()> {
        (self.next_token()? == b':').then_some(())
    }

    /// Skips a string and returns whether it has escapes.
    fn skip_string(&mut self) -> Option<bool> {
        let mut is_escaped = false;
        self.at += 1;
        loop {
            self.at = find_special::<true>(self.bytes, self.at);
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(is_escaped);
                }
                b'\\' => {
                    is_escaped = true;
                    self.skip_escape()?;
                }
                _ => return None,
            }
        }
    }

    fn skip_escape(&mut self) -> Option<()> {
        match self.bytes.get(self.at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
            b'u' => {
                let digits = self.bytes.get(self.at + 2..self.at + 6)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                self.at += 6;
            }
            _ => return None,
        }
        Some(())
    }

    fn skip_word(&mut self, word: &[u8]) -> Option<()> {
        let found = self.bytes.get(self.at..)?.starts_with(word);
        self.at += word.len();
        found.then_some(())
    }

    fn skip_number(&mut self) -> Option<()> {
        if self.peek()? == b'-' {
            self.at += 1;
        }
        if self.peek()? == b'0' {
            self.at += 1;
        } else {
            self.skip_digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.skip_digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.skip_digits()?;
        }
        Some(())
    }

    /// Skips at least one digit.
    fn skip_digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::de::IgnoredAny;
    use serde_json::{Map, Value};
    use std::collections::BTreeMap;

    fn members(text: &str) -> Option<Vec<(String, String)>> {
        let mut members = Vec::new();
        read_object(text, |name, value| members.push((name.into_owned(), value.get().to_owned())))?;
        Some(members)
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z\"\\\\\u{0}-\u{20}é😀]{0,20}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 30, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((".{0,5}", inner), 0..5)
                    .prop_map(|members| Value::from(members.into_iter().collect::<Map<String, Value>>())),
            ]
        })
    }

    #[test]
    fn read_object_returns_members_in_order() {
        let text = " { \"a\" : [1, {\"b\":null}] ,\"\\u0061\":\"x\\n\",\"\":{ } }\n";
        let expected = [("a", "[1, {\"b\":null}]"), ("a", "\"x\\n\""), ("", "{ }")];
        assert_eq!(members(text).unwrap(), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(members("{}"), Some(Vec::new()));
    }

    #[test]
    fn read_object_rejects_other_values() {
        for text in
            ["", "[]", "1", "{", "{}x", "{} {}", "{\"a\"}", "{\"a\":1,}", "{a:1}", "\u{feff}{}", "{\"\\ud800\":1}"]
        {
            assert_eq!(members(text), None, "{text}");
        }
    }

    #[test]
    fn is_json_checks_number_grammar() {
        for number in ["0", "-0", "10", "1.5", "-1.50e+7", "0e0", "1E-2"] {
            assert!(is_json(number), "{number}");
        }
        for other in ["", "-", "01", "1.", ".5", "+1", "1e", "1e+", "0x1", "NaN", "1 ", " 1", "--1"] {
            assert!(!is_json(other), "{other}");
        }
    }

    #[test]
    fn is_json_checks_nesting_up_to_the_limit() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(is_json(&nested(128)));
        assert!(!is_json(&nested(200)));
    }

    proptest! {
        #[test]
        fn is_json_accepts_generated_values(value in value()) {
            for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                prop_assert!(is_json(&text), "{}", text);
            }
        }

        #[test]
        fn checker_agrees_with_the_parser(
            value in value(),
            cut in any::<prop::sample::Index>(),
            insert in r#"["\\{}\[\],:0-9eE.+\-tfnul \u{1}]{0,3}"#,
            removed in 0_usize..3,
        ) {
            let mut chars: Vec<char> = value.to_string().chars().collect();
            let at = cut.index(chars.len());
            let end = (at + removed).min(chars.len());
            chars.splice(at..end, insert.chars());
            let text: String = chars.into_iter().collect();
            let parsed = serde_json::from_str::<IgnoredAny>(&text).is_ok() && !text.starts_with(is_space_char) && !text.ends_with(is_space_char);
            prop_assert_eq!(is_json(&text), parsed, "{}", text);
            // Members are compared as texts: a number may be out of range, and a string may have a lone surrogate.
            let expected = serde_json::from_str::<BTreeMap<String, &RawValue>>(&text).ok();
            if let Some(members) = members(&text) {
                let expected = expected.expect("an object");
                // The last of several members with the same name counts.
                let members: BTreeMap<String, String> = members.into_iter().collect();
                let expected = expected.into_iter().map(|(name, value)| (name, value.get().to_owned())).collect();
                prop_assert_eq!(members, expected);
            } else {
                prop_assert!(expected.is_none(), "{}", text);
            }
        }

        #[test]
        fn checker_never_panics(text in ".{0,60}") {
            let _ = (is_json(&text), members(&text));
        }
    }

    fn is_space_char(c: char) -> bool {
        matches!(c, ' ' | '\t' | '\n' | '\r')
    }
}
