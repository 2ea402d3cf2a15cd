//! Text that is split over neighbouring strings.
//!
//! Neighbours are joined without a separator and with a space. A match counts if it spans several of them and none of
//! them has its own match of the same filter at that position.

use std::ops::Range;

use super::builtin::Source;
use super::compile::Search;
use super::scan::{Found, Node, Redaction};
use super::text::{Views, ends};
use crate::usage::FilterAction;

/// The number of bytes at the beginning and end of a long string that take part in joining. Split text lies at the ends
/// of strings.
const EDGE_BYTES: usize = 4096;

/// One of several neighbouring strings.
#[derive(Debug)]
pub(super) struct Piece<'t> {
    node: Node,
    views: Views<'t>,
}

impl<'t> Piece<'t> {
    pub(super) fn new(node: Node, views: Views<'t>) -> Self {
        Self { node, views }
    }
}

/// Neighbouring strings, in order.
#[derive(Debug, Default)]
pub(super) struct Run<'t> {
    pieces: Vec<Piece<'t>>,
}

impl<'t> Run<'t> {
    /// Adds a string. The beginning of a long string ends this run, and its end starts another one.
    pub(super) fn add(&mut self, piece: Piece<'t>, filters: Search<'_>, text: &'t str, found: &mut Found, again: bool) {
        let content = piece.node.content();
        if content.is_empty() {
            return;
        }
        if content.len() <= 2 * EDGE_BYTES {
            self.pieces.push(piece);
            return;
        }
        let (head, tail) = ends(&text[content.clone()], EDGE_BYTES, true);
        let part =
            |range: Range<usize>| Piece { node: piece.node, views: Views::of_json(&text[range.clone()], range.start) };
        self.pieces.push(part(content.start..content.start + head));
        self.flush(filters, text, found, again);
        self.pieces.push(part(content.start + tail..content.end));
    }

    /// Scans the collected strings and clears the run.
    pub(super) fn flush(&mut self, filters: Search<'_>, text: &str, found: &mut Found, again: bool) {
        if self.pieces.len() > 1 {
            let mut spans = Vec::new();
            let normalized = self.pieces.iter().any(|piece| piece.views.normalized.is_some());
            for (source, between) in [(Source::Concatenated, ""), (Source::SpaceSeparated, " ")] {
                self.search(filters, source, between, false, &mut spans);
                if normalized {
                    self.search(filters, source, between, true, &mut spans);
                }
            }
            // Different ways of joining may find the same match.
            spans.sort_unstable_by_key(|span| (span.filter, span.first, span.from));
            let mut last: Option<SpanningMatch> = None;
            for span in spans {
                let is_same = last.as_ref().is_some_and(|last| last.filter == span.filter && span.first < last.last);
                if !is_same {
                    self.record(filters, text, found, &span, again);
                    last = Some(span);
                }
            }
        }
        self.pieces.clear();
    }

    fn search(
        &self,
        filters: Search<'_>,
        source: Source,
        between: &str,
        normalized: bool,
        spans: &mut Vec<SpanningMatch>,
    ) {
        let mut joined = String::new();
        let mut starts = Vec::with_capacity(self.pieces.len());
        for piece in &self.pieces {
            if !starts.is_empty() {
                joined.push_str(between);
            }
            starts.push(joined.len());
            joined.push_str(&if normalized { piece.views.normalized_or_plain() } else { &piece.views.plain }.text);
        }
        let end_of = |place: usize| starts.get(place + 1).map_or(joined.len(), |next| next - between.len());
        filters.each_joined(&joined, (source, &starts[1..]), &mut |filter, span| {
            let first = starts.partition_point(|start| *start <= span.start).saturating_sub(1);
            let last = starts.partition_point(|start| *start < span.end).saturating_sub(1);
            let first = if span.start >= end_of(first) { first + 1 } else { first };
            if first < last {
                let from = span.start.saturating_sub(starts[first]);
                let to = span.end.min(end_of(last)) - starts[last];
                spans.push(SpanningMatch { filter, first, from, last, to, normalized });
            }
        });
    }

    /// Returns the range of the source that a match takes in one piece.
    fn fragment(&self, span: &SpanningMatch, place: usize) -> Range<usize> {
        let views = &self.pieces[place].views;
        let view = if span.normalized { views.normalized_or_plain() } else { &views.plain };
        let from = if place == span.first { span.from } else { 0 };
        let to = if place == span.last { span.to } else { view.text.len() };
        if from < to { view.map.source(from..to) } else { 0..0 }
    }

    fn record(&self, filters: Search<'_>, text: &str, found: &mut Found, span: &SpanningMatch, again: bool) {
        let Some(filter) = filters.filters.get(span.filter) else { return };
        let places = span.first..=span.last;
        let fragments = places.clone().map(|place| {
            let fragment = self.fragment(span, place);
            text.floor_char_boundary(fragment.start)..text.ceil_char_boundary(fragment.end)
        });
        let fragments: Vec<Range<usize>> = fragments.collect();
        // Adjacent cells of a table are digits next to digits and no match.
        let is_digit = |byte: u8| byte.is_ascii_digit() || byte == b' ';
        if filter.is_custom && fragments.iter().all(|fragment| text[fragment.clone()].bytes().all(is_digit)) {
            return;
        }
        for (place, fragment) in places.zip(&fragments) {
            let mut has_own = false;
            filters.each_of(span.filter, &self.pieces[place].views, Source::String, &mut |own| {
                has_own |= own.start < fragment.end && fragment.start < own.end;
            });
            let is_exempt = filter.action == FilterAction::Redact || again;
            if has_own || is_exempt && !fragment.is_empty() && filters.placeholder_at(text, fragment, None).is_some() {
                return;
            }
        }
        let node = self.pieces[span.first].node;
        match filter.action {
            FilterAction::Block => found.block_at(span.filter, node),
            FilterAction::Flag => found.count(span.filter, node),
            FilterAction::Redact => {
                found.count(span.filter, node);
                let parts = (span.first..=span.last).zip(fragments).filter(|(_, fragment)| !fragment.is_empty());
                let redactions = parts.map(|(place, fragment)| Redaction {
                    node: self.pieces[place].node,
                    span: fragment,
                    filter: span.filter,
                });
                found.redactions.extend(redactions);
            }
        }
    }
}

/// A match over several pieces: from an offset in the first to an offset in the last.
#[derive(Debug)]
struct SpanningMatch {
    filter: usize,
    first: usize,
    from: usize,
    last: usize,
    to: usize,
    normalized: bool,
}
