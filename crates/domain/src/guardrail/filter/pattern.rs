//! A pattern of the operator's own.

use std::ops::Range;

use regex::{Regex, RegexBuilder};

use crate::system::CancelFlag;

/// Most characters of a pattern.
pub(super) const MAX_CHARS: usize = 10_000;
/// Most bytes that one compiled pattern takes.
const MAX_COMPILED: usize = 1 << 20;
/// Matches in one text that are followed as far as they go. To find where a match ends an engine may read far beyond
/// that end; done for each of many matches, that would take time by the square of the text.
const FOLLOWED: usize = 64;
/// After those, bytes that are read beyond the place where a match is certain.
const AHEAD: usize = 512;

/// A regular expression that is matched in linear time.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
}

impl Pattern {
    /// # Errors
    /// What is wrong and what to do, as a fragment of a sentence.
    pub(super) fn compile(pattern: &str) -> Result<Self, String> {
        if pattern.is_empty() {
            return Err("must not be empty".to_owned());
        }
        let chars = pattern.chars().count();
        if chars > MAX_CHARS {
            return Err(format!("must have at most {MAX_CHARS} characters, not {chars}"));
        }
        let regex = RegexBuilder::new(pattern).size_limit(MAX_COMPILED).build().map_err(|fault| match fault {
            regex::Error::CompiledTooBig(_) => {
                format!("takes more than {} KiB when compiled; use smaller repetitions", MAX_COMPILED >> 10)
            }
            fault => told(pattern, &fault),
        })?;
        // Anchors and boundaries match nothing between characters and at the ends of a text.
        let matches_nothing = ["", "a", " a\n", "-1"].iter().any(|text| regex.find_iter(text).any(|m| m.is_empty()));
        if matches_nothing {
            return Err("matches the empty string, and so everywhere; make it need at least one character".to_owned());
        }
        Ok(Self { regex })
    }

    /// Gives every match that is not empty, in order, until it is cancelled. Takes time linear in the text, whatever
    /// the pattern.
    pub(super) fn each(&self, text: &str, cancel: &CancelFlag, mut found: impl FnMut(Range<usize>)) {
        let (mut at, mut count, mut vain) = (0, 0, 0);
        while at <= text.len() && !cancel.is_cancelled() {
            let next = if count < FOLLOWED { self.followed(text, at) } else { self.nearby(text, at, &mut vain) };
            let Some(next) = next else { return };
            count += 1;
            if next.is_empty() {
                at = text.ceil_char_boundary(next.end + 1).max(next.end + 1);
            } else {
                at = next.end;
                found(next);
            }
        }
    }

    fn followed(&self, text: &str, at: usize) -> Option<Range<usize>> {
        self.regex.find_at(text, at).map(|found| found.range())
    }

    /// The next match, of which no more is looked for than stands near the place where it is certain, and near where
    /// it has come to. `vain` counts the times that more was looked at and there was less.
    fn nearby(&self, text: &str, at: usize, vain: &mut usize) -> Option<Range<usize>> {
        let certain = self.regex.shortest_match_at(text, at)?;
        let mut limit = text.floor_char_boundary(certain + AHEAD);
        let mut found = self.followed(&text[..limit], at).or_else(|| self.followed(text, at))?;
        // What ends where the look ended may go on. What it goes over is not looked at again.
        while found.end == limit && limit < text.len() && *vain < FOLLOWED {
            let before = limit;
            limit = text.floor_char_boundary(limit + (limit - at).max(AHEAD));
            let Some(further) = self.followed(&text[..limit], at) else { break };
            if further.end < before {
                *vain += 1;
            }
            found = further;
        }
        Some(found)
    }
}

/// The pattern without its word boundaries, which matches wherever it does and at some more places. Beyond ASCII the
/// fast engine does not know boundaries, so texts in which this one matches nothing are best told by it.
pub(super) fn without_boundaries(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let (mut rest, mut class) = (pattern, 0_u32);
    while let Some(c) = rest.chars().next() {
        let (token, after) = match c {
            '\\' => rest.split_at(1 + rest[1..].chars().next().map_or(0, char::len_utf8)),
            _ => rest.split_at(c.len_utf8()),
        };
        rest = after;
        match token {
            r"\b" | r"\B" if class == 0 => {
                let halves = ["{start-half}", "{end-half}", "{start}", "{end}"];
                rest = halves.iter().find_map(|half| rest.strip_prefix(half)).unwrap_or(rest);
                out.push_str("(?:)");
                continue;
            }
            "[" => class += 1,
            "]" => class = class.saturating_sub(1),
            _ => {}
        }
        out.push_str(token);
    }
    // A bracket that is meant as itself may have been counted; such a pattern is taken as it is.
    if Regex::new(&out).is_ok() { out } else { pattern.to_owned() }
}

/// Why the engine does not take a pattern. What it cannot do by its nature is told as such.
fn told(pattern: &str, fault: &regex::Error) -> String {
    if let Some(construct) = unsupported(pattern) {
        return format!("uses {construct}, which cannot be matched in linear time; write the pattern without it");
    }
    let text = fault.to_string();
    let reason = text.lines().rev().find_map(|line| line.strip_prefix("error: ")).unwrap_or("it cannot be read");
    format!("is no regular expression that this service takes: {reason}")
}

/// The first construct of backtracking engines that stands in a pattern.
fn unsupported(pattern: &str) -> Option<&'static str> {
    let bytes = pattern.as_bytes();
    let (mut at, mut class) = (0, false);
    while let Some(byte) = bytes.get(at) {
        let rest = &pattern[at..];
        match byte {
            b'\\' => {
                match bytes.get(at + 1) {
                    Some(b'1'..=b'9' | b'k' | b'g') if !class => return Some("a back-reference"),
                    Some(b'G' | b'K') if !class => return Some("an anchor of backtracking engines"),
                    _ => {}
                }
                at = pattern.ceil_char_boundary(at + 2);
                continue;
            }
            b'[' if !class => {
                class = true;
                // A bracket that closes at once is meant as itself.
                let after = if rest.starts_with("[^") { 2 } else { 1 };
                at += if bytes.get(at + after) == Some(&b']') { after + 1 } else { after };
                continue;
            }
            b']' => class = false,
            b'(' if !class && bytes.get(at + 1) == Some(&b'?') => {
                let is = |beginnings: &[&str]| beginnings.iter().any(|beginning| rest.starts_with(beginning));
                if is(&["(?=", "(?!", "(?<=", "(?<!"]) {
                    return Some("look-around");
                }
                if is(&["(?P=", "(?P>", "(?&"]) {
                    return Some("a back-reference");
                }
                if is(&["(?>"]) {
                    return Some("an atomic group");
                }
                if is(&["(?(", "(?R", "(?0", "(?1", "(?+", "(?|"]) {
                    return Some("a conditional or recursive group");
                }
            }
            _ => {}
        }
        at = pattern.ceil_char_boundary(at + 1);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn found<'t>(pattern: &str, text: &'t str) -> Vec<&'t str> {
        let mut all = Vec::new();
        Pattern::compile(pattern).unwrap().each(text, &CancelFlag::default(), |span| all.push(&text[span]));
        all
    }

    #[rstest]
    #[case::ahead(r"foo(?=bar)", "uses look-around")]
    #[case::not_ahead(r"foo(?!bar)", "uses look-around")]
    #[case::behind(r"(?<=a)b", "uses look-around")]
    #[case::not_behind(r"(?<!a)b", "uses look-around")]
    #[case::after_a_class(r"[(?=]x(?=y)", "uses look-around")]
    #[case::numbered(r"(a)\1", "uses a back-reference")]
    #[case::named(r"(?<x>a)\k<x>", "uses a back-reference")]
    #[case::named_other(r"(?P<x>a)(?P=x)", "uses a back-reference")]
    #[case::atomic(r"(?>a)", "uses an atomic group")]
    #[case::recursive(r"(a(?R)?)", "uses a conditional or recursive group")]
    #[case::open("(a", "is no regular expression that this service takes: unclosed group")]
    #[case::nothing_to_repeat("*a", "is no regular expression that this service takes: repetition operator missing")]
    #[case::empty("", "must not be empty")]
    #[case::optional("a*", "matches the empty string")]
    #[case::anchor("^", "matches the empty string")]
    #[case::boundary(r"\b", "matches the empty string")]
    #[case::either("x|", "matches the empty string")]
    #[case::end("$", "matches the empty string")]
    #[case::large(r"((\w{100}){100}){100}", "takes more than 1024 KiB when compiled")]
    fn a_refusal_says_why(#[case] pattern: &str, #[case] expected: &str) {
        let fault = Pattern::compile(pattern).unwrap_err();
        assert!(fault.contains(expected), "{fault}");
        assert!(!fault.contains('\n'), "{fault}");
    }

    #[test]
    fn length_is_bounded() {
        let long = |chars: usize| "é".repeat(chars);
        assert!(Pattern::compile(&long(MAX_CHARS)).is_ok());
        let fault = Pattern::compile(&long(MAX_CHARS + 1)).unwrap_err();
        assert_eq!(fault, "must have at most 10000 characters, not 10001");
    }

    #[rstest]
    #[case::nested("(a+)+b", "xaaab", &["aaab"])]
    #[case::class_with_a_bracket(r"[](?=]+", "(?=]", &["(?=]"])]
    #[case::escaped_slash(r"a\/b", "a/b", &["a/b"])]
    #[case::unicode(r"\p{Greek}+", "xαβy", &["αβ"])]
    #[case::case(r"(?i)straße", "STRAßE", &["STRAßE"])]
    #[case::four_digits(r"\u0041", "A", &["A"])]
    #[case::two("a.", "abac", &["ab", "ac"])]
    #[case::sometimes_empty(r"(?:\B-\B)?x|x", "ax-x", &["x", "x"])]
    fn what_a_linear_engine_can_do_is_welcome(#[case] pattern: &str, #[case] text: &str, #[case] expected: &[&str]) {
        assert_eq!(found(pattern, text), expected);
    }

    #[rstest]
    #[case(r"\bab\B", "(?:)ab(?:)")]
    #[case(r"\b{start}a\b{end}", "(?:)a(?:)")]
    #[case(r"\\b[\b]\.", r"\\b[\b]\.")]
    #[case(r"(?i)a[^\]b]\b+", r"(?i)a[^\]b](?:)+")]
    fn boundaries_are_left_out(#[case] pattern: &str, #[case] expected: &str) {
        assert_eq!(without_boundaries(pattern), expected);
    }

    #[test]
    fn many_matches_are_all_found() {
        let text = "ab12 ".repeat(1000);
        assert_eq!(found(r"[a-z]+\d+", &text).len(), 1000);
        let long = "x".repeat(400);
        let text = format!("{long} ").repeat(200);
        assert!(found("x+", &text).iter().all(|found| *found == long));
    }

    #[test]
    fn long_matches_are_found_whole_however_many_come_before() {
        let long = format!("key={}", "x".repeat(5_000));
        let text = format!("{long} ").repeat(100);
        let found = found(r"key=\w+", &text);
        assert_eq!(found.len(), 100);
        assert!(found.iter().all(|found| *found == long));
    }

    /// Where the look ends this pattern takes for the end of the text, and finds out in vain that it is not.
    #[test]
    fn what_seems_to_go_on_is_not_followed_again_and_again() {
        let text = format!("{}z", "a".repeat(40_000));
        let found = found(r"a(?:[^z]*$)?", &text);
        assert_eq!(found.concat().len(), 40_000);
    }

    /// Each match of this pattern is sought to the end of the text, by the square of it where it is done each time.
    #[test]
    fn what_follows_many_matches_is_not_read_again_and_again() {
        let text = "a".repeat(40_000);
        let found = found("a[^z]*z|a", &text);
        assert_eq!(found.len(), 40_000);
    }
}
