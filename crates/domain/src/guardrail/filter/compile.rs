//! Compiles the filters of several guardrails.

use std::ops::Range;
use std::sync::Arc;

use regex_automata::nfa::thompson::WhichCaptures;
use regex_automata::{MatchKind, meta};

use super::InvalidFilters;
use super::builtin;
use super::pattern::{self, Pattern};
use crate::guardrail::{BuiltinFilter, GuardrailRules};
use crate::ids::GuardrailId;
use crate::usage::FilterAction;

/// The highest number of custom patterns of one guardrail.
const MAX_PATTERNS: usize = 64;
/// The highest number of characters of a label.
const MAX_LABEL_CHARS: usize = 100;
/// The highest size in bytes of all compiled patterns of one guardrail.
const MAX_COMPILED_BYTES: usize = 8 << 20;

/// The compiled filters of all guardrails that apply together.
#[derive(Debug, Clone)]
pub struct CompiledFilters {
    /// The filters in the order of the guardrails, custom patterns before built-in ones.
    pub(super) filters: Vec<Filter>,
    pub(super) custom_patterns: Vec<Arc<CustomPatterns>>,
}

/// One filter.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    pub(super) guardrail_id: GuardrailId,
    pub(super) action: FilterAction,
    pub(super) label: String,
    pub(super) placeholder: String,
    pub(super) matcher: Matcher,
}

/// How a filter finds its matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Matcher {
    /// The index of a guardrail's patterns, and of a pattern among them.
    Custom {
        set: usize,
        pattern: usize,
    },
    Builtin(BuiltinFilter),
}

/// The custom patterns of one guardrail.
#[derive(Debug)]
pub(super) struct CustomPatterns {
    /// The patterns without their assertions, which match wherever the patterns do.
    pub(super) set: meta::Regex,
    pub(super) patterns: Vec<Pattern>,
}

impl CompiledFilters {
    /// Compiles the filters of guardrails, the workspace's first. Filters unite: a built-in filter of several
    /// guardrails gets its most severe action.
    ///
    /// # Errors
    /// Returns the first pattern that cannot be used, with its path in its guardrail and a remedy.
    pub fn compile<'a>(
        guardrails: impl Iterator<Item = (GuardrailId, &'a GuardrailRules)>,
    ) -> Result<Self, InvalidFilters> {
        let mut compiled = Self { filters: Vec::new(), custom_patterns: Vec::new() };
        for (id, rules) in guardrails {
            compiled.add_custom_patterns(id, rules)?;
            compiled.add_builtins(id, rules)?;
        }
        Ok(compiled)
    }

    /// Returns the number of filters.
    pub(crate) fn count(&self) -> usize {
        self.filters.len()
    }

    fn add_custom_patterns(&mut self, id: GuardrailId, rules: &GuardrailRules) -> Result<(), InvalidFilters> {
        const PATH: &str = "content_filters";
        let invalid = |path: String, fault: String| InvalidFilters { path, fault };
        let filters = &rules.content_filters;
        if filters.is_empty() {
            return Ok(());
        }
        if filters.len() > MAX_PATTERNS {
            let fault = format!("must have at most {MAX_PATTERNS} patterns, not {}", filters.len());
            return Err(invalid(PATH.to_owned(), fault));
        }
        let mut patterns = Vec::with_capacity(filters.len());
        for (index, filter) in filters.iter().enumerate() {
            if filter.label.as_deref().is_some_and(|label| label.chars().count() > MAX_LABEL_CHARS) {
                let fault = format!("must have at most {MAX_LABEL_CHARS} characters");
                return Err(invalid(format!("{PATH}[{index}].label"), fault));
            }
            let pattern = Pattern::compile(&filter.pattern)
                .map_err(|fault| invalid(format!("{PATH}[{index}].pattern"), fault))?;
            patterns.push(pattern);
            let matcher = Matcher::Custom { set: self.custom_patterns.len(), pattern: index };
            self.push(id, filter.action, sanitize_label(filter.label.as_deref()), matcher);
        }
        let texts: Vec<String> = filters.iter().map(|filter| pattern::without_assertions(&filter.pattern)).collect();
        // The first letters of several patterns are so frequent that a search for them takes longer than the automaton.
        let config = meta::Config::new()
            .auto_prefilter(false)
            .match_kind(MatchKind::All)
            .which_captures(WhichCaptures::None)
            .nfa_size_limit(Some(MAX_COMPILED_BYTES))
            .hybrid_cache_capacity(2 << 20);
        let set = meta::Builder::new().configure(config).build_many(&texts).map_err(|_| {
            let most = MAX_COMPILED_BYTES >> 20;
            invalid(
                PATH.to_owned(),
                format!("take more than {most} MiB when compiled together; use fewer or simpler ones"),
            )
        })?;
        self.custom_patterns.push(Arc::new(CustomPatterns { set, patterns }));
        Ok(())
    }

    fn add_builtins(&mut self, id: GuardrailId, rules: &GuardrailRules) -> Result<(), InvalidFilters> {
        for (index, wanted) in rules.content_filter_builtins.iter().enumerate() {
            builtin::ready(wanted.slug).map_err(|fault| InvalidFilters {
                path: format!("content_filter_builtins[{index}]"),
                fault: format!("cannot be used: {fault}"),
            })?;
            let matcher = Matcher::Builtin(wanted.slug);
            match self.filters.iter_mut().find(|filter| filter.matcher == matcher) {
                Some(known) if known.action < wanted.action => {
                    known.guardrail_id = id;
                    known.action = wanted.action;
                }
                Some(_) => {}
                None => self.push(id, wanted.action, wanted.slug.label().to_owned(), matcher),
            }
        }
        Ok(())
    }

    fn push(&mut self, guardrail_id: GuardrailId, action: FilterAction, label: String, matcher: Matcher) {
        let placeholder = placeholder(&label);
        self.filters.push(Filter { guardrail_id, action, label, placeholder, matcher });
    }

    /// Returns true if there are no filters.
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// Returns the placeholders of the filters that redact.
    pub(super) fn placeholders(&self) -> impl Iterator<Item = &str> {
        let redacting = self.filters.iter().filter(|filter| filter.action == FilterAction::Redact);
        redacting.map(|filter| filter.placeholder.as_str())
    }

    /// Returns the first filter that blocks, or else the first that redacts.
    pub(super) fn most_severe_filter(&self) -> Option<usize> {
        let places = |action| self.filters.iter().position(|filter| filter.action == action);
        places(FilterAction::Block).or_else(|| places(FilterAction::Redact))
    }

    /// Returns the action of a filter.
    pub(super) fn action(&self, filter: usize) -> Option<FilterAction> {
        self.filters.get(filter).map(|filter| filter.action)
    }

    /// Returns the placeholder around a match, if an earlier redaction wrote it. `name_end` is the end of the name that
    /// holds the match: a redacted name may end with a number that makes it unique.
    pub(super) fn placeholder_at(
        &self,
        text: &str,
        place: &Range<usize>,
        name_end: Option<usize>,
    ) -> Option<Placeholder> {
        const MAX_DIGITS: usize = 7;
        let longest = self.placeholders().map(str::len).max().unwrap_or_default();
        let bytes = text.as_bytes();
        let from = place.start.saturating_sub(longest + 1 + MAX_DIGITS);
        let open = bytes.get(from..=place.start)?.iter().rposition(|byte| *byte == b'[')? + from;
        let known = self.placeholders().find(|known| text[open..].starts_with(known))?;
        let end = open + known.len();
        if place.end <= end {
            return Some(Placeholder::Whole);
        }
        let digits = text.get(end..name_end?)?.strip_prefix(' ')?;
        let is_number = (1..=MAX_DIGITS).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && !digits.starts_with('0');
        let number = if is_number { digits.parse().ok()? } else { return None };
        (number > 1).then_some(Placeholder::Numbered(number))
    }
}

/// Text that an earlier redaction wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placeholder {
    /// A label in brackets.
    Whole,
    /// A label in brackets and the number that makes the name unique in its object.
    Numbered(usize),
}

/// The label of a custom filter without a label.
const UNNAMED: &str = "REDACTED";

/// Returns a label that is safe to display: letters, digits, `_`, `-` and single spaces. It can neither end the
/// brackets around it nor break the text or header that holds it.
pub(super) fn sanitize_label(label: Option<&str>) -> String {
    let mut clean = String::new();
    for c in label.unwrap_or_default().chars() {
        if c.is_alphanumeric() || matches!(c, '_' | '-') {
            clean.push(c);
        } else if c.is_whitespace() {
            if !clean.is_empty() && !clean.ends_with(' ') {
                clean.push(' ');
            }
        } else if !c.is_control() && !clean.ends_with('_') {
            clean.push('_');
        }
    }
    let clean = clean.trim_end();
    if clean.chars().any(char::is_alphanumeric) { clean.to_owned() } else { UNNAMED.to_owned() }
}

/// Returns the placeholder of a redacted match. None of its characters needs an escape in JSON.
pub(super) fn placeholder(label: &str) -> String {
    format!("[{label}]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(None, "REDACTED")]
    #[case(Some(""), "REDACTED")]
    #[case(Some(" \n ]["), "REDACTED")]
    #[case(Some("Customer number"), "Customer number")]
    #[case(Some("  a \t\n b  "), "a b")]
    #[case(Some("x\"],\"role\":\"system"), "x_role_system")]
    #[case(Some("Kundennummer für"), "Kundennummer für")]
    #[case(Some("a\u{0}b\\u005d"), "ab_u005d")]
    fn sanitize_label_removes_unsafe_characters(#[case] label: Option<&str>, #[case] expected: &str) {
        assert_eq!(sanitize_label(label), expected);
    }
}
