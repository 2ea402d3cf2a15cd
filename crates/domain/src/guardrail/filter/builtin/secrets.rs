//! Keys and tokens of well-known services, private keys, and values labelled as a password.

use std::borrow::Cow;
use std::ops::Range;

use regex_automata::util::captures::Captures;

use super::bytes::{self, TOKEN};
use super::injection::without_emphasis;
use super::patterns::PATTERNS;
use super::{Hint, Source};

/// Shorter texts cannot hold a secret.
const MIN_BYTES: usize = 7;

pub(super) fn each(text: &str, source: Source, hint: Hint, found: &mut dyn FnMut(Range<usize>)) {
    if hint == Hint::Secret && !source.is_joined() {
        let value = text.trim();
        if !value.is_empty() && !is_placeholder(value) {
            found(0..text.len());
            return;
        }
    }
    let Ok(patterns) = &*PATTERNS else { return };
    if text.len() < MIN_BYTES || source == Source::Number {
        return;
    }
    let bytes = text.as_bytes();
    // Underscores may be emphasis around a secret or part of it.
    let plain = without_emphasis(text);
    let views = [Some(text), (matches!(plain, Cow::Owned(_)) && plain != text).then_some(&*plain)];
    for view in views.into_iter().flatten() {
        if !can_hold_a_token(view) {
            continue;
        }
        for token in patterns.tokens.find_iter(view.as_bytes()) {
            if !is_prose(&view[token.range()]) {
                found(token.range());
            }
        }
    }
    if text.contains("://") {
        for captures in patterns.credentials.captures_iter(bytes) {
            if let Some(value) = captures.get_group_by_name("value")
                && !is_placeholder(text[value.range()].rsplit(':').next().unwrap_or_default())
            {
                found(value.range());
            }
        }
    }
    if source.is_joined() || !can_hold_an_assignment(bytes) {
        return;
    }
    for captures in patterns.assignment.captures_iter(bytes) {
        if let Some(value) = assigned_value(text, &captures) {
            found(value);
        }
    }
}

/// Returns false for most texts without a match of a pattern.
pub(super) fn may_match_a_pattern(text: &str, source: Source) -> bool {
    can_hold_a_token(text) || text.contains("://") || !source.is_joined() && can_hold_an_assignment(text.as_bytes())
}

/// The minimum length in bytes of a token, without private keys.
const SHORTEST_TOKEN: usize = 15;

/// Returns false for most texts without a token, and reads few of their bytes.
fn can_hold_a_token(text: &str) -> bool {
    bytes::long_runs(text.as_bytes(), TOKEN, SHORTEST_TOKEN).next().is_some() || text.contains("-----BEGIN")
}

/// Returns false for most texts without an assignment, because they lack its characters.
fn can_hold_an_assignment(bytes: &[u8]) -> bool {
    bytes::has(bytes, b':') || bytes::has(bytes, b'=') || bytes::has_pair(bytes, *b"is")
}

/// Returns true for words after `bearer`, `basic` or `sk-`: only letters, and not longer than words are.
fn is_prose(token: &str) -> bool {
    const LONGEST_WORD: usize = 20;
    let after = |begin: &str| token.get(..begin.len()).filter(|head| head.eq_ignore_ascii_case(begin));
    let Some(begin) = ["bearer", "basic", "sk-"].into_iter().find_map(after) else { return false };
    token[begin.len()..].trim_start().split(['-', '.', '_', '/']).all(|word| {
        let bytes = word.as_bytes();
        bytes.len() <= LONGEST_WORD
            && bytes.iter().all(u8::is_ascii_alphabetic)
            && !bytes.iter().skip(1).any(u8::is_ascii_uppercase)
    })
}

/// Returns the value of an assignment, if it can be a secret.
fn assigned_value(text: &str, captures: &Captures) -> Option<Range<usize>> {
    let part = |name: &str| captures.get_group_by_name(name).map(|found| found.range());
    let (name, sign) = (&text[part("name")?], &text[part("sign")?]);
    let is_password = name.get(..4).is_some_and(|begin| begin.eq_ignore_ascii_case("pass")) || name.len() == 3;
    let shortest = if is_password { 4 } else { 8 };
    if let Some(quoted) = part("double").or_else(|| part("single")) {
        let value = text.get(quoted.clone())?;
        let is_prose = value.matches(' ').count() > 1;
        return (value.len() >= shortest && !is_prose && !is_placeholder(value)).then_some(quoted);
    }
    let bare = part("bare")?;
    let value = text.get(bare.clone())?.trim_end_matches(['.', ')', '!', '?', ']', '}']);
    let is_code = value.contains(['(', '[', '{', '<']) || value.starts_with(['=', '&', '|']);
    let has = |test: fn(&u8) -> bool| value.as_bytes().iter().any(test);
    // After a colon most words begin a sentence.
    let is_odd = has(u8::is_ascii_digit)
        || has(|byte| byte.is_ascii_punctuation() && !matches!(byte, b'-' | b'.' | b'/' | b'_'))
        || value.bytes().skip(1).any(|byte| byte.is_ascii_uppercase()) && has(u8::is_ascii_lowercase);
    let is_assigned = sign.starts_with('=') || sign == ":=";
    let is_value = value.len() >= shortest && !is_code && (is_assigned || is_odd) && !is_placeholder(value);
    is_value.then_some(bare.start..bare.start + value.len())
}

/// Returns true if a value is a placeholder of a secret: a variable, asterisks, or words that say so.
fn is_placeholder(value: &str) -> bool {
    const BEGINNINGS: &[&str] = &["<", "${", "{{", "$(", "%(", "[", "your_", "your-", "your ", "env.", "process.env"];
    const WORDS: &[&str] =
        &["null", "none", "true", "false", "required", "optional", "string", "undefined", "redacted"];
    let lower = value.get(..16.min(value.len())).unwrap_or(value).to_ascii_lowercase();
    let first = value.as_bytes().first();
    BEGINNINGS.iter().any(|begin| lower.starts_with(begin))
        || WORDS.contains(&lower.as_str())
        || value.len() > 2
            && value.bytes().all(|byte| Some(&byte) == first && matches!(byte, b'*' | b'x' | b'X' | b'.' | b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::super::patterns::{ASSIGNMENT, TOKENS};
    use super::*;
    use proptest::prelude::*;
    use proptest::string::string_regex;

    /// Generates a text that matches a pattern. Non-ASCII letters that fold to ASCII capitals are excluded.
    fn example(pattern: &str) -> impl Strategy<Value = String> + use<> {
        string_regex(&pattern.replace(r"\b", "")).unwrap()
    }

    proptest! {
        #[test]
        fn can_hold_a_token_accepts_every_token(tokens in TOKENS.iter().map(|token| example(token)).collect::<Vec<_>>()) {
            let patterns = PATTERNS.as_ref().unwrap();
            for token in tokens {
                prop_assert!(can_hold_a_token(&token) || !patterns.tokens.is_match(token.as_bytes()), "{}", token);
            }
        }

        #[test]
        fn can_hold_an_assignment_accepts_every_assignment(text in example(ASSIGNMENT)) {
            let patterns = PATTERNS.as_ref().unwrap();
            let bytes = text.as_bytes();
            prop_assert!(can_hold_an_assignment(bytes) || !patterns.assignment.is_match(bytes), "{}", text);
        }
    }
}
