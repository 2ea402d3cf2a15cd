//! The search of a text by the filters that may match it.

use std::ops::Range;

use regex_automata::{Input, PatternSet};

use super::builtin::{self, Digits, Hint, Source, Subject};
use super::compile::{CompiledFilters, Matcher};
use super::found::Found;
use super::text::Views;
use crate::guardrail::BuiltinFilter;
use crate::system::CancelFlag;
use crate::usage::FilterAction;

/// Selected filters with a cancel flag. After a cancellation the matches are incomplete and the caller must discard
/// them.
pub(super) struct Search<'f> {
    pub(super) filters: &'f CompiledFilters,
    cancel: &'f CancelFlag,
    /// The indexes of the filters in the order of their search: those that flag come last, because a flagged match
    /// within a redacted one does not count.
    pub(super) selected: Vec<usize>,
    /// True if the texts may hold a medium.
    may_have_medium: bool,
}

impl<'f> Search<'f> {
    /// Selects all filters.
    pub(super) fn new(filters: &'f CompiledFilters, cancel: &'f CancelFlag) -> Self {
        let mut selected: Vec<usize> = (0..filters.filters.len()).collect();
        selected.sort_by_key(|filter| filters.action(*filter) == Some(FilterAction::Flag));
        Self { filters, cancel, selected, may_have_medium: true }
    }

    /// Returns true if one of these filters is a built-in one with a property.
    pub(super) fn has_builtin(&self, filters: &[usize], test: impl Fn(BuiltinFilter) -> bool) -> bool {
        filters.iter().any(|filter| matches!(self.matcher(*filter), Some(Matcher::Builtin(slug)) if test(slug)))
    }

    /// Returns true if the texts have neither a match nor a medium.
    pub(super) fn finds_nothing(&self) -> bool {
        self.selected.is_empty() && !self.may_have_medium
    }

    /// Returns true if the search was cancelled.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Prepares the search of a text: finds out once what several filters need. In a text that is made of neighbouring
    /// strings, the second and each further one begins at one of `joints`, and matches within one may be left out.
    pub(super) fn prepare<'v, 't>(
        &self,
        views: &'v Views<'t>,
        (source, joints): (Source, &'v [usize]),
        hint: Hint,
    ) -> Prepared<'v, 't> {
        let subject = Subject { text: &views.normalized_or_plain().text, source, hint, joints };
        Prepared { views, subject, digits: self.digits(&self.selected, subject) }
    }

    /// Collects the digits of a text, if one of these filters needs them.
    fn digits(&self, filters: &[usize], subject: Subject<'_>) -> Digits {
        if self.has_builtin(filters, builtin::wants_digits) { Digits::collect(subject) } else { Digits::default() }
    }

    /// Reports every match of one filter in a text, as ranges of the source that are not empty, in no particular order.
    /// A match may be reported twice: once from the plain view and once from the normalised one.
    pub(super) fn each(&self, text: &Prepared<'_, '_>, filter: usize, found: &mut dyn FnMut(Range<usize>)) {
        self.each_visible(text, filter, found);
        if self.matcher(filter) == Some(Matcher::Builtin(BuiltinFilter::RegexPromptInjection)) {
            each_invisible(text.views, found);
        }
    }

    fn each_visible(&self, text: &Prepared<'_, '_>, filter: usize, found: &mut dyn FnMut(Range<usize>)) {
        let views = text.views;
        match self.matcher(filter) {
            Some(Matcher::Custom { set, pattern }) => {
                let patterns = self.filters.custom_patterns.get(set);
                let Some(pattern) = patterns.and_then(|custom| custom.patterns.get(pattern)) else { return };
                for view in [Some(&views.plain), views.normalized.as_ref()].into_iter().flatten() {
                    pattern.each(&view.text, self.cancel, |span| found(view.map.source(span)));
                }
            }
            Some(Matcher::Builtin(slug)) => {
                let view = views.normalized_or_plain();
                builtin::each(slug, text.subject, &text.digits, &mut |span| found(view.map.source(span)));
            }
            None => {}
        }
    }

    /// Returns true if a filter has a match in one string that overlaps a range of the source.
    pub(super) fn has_match_in(&self, filter: usize, views: &Views<'_>, range: &Range<usize>) -> bool {
        let mut has_match = false;
        self.each_visible(&self.prepare(views, (Source::String, &[]), Hint::None), filter, &mut |own: Range<usize>| {
            has_match |= own.start < range.end && range.start < own.end;
        });
        has_match
    }

    fn matcher(&self, filter: usize) -> Option<Matcher> {
        self.filters.filters.get(filter).map(|filter| filter.matcher)
    }
}

/// A text to search, with what several filters need.
pub(super) struct Prepared<'v, 't> {
    views: &'v Views<'t>,
    subject: Subject<'v>,
    digits: Digits,
}

/// Texts are collected up to this size in bytes before they are searched together. A longer one is searched alone.
const BATCH_BYTES: usize = 32 << 10;
/// The bytes between two texts. No built-in filter matches across them, and none takes them for a part of a text:
/// they end lines, numbers, words and encoded text, and are more than the characters between two words of an attempt at
/// prompt injection.
const SEPARATOR: &str = "\n\0\0\0\0\0\0\0";

/// Selects the filters that may match one of many texts. It searches the texts together, because most match no filter,
/// and a search has a price for each text.
pub(super) struct Prefilter {
    /// The filters that are not selected yet, in the order of their search.
    rest: Vec<usize>,
    batches: Vec<Batch>,
}

/// Texts of one source.
struct Batch {
    source: Source,
    texts: String,
    joints: Vec<usize>,
}

impl Batch {
    fn subject(&self) -> Subject<'_> {
        Subject { text: &self.texts, source: self.source, hint: Hint::None, joints: &self.joints }
    }
}

impl Prefilter {
    pub(super) fn new(all: &Search<'_>) -> Self {
        let sources = [Source::String, Source::Concatenated, Source::SpaceSeparated];
        let batches = sources.map(|source| Batch { source, texts: String::new(), joints: Vec::new() });
        Self { rest: all.selected.clone(), batches: batches.into() }
    }

    /// Returns true if all filters are selected.
    pub(super) fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// Adds a text with a hint from its name.
    pub(super) fn add(&mut self, all: &Search<'_>, views: &Views<'_>, hint: Hint) {
        if hint == Hint::Secret {
            self.select(all, BuiltinFilter::Secrets);
        }
        self.add_text(all, &views.plain.text, (Source::String, &[]));
        if let Some(normalized) = &views.normalized {
            self.add_text(all, &normalized.text, (Source::String, &[]));
            let mut is_found = false;
            each_invisible(views, &mut |_| is_found = true);
            if is_found {
                self.select(all, BuiltinFilter::RegexPromptInjection);
            }
        }
    }

    /// Adds a text as it is, with the joints of neighbouring strings in it.
    pub(super) fn add_text(&mut self, all: &Search<'_>, text: &str, (source, joints): (Source, &[usize])) {
        if text.len() >= BATCH_BYTES {
            self.search(all, Subject { text, source, hint: Hint::None, joints });
            return;
        }
        let Some(batch) = self.batches.iter_mut().find(|batch| batch.source == source) else { return };
        batch.joints.extend(joints.iter().map(|joint| batch.texts.len() + joint));
        batch.texts.push_str(text);
        batch.texts.push_str(SEPARATOR);
        if batch.texts.len() >= BATCH_BYTES {
            self.search_batches(all, BATCH_BYTES);
        }
    }

    /// Returns the search with the selected filters.
    pub(super) fn finish<'f>(mut self, all: &Search<'f>, has_medium: bool) -> Search<'f> {
        self.search_batches(all, 1);
        let Search { filters, cancel, selected, .. } = all;
        let selected = selected.iter().copied().filter(|filter| !self.rest.contains(filter)).collect();
        Search { filters, cancel, selected, may_have_medium: has_medium }
    }

    /// Searches and clears the batches of at least that many bytes.
    fn search_batches(&mut self, all: &Search<'_>, least: usize) {
        let mut batches = std::mem::take(&mut self.batches);
        for batch in batches.iter_mut().filter(|batch| batch.texts.len() >= least) {
            self.search(all, batch.subject());
            batch.texts.clear();
            batch.joints.clear();
        }
        self.batches = batches;
    }

    /// Selects the filters that may match one of the texts.
    fn search(&mut self, all: &Search<'_>, subject: Subject<'_>) {
        let texts = subject.text;
        if self.is_done() || all.is_cancelled() {
            return;
        }
        let digits = all.digits(&self.rest, subject);
        let mut custom = Vec::new();
        for (index, custom_patterns) in all.filters.custom_patterns.iter().enumerate() {
            let set = &custom_patterns.set;
            if set.is_match(texts) {
                let mut matches = PatternSet::new(set.pattern_len());
                set.which_overlapping_matches(&Input::new(texts), &mut matches);
                custom
                    .extend(matches.iter().map(|pattern| Matcher::Custom { set: index, pattern: pattern.as_usize() }));
            }
        }
        let has_patterns = all.has_builtin(&self.rest, |slug| builtin::wants_patterns(slug, texts, subject.source))
            && builtin::may_match_patterns(texts);
        self.rest.retain(|filter| match all.matcher(*filter) {
            Some(matcher @ Matcher::Custom { .. }) => !custom.contains(&matcher),
            Some(Matcher::Builtin(slug)) => !builtin::may_match(slug, subject, &digits, has_patterns),
            None => true,
        });
    }

    fn select(&mut self, all: &Search<'_>, slug: BuiltinFilter) {
        self.rest.retain(|filter| all.matcher(*filter) != Some(Matcher::Builtin(slug)));
    }
}

/// One pass over a text.
pub(super) struct Pass<'p> {
    pub(super) search: &'p Search<'p>,
    pub(super) text: &'p str,
    /// True if placeholders of earlier redactions are exempt.
    pub(super) is_rescan: bool,
    pub(super) found: Found,
    /// The collector of a pass that selects filters. Such a pass finds media and no matches.
    pub(super) prefilter: Option<&'p mut Prefilter>,
}

/// Reports every invisible attempt at prompt injection. The normalised view does not have it.
fn each_invisible(views: &Views<'_>, found: &mut dyn FnMut(Range<usize>)) {
    if views.normalized.is_some() {
        let read = views.unescaped();
        builtin::each_invisible(&read.text, &mut |span| found(read.map.source(span)));
    }
}
