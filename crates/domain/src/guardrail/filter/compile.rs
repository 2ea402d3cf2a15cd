//! Compiles the filters of several guardrails.

use std::ops::{Deref, Range};
use std::sync::Arc;

use regex::{RegexSet, RegexSetBuilder, SetMatches};

use super::InvalidFilters;
use super::builtin::{self, Builtins, Digits, Hint, Source, Subject};
use super::pattern::{self, Pattern};
use super::text::Views;
use crate::guardrail::{BuiltinFilter, GuardrailRules};
use crate::ids::GuardrailId;
use crate::system::CancelFlag;
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
    custom_patterns: Vec<Arc<CustomPatterns>>,
    builtins: Builtins,
    /// The indexes of the filters in the order of their search: those that flag come last, because a flagged match
    /// within a redacted one does not count.
    order: Vec<usize>,
    /// The placeholders of redacted matches.
    placeholders: Vec<String>,
}

/// One filter.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    pub(super) guardrail_id: GuardrailId,
    pub(super) action: FilterAction,
    pub(super) label: String,
    pub(super) placeholder: String,
    matcher: Matcher,
}

impl Filter {
    /// Returns true for a custom pattern.
    pub(super) fn is_custom(&self) -> bool {
        matches!(self.matcher, Matcher::Custom { .. })
    }
}

/// How a filter finds its matches.
#[derive(Debug, Clone, Copy)]
enum Matcher {
    /// The index of a guardrail's patterns, and of a pattern among them.
    Custom {
        set: usize,
        pattern: usize,
    },
    Builtin(BuiltinFilter),
}

/// The custom patterns of one guardrail.
#[derive(Debug)]
struct CustomPatterns {
    /// Selects the patterns that may match a text.
    set: RegexSet,
    patterns: Vec<Pattern>,
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
        let mut compiled = Self {
            filters: Vec::new(),
            custom_patterns: Vec::new(),
            builtins: Builtins::default(),
            order: Vec::new(),
            placeholders: Vec::new(),
        };
        for (id, rules) in guardrails {
            compiled.add_custom_patterns(id, rules)?;
            compiled.add_builtins(id, rules)?;
        }
        compiled.index_actions();
        Ok(compiled)
    }

    /// Collects the placeholders of the filters that redact, and the order of the search.
    pub(super) fn index_actions(&mut self) {
        let mut order: Vec<usize> = (0..self.filters.len()).collect();
        order.sort_by_key(|filter| self.action(*filter) == Some(FilterAction::Flag));
        self.order = order;
        let redacting = self.filters.iter().filter(|filter| filter.action == FilterAction::Redact);
        self.placeholders = redacting.map(|filter| filter.placeholder.clone()).collect();
        self.placeholders.sort();
        self.placeholders.dedup();
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
        let texts = filters.iter().map(|filter| pattern::without_boundaries(&filter.pattern));
        let set = RegexSetBuilder::new(texts).size_limit(MAX_COMPILED_BYTES).build().map_err(|_| {
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
            let known = self.builtins.place(wanted.slug);
            match known.and_then(|place| self.filters.get_mut(place)) {
                Some(known) if known.action < wanted.action => {
                    known.guardrail_id = id;
                    known.action = wanted.action;
                }
                Some(_) => {}
                None => {
                    self.builtins.add(wanted.slug, self.filters.len());
                    let matcher = Matcher::Builtin(wanted.slug);
                    self.push(id, wanted.action, wanted.slug.label().to_owned(), matcher);
                }
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

    /// Returns the indexes of the filters in the order of their search.
    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    /// Returns the placeholders of the filters that redact.
    pub(super) fn placeholders(&self) -> &[String] {
        &self.placeholders
    }

    /// Returns true if a filter uses hints from names.
    pub(super) fn wants_hints(&self) -> bool {
        self.builtins.wants_hints()
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
        let longest = self.placeholders.iter().map(String::len).max().unwrap_or_default();
        let bytes = text.as_bytes();
        let from = place.start.saturating_sub(longest + 1 + MAX_DIGITS);
        let open = bytes.get(from..=place.start)?.iter().rposition(|byte| *byte == b'[')? + from;
        let known = self.placeholders.iter().find(|known| text[open..].starts_with(known.as_str()))?;
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

/// Filters with a cancel flag. After a cancellation the matches are incomplete and the caller must discard them.
#[derive(Clone, Copy)]
pub(super) struct Search<'f> {
    filters: &'f CompiledFilters,
    cancel: &'f CancelFlag,
}

impl Deref for Search<'_> {
    type Target = CompiledFilters;

    fn deref(&self) -> &CompiledFilters {
        self.filters
    }
}

impl<'f> Search<'f> {
    pub(super) fn new(filters: &'f CompiledFilters, cancel: &'f CancelFlag) -> Self {
        Self { filters, cancel }
    }

    /// Returns true if the search was cancelled.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Prepares the search of a text: finds out once what several filters need.
    pub(super) fn prepare<'v, 't>(&self, views: &'v Views<'t>, source: Source, hint: Hint) -> Prepared<'v, 't> {
        self.prepare_joined(views, (source, &[]), hint)
    }

    /// Prepares the search of a text that is made of neighbouring strings; the second and each further string begins at
    /// one of `joints`. Matches within one string may be left out.
    pub(super) fn prepare_joined<'v, 't>(
        &self,
        views: &'v Views<'t>,
        (source, joints): (Source, &'v [usize]),
        hint: Hint,
    ) -> Prepared<'v, 't> {
        let subject = Subject { text: &views.normalized_or_plain().text, source, hint, joints };
        let selected = |custom: &Arc<CustomPatterns>| {
            let plain = custom.set.matches(&views.plain.text);
            (plain, views.normalized.as_ref().map(|normalized| custom.set.matches(&normalized.text)))
        };
        Prepared {
            views,
            subject,
            digits: self.builtins.digits(subject),
            selected: self.custom_patterns.iter().map(selected).collect(),
        }
    }

    /// Reports every match of one filter in a text, as ranges of the source that are not empty, in no particular order.
    /// A match may be reported twice: once from the plain view and once from the normalised one.
    pub(super) fn each(&self, text: &Prepared<'_, '_>, filter: usize, found: &mut dyn FnMut(Range<usize>)) {
        let views = text.views;
        match self.matcher(filter) {
            Some(Matcher::Custom { set, pattern }) => {
                let Some((in_plain, in_normalized)) = text.selected.get(set) else { return };
                let normalized = views.normalized.as_ref().zip(in_normalized.as_ref());
                for (view, selected) in [Some((&views.plain, in_plain)), normalized].into_iter().flatten() {
                    if selected.matched(pattern)
                        && let Some(pattern) = self.pattern(set, pattern)
                    {
                        pattern.each(&view.text, self.cancel, |span| found(view.map.source(span)));
                    }
                }
            }
            Some(Matcher::Builtin(slug)) => {
                let view = views.normalized_or_plain();
                builtin::each(slug, text.subject, &text.digits, &mut |span| found(view.map.source(span)));
                if slug == BuiltinFilter::RegexPromptInjection && views.normalized.is_some() {
                    let read = views.unescaped();
                    builtin::each_invisible(&read.text, &mut |span| found(read.map.source(span)));
                }
            }
            None => {}
        }
    }

    /// Returns true if a filter has a match in one string that overlaps a range of the source.
    pub(super) fn has_match_in(&self, filter: usize, views: &Views<'_>, range: &Range<usize>) -> bool {
        let mut has_match = false;
        let mut found = |own: Range<usize>| has_match |= own.start < range.end && range.start < own.end;
        match self.matcher(filter) {
            Some(Matcher::Custom { set, pattern }) => {
                let Some(pattern) = self.pattern(set, pattern) else { return false };
                for view in [Some(&views.plain), views.normalized.as_ref()].into_iter().flatten() {
                    pattern.each(&view.text, self.cancel, |span| found(view.map.source(span)));
                }
            }
            Some(Matcher::Builtin(slug)) => {
                let view = views.normalized_or_plain();
                let subject = Subject { text: &view.text, source: Source::String, hint: Hint::None, joints: &[] };
                let digits = self.builtins.digits(subject);
                builtin::each(slug, subject, &digits, &mut |span| found(view.map.source(span)));
            }
            None => {}
        }
        has_match
    }

    fn matcher(&self, filter: usize) -> Option<Matcher> {
        self.filters.filters.get(filter).map(|filter| filter.matcher)
    }

    fn pattern(&self, set: usize, pattern: usize) -> Option<&Pattern> {
        self.custom_patterns.get(set)?.patterns.get(pattern)
    }
}

/// A text to search, with what several filters need.
pub(super) struct Prepared<'v, 't> {
    views: &'v Views<'t>,
    subject: Subject<'v>,
    digits: Digits,
    /// The patterns of each guardrail that may match the plain and the normalised view.
    selected: Vec<(SetMatches, Option<SetMatches>)>,
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
