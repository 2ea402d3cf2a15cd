//! Custom patterns.

use std::convert::Infallible;
use std::ops::Range;

use regex::{Regex, RegexBuilder};
use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{self, Ast, Span, Visitor};

use crate::system::CancelFlag;

/// The highest number of characters of a pattern.
pub(super) const MAX_CHARS: usize = 10_000;
/// The highest size in bytes of one compiled pattern.
const MAX_COMPILED_BYTES: usize = 1 << 20;
/// The number of matches per text that are searched without a bound. To find the end of a match the engine may read far
/// beyond it. Done for every match, that takes quadratic time.
const MAX_FULL_SEARCHES: usize = 64;
/// For all further matches, the number of bytes that are read beyond the earliest end of the match.
const LOOKAHEAD_BYTES: usize = 512;

/// A regular expression that is matched in linear time.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// Returns the violation and its remedy, as a fragment of a sentence.
    pub(super) fn compile(pattern: &str) -> Result<Self, String> {
        if pattern.is_empty() {
            return Err("must not be empty".to_owned());
        }
        let chars = pattern.chars().count();
        if chars > MAX_CHARS {
            return Err(format!("must have at most {MAX_CHARS} characters, not {chars}"));
        }
        let regex = RegexBuilder::new(pattern).size_limit(MAX_COMPILED_BYTES).build().map_err(|fault| match fault {
            regex::Error::CompiledTooBig(_) => {
                format!("takes more than {} KiB when compiled; use smaller repetitions", MAX_COMPILED_BYTES >> 10)
            }
            fault => describe_error(pattern, &fault),
        })?;
        // Anchors and word boundaries match the empty string between characters or at the ends of a text.
        let matches_nothing = ["", "a", " a\n", "-1"].iter().any(|text| regex.find_iter(text).any(|m| m.is_empty()));
        if matches_nothing {
            return Err("matches the empty string, and so everywhere; make it need at least one character".to_owned());
        }
        Ok(Self { regex })
    }

    /// Reports every match that is not empty, in order, until it is cancelled. Takes linear time for any pattern.
    pub(super) fn each(&self, text: &str, cancel: &CancelFlag, mut found: impl FnMut(Range<usize>)) {
        let (mut at, mut count, mut wasted) = (0, 0, 0);
        while at <= text.len() && !cancel.is_cancelled() {
            let next = if count < MAX_FULL_SEARCHES {
                self.find_full(text, at)
            } else {
                self.find_bounded(text, at, &mut wasted)
            };
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

    fn find_full(&self, text: &str, at: usize) -> Option<Range<usize>> {
        self.regex.find_at(text, at).map(|found| found.range())
    }

    /// Returns the next match. The search window begins at the earliest end of the match and grows while the match
    /// reaches the end of the window. `wasted` counts windows that grew without a longer match.
    fn find_bounded(&self, text: &str, at: usize, wasted: &mut usize) -> Option<Range<usize>> {
        let certain = self.regex.shortest_match_at(text, at)?;
        let mut limit = text.floor_char_boundary(certain + LOOKAHEAD_BYTES);
        let mut found = self.find_full(&text[..limit], at).or_else(|| self.find_full(text, at))?;
        // A match that ends with the window may continue. Text that a longer match covers is not searched again.
        while found.end == limit && limit < text.len() && *wasted < MAX_FULL_SEARCHES {
            let before = limit;
            limit = text.floor_char_boundary(limit + (limit - at).max(LOOKAHEAD_BYTES));
            let Some(further) = self.find_full(&text[..limit], at) else { break };
            if further.end < before {
                *wasted += 1;
            }
            found = further;
        }
        Some(found)
    }
}

/// Returns the pattern without its anchors and word boundaries. It matches everywhere the original does, also within a
/// longer text, and in more places. The fast engine does not support boundaries beyond ASCII, so this pattern rules out
/// texts without a match cheaply.
pub(super) fn without_assertions(pattern: &str) -> String {
    let assertions = Parser::new().parse(pattern).map(|ast| ast::visit(&ast, Assertions::default()));
    let Ok(Ok(assertions)) = assertions else { return pattern.to_owned() };
    let mut out = pattern.to_owned();
    for span in assertions.into_iter().rev() {
        out.replace_range(span.start.offset..span.end.offset, "(?:)");
    }
    out
}

/// The assertions of a pattern, in order.
#[derive(Default)]
struct Assertions(Vec<Span>);

impl Visitor for Assertions {
    type Output = Vec<Span>;
    type Err = Infallible;

    fn finish(self) -> Result<Vec<Span>, Infallible> {
        Ok(self.0)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Infallible> {
        if let Ast::Assertion(assertion) = ast {
            self.0.push(assertion.span);
        }
        Ok(())
    }
}

/// Explains why the engine rejects a pattern; names constructs that linear matching cannot support.
fn describe_error(pattern: &str, fault: &regex::Error) -> String {
    if let Some(construct) = unsupported(pattern) {
        return format!("uses {construct}, which cannot be matched in linear time; write the pattern without it");
    }
    let text = fault.to_string();
    let reason = text.lines().rev().find_map(|line| line.strip_prefix("error: ")).unwrap_or("it cannot be read");
    format!("is no regular expression that this service takes: {reason}")
}

/// Returns the first construct in a pattern that needs a backtracking engine.
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
                // A bracket that closes immediately is literal.
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
    fn compile_explains_rejection(#[case] pattern: &str, #[case] expected: &str) {
        let fault = Pattern::compile(pattern).unwrap_err();
        assert!(fault.contains(expected), "{fault}");
        assert!(!fault.contains('\n'), "{fault}");
    }

    #[test]
    fn compile_rejects_pattern_above_length_limit() {
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
    fn compile_accepts_linear_time_constructs(#[case] pattern: &str, #[case] text: &str, #[case] expected: &[&str]) {
        assert_eq!(found(pattern, text), expected);
    }

    #[rstest]
    #[case(r"\bab\B", "(?:)ab(?:)")]
    #[case(r"\b{start}a\b{end}", "(?:)a(?:)")]
    #[case(r"\\b[\b]\.", r"\\b[\b]\.")]
    #[case(r"(?i)a[^\]b]\b+", r"(?i)a[^\]b](?:)+")]
    #[case(r"^a|\Ab[]^$]c$|(?m:^d$)\z", r"(?:)a|(?:)b[]^$]c(?:)|(?m:(?:)d(?:))(?:)")]
    #[case("(?x) ^ a # ^ b", "(?x) (?:) a # ^ b")]
    fn without_assertions_removes_anchors_and_word_boundaries(#[case] pattern: &str, #[case] expected: &str) {
        assert_eq!(without_assertions(pattern), expected);
    }

    #[test]
    fn each_finds_many_matches() {
        let text = "ab12 ".repeat(1000);
        assert_eq!(found(r"[a-z]+\d+", &text).len(), 1000);
        let long = "x".repeat(400);
        let text = format!("{long} ").repeat(200);
        assert!(found("x+", &text).iter().all(|found| *found == long));
    }

    #[test]
    fn each_finds_long_match_after_many_matches() {
        let long = format!("key={}", "x".repeat(5_000));
        let text = format!("{long} ").repeat(100);
        let found = found(r"key=\w+", &text);
        assert_eq!(found.len(), 100);
        assert!(found.iter().all(|found| *found == long));
    }

    /// The end of the search window looks like the end of the text to this pattern, so growing the window is in vain.
    #[test]
    fn each_is_linear_when_windows_grow_in_vain() {
        let text = format!("{}z", "a".repeat(40_000));
        let found = found(r"a(?:[^z]*$)?", &text);
        assert_eq!(found.concat().len(), 40_000);
    }

    /// The search for each match of this pattern reads up to the end of the text, which is quadratic if always
    /// repeated.
    #[test]
    fn each_is_linear_when_matches_search_to_the_end() {
        let text = "a".repeat(40_000);
        let found = found("a[^z]*z|a", &text);
        assert_eq!(found.len(), 40_000);
    }
}
