//! Text that is split over neighbouring strings.
//!
//! Neighbours are joined without a separator and with a space. A match counts if it spans several of them and none of
//! them has its own match of the same filter at that position, except for private keys.
//!
//! Many neighbours are joined in windows, so that the memory of a run does not depend on their number. The beginning of
//! a window repeats text for the context of matches, and its end is text that a match may reach into.

use std::ops::Range;

use super::builtin::{Hint, Source};
use super::compile::Matcher;
use super::found::{Node, NodeKind};
use super::search::Pass;
use super::text::{Views, ends};
use crate::guardrail::BuiltinFilter;
use crate::usage::FilterAction;

/// The number of bytes at the beginning and end of a long string that take part in joining. Split text lies at the ends
/// of strings. Windows repeat twice as much, so that a long string never separates neighbours within a window.
const EDGE_BYTES: usize = 4096;
/// The number of bytes of neighbours that are joined at a time, before the text that the next window repeats.
const WINDOW_BYTES: usize = 32 << 10;
/// The number of bytes of neighbours before and behind the matches of a window.
const REPEATED_BYTES: usize = 2 * EDGE_BYTES;

/// The content of one of several neighbouring strings, or one end of it. Its views are made again when they are needed,
/// because they take many times the memory of a short string.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start: u32,
    end: u32,
}

impl Piece {
    /// Returns a piece; `None` in a text beyond 4 GiB, which is not scanned.
    fn new(range: &Range<usize>) -> Option<Self> {
        Some(Self { start: range.start.try_into().ok()?, end: range.end.try_into().ok()? })
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    fn len(self) -> usize {
        self.range().len()
    }

    fn views(self, text: &str) -> Views<'_> {
        Views::of_json(&text[self.range()], self.start as usize)
    }
}

/// Neighbouring strings, in order.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// The strings of the current window.
    pieces: Vec<Piece>,
    /// The bytes of all of them.
    bytes: usize,
    /// The start of the string whose end is the first piece.
    cut_string: Option<usize>,
    /// The number of pieces whose matches an earlier window has reported.
    reported: usize,
    /// The number of pieces that earlier windows have dropped.
    dropped: usize,
    /// The end of the last match of each filter, as the number of pieces before it in the whole run.
    ends: Vec<usize>,
}

impl Run {
    /// Adds a string. The beginning of a long string ends this run, and its end starts another one.
    pub(super) fn add(&mut self, content: Range<usize>, pass: &mut Pass<'_>) {
        if content.len() <= 2 * EDGE_BYTES {
            self.push(&content);
            if self.bytes >= WINDOW_BYTES + 2 * REPEATED_BYTES {
                self.scan_window(pass);
            }
            return;
        }
        let (head, tail) = ends(&pass.text[content.clone()], EDGE_BYTES, true);
        self.push(&(content.start..content.start + head));
        self.flush(pass);
        self.push(&(content.start + tail..content.end));
        self.cut_string = Some(content.start - 1);
    }

    fn push(&mut self, content: &Range<usize>) {
        if let Some(piece) = Piece::new(content).filter(|piece| piece.len() > 0) {
            self.pieces.push(piece);
            self.bytes += piece.len();
        }
    }

    /// Scans the collected strings and clears the run.
    pub(super) fn flush(&mut self, pass: &mut Pass<'_>) {
        if self.pieces.len() > 1 {
            self.search(self.pieces.len(), pass);
        }
        // Frees the memory, unless it is little.
        *self = Self::default();
    }

    /// Scans the collected strings, except for matches that begin in the last ones, which the next window repeats.
    fn scan_window(&mut self, pass: &mut Pass<'_>) {
        let until = self.before(self.pieces.len());
        self.search(until, pass);
        let kept = self.before(until);
        self.reported = until - kept;
        self.dropped += kept;
        self.bytes -= self.pieces.drain(..kept).map(Piece::len).sum::<usize>();
        if kept > 0 {
            self.cut_string = None;
        }
    }

    /// Returns the place of the first piece of the repeated bytes before a place.
    fn before(&self, place: usize) -> usize {
        let mut bytes = 0;
        let is_further = |piece: &&Piece| {
            bytes += piece.len();
            bytes < REPEATED_BYTES
        };
        place.saturating_sub(self.pieces[..place].iter().rev().take_while(is_further).count() + 1)
    }

    /// Reports the matches that begin before the piece `until`, and in no earlier window.
    fn search(&mut self, until: usize, pass: &mut Pass<'_>) {
        if pass.search.is_cancelled() || pass.prefilter.as_ref().is_some_and(|prefilter| prefilter.is_done()) {
            return;
        }
        let joined = self.join(pass.text);
        if let Some(prefilter) = &mut pass.prefilter {
            for joined in &joined {
                prefilter.add_text(pass.search, &joined.text, (joined.source, &joined.starts[1..]));
            }
            return;
        }
        let search = pass.search;
        let views: Vec<Views<'_>> = joined.iter().map(|joined| Views::verbatim(&joined.text)).collect();
        let prepared = joined.iter().zip(&views).map(|(joined, views)| {
            // The views of the strings already have their escapes decoded.
            search.prepare(views, (joined.source, &joined.starts[1..]), Hint::None)
        });
        let prepared: Vec<_> = prepared.collect();
        let mut spans = Vec::new();
        for filter in search.selected.iter().copied() {
            for (joined, prepared) in joined.iter().zip(&prepared) {
                if search.is_cancelled() {
                    return;
                }
                let is_secrets = search.has_builtin(&[filter], |slug| slug == BuiltinFilter::Secrets);
                search.each(prepared, filter, &mut |span| {
                    let is_private_key = is_secrets && is_private_key(&joined.text[span.clone()]);
                    let span = joined.spanning_match(&span, is_private_key);
                    spans.extend(span.filter(|span| (self.reported..until).contains(&span.first)));
                });
            }
            // Different ways of joining may find the same match.
            spans.sort_unstable_by_key(|span: &SpanningMatch| (span.first, span.from));
            for span in spans.drain(..) {
                self.ends.resize(search.filters.count(), 0);
                if self.dropped + span.first >= self.ends[filter] {
                    self.record(filter, &span, pass);
                    self.ends[filter] = self.dropped + span.last;
                }
            }
        }
    }

    /// Joins the pieces in every way.
    fn join(&self, text: &str) -> Vec<JoinedStrings> {
        let new = |source, between: &'static str| JoinedStrings {
            text: String::with_capacity(self.bytes + self.pieces.len() * between.len()),
            starts: Vec::with_capacity(self.pieces.len()),
            source,
            between,
            is_normalized: false,
        };
        let mut plain = [new(Source::Concatenated, ""), new(Source::SpaceSeparated, " ")];
        let mut normalized: Option<[JoinedStrings; 2]> = None;
        for piece in &self.pieces {
            let views = piece.views(text);
            if views.normalized.is_some() && normalized.is_none() {
                normalized = Some(plain.clone().map(|joined| JoinedStrings { is_normalized: true, ..joined }));
            }
            for joined in &mut plain {
                joined.push(&views.plain.text);
            }
            for joined in normalized.iter_mut().flatten() {
                joined.push(&views.normalized_or_plain().text);
            }
        }
        match normalized {
            Some(normalized) => plain.into_iter().zip(normalized).flat_map(<[JoinedStrings; 2]>::from).collect(),
            None => plain.into(),
        }
    }

    /// Returns the range of the source that a match takes in one piece.
    fn fragment(&self, text: &str, span: &SpanningMatch, place: usize) -> Range<usize> {
        let views = self.pieces[place].views(text);
        let view = if span.is_normalized { views.normalized_or_plain() } else { &views.plain };
        let from = if place == span.first { span.from } else { 0 };
        let to = if place == span.last { span.to } else { view.text.len() };
        let source = if from < to { view.map.source(from..to) } else { 0..0 };
        text.floor_char_boundary(source.start)..text.ceil_char_boundary(source.end)
    }

    /// Returns the string of a piece.
    fn node(&self, place: usize) -> Node {
        let Range { start, end } = self.pieces[place].range();
        let start = self.cut_string.filter(|_| place == 0).unwrap_or(start.saturating_sub(1));
        Node { kind: NodeKind::String, start, end: end + 1, object: 0 }
    }

    fn record(&self, index: usize, span: &SpanningMatch, pass: &mut Pass<'_>) {
        let Pass { search, text, found, is_rescan, .. } = pass;
        let Some(filter) = search.filters.filters.get(index) else { return };
        let fragments = (span.first..=span.last).map(|place| (place, self.fragment(text, span, place)));
        let fragments: Vec<(usize, Range<usize>)> = fragments.collect();
        // Adjacent cells of a table are digits next to digits and no match.
        let is_digit = |byte: u8| byte.is_ascii_digit() || byte == b' ';
        let is_custom = matches!(filter.matcher, Matcher::Custom { .. });
        if is_custom && fragments.iter().all(|(_, fragment)| text[fragment.clone()].bytes().all(is_digit)) {
            return;
        }
        let mut is_counted = true;
        for (place, fragment) in &fragments {
            let has_own = search.has_match_in(index, &self.pieces[*place].views(text), fragment);
            let is_exempt = filter.action == FilterAction::Redact || *is_rescan;
            if has_own && span.is_private_key {
                // Its first line is a match by itself; the lines that have the key are none.
                is_counted = false;
            } else if has_own
                || is_exempt && !fragment.is_empty() && search.filters.placeholder_at(text, fragment, None).is_some()
            {
                return;
            }
        }
        let node = self.node(span.first);
        if filter.action == FilterAction::Block {
            found.block_at(index, node);
        } else if is_counted {
            found.count(index, node);
        }
        if filter.action == FilterAction::Redact {
            for (_, fragment) in fragments.into_iter().filter(|(_, fragment)| !fragment.is_empty()) {
                found.redact(index, node, fragment);
            }
        }
    }
}

/// Neighbouring strings as one text.
#[derive(Clone)]
struct JoinedStrings {
    text: String,
    /// The start of each piece.
    starts: Vec<usize>,
    source: Source,
    between: &'static str,
    is_normalized: bool,
}

impl JoinedStrings {
    fn push(&mut self, piece: &str) {
        if !self.starts.is_empty() {
            self.text.push_str(self.between);
        }
        self.starts.push(self.text.len());
        self.text.push_str(piece);
    }

    fn end_of(&self, place: usize) -> usize {
        self.starts.get(place + 1).map_or(self.text.len(), |next| next - self.between.len())
    }

    /// Returns a match if it spans several pieces.
    fn spanning_match(&self, span: &Range<usize>, is_private_key: bool) -> Option<SpanningMatch> {
        let first = self.starts.partition_point(|start| *start <= span.start).saturating_sub(1);
        let last = self.starts.partition_point(|start| *start < span.end).saturating_sub(1);
        let first = if span.start >= self.end_of(first) { first + 1 } else { first };
        (first < last).then(|| SpanningMatch {
            first,
            from: span.start.saturating_sub(self.starts[first]),
            last,
            to: span.end.min(self.end_of(last)) - self.starts[last],
            is_normalized: self.is_normalized,
            is_private_key,
        })
    }
}

/// A match over several pieces: from an offset in the first to an offset in the last.
#[derive(Debug)]
struct SpanningMatch {
    first: usize,
    from: usize,
    last: usize,
    to: usize,
    is_normalized: bool,
    is_private_key: bool,
}

/// The words of the first and the last line of a private key: `-----BEGIN RSA PRIVATE KEY-----`.
const WORDS_AROUND_KEY: usize = 8;
/// The fewest bytes of a line of a key, on average. Lines have 64; the words of sentences have far fewer.
const KEY_LINE_BYTES: usize = 16;

/// Returns true for a private key with its end. Sentences between such lines are no key.
fn is_private_key(text: &str) -> bool {
    let is_whole = text.starts_with("-----BEGIN") && text.ends_with("-----") && text.contains("-----END");
    is_whole && text.split_whitespace().count() <= WORDS_AROUND_KEY + text.len() / KEY_LINE_BYTES
}
