//! Every string, name and number of one text.

use std::ops::Range;

use super::builtin::{Hint, Source};
use super::run::{Piece, Run};
use super::text::Views;
use super::tokens::{Token, Tokens, content};
use super::{CompiledFilters, number};
use crate::decision::{Question, QuestionKind};
use crate::guardrail::FilterAction;

/// What a node of a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NodeKind {
    /// The name of a member.
    Key,
    /// A string that is a value.
    String,
    /// A number.
    Number,
    /// The whole of a text that is no JSON.
    Text,
}

/// Something that holds text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    /// With its quotes.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Where the object begins that a name stands in.
    pub(super) object: usize,
}

impl Node {
    /// The whole of a text.
    pub(super) fn nowhere() -> Self {
        Self { kind: NodeKind::Text, start: 0, end: 0, object: 0 }
    }

    /// What is in it.
    pub(super) fn content(&self) -> Range<usize> {
        match self.kind {
            NodeKind::Key | NodeKind::String => content(self.start..self.end),
            NodeKind::Number | NodeKind::Text => self.start..self.end,
        }
    }
}

/// A match that is to be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redaction {
    pub(super) node: Node,
    pub(super) span: Range<usize>,
    pub(super) filter: usize,
}

/// How often a filter matched, and where first.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) count: u32,
    pub(super) first: Option<Node>,
}

/// What was found in one text.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The first match that blocks, and where.
    pub(super) block: Option<(usize, Node)>,
    pub(super) redactions: Vec<Redaction>,
    /// For each filter that redacts or flags.
    pub(super) tallies: Vec<Tally>,
    /// Where the names begin in which something was found.
    pub(super) keys: Vec<usize>,
}

impl Found {
    pub(super) fn block_at(&mut self, filter: usize, node: Node) {
        if self.block.is_none_or(|(_, first)| node.start < first.start) {
            self.block = Some((filter, node));
        }
    }

    pub(super) fn count(&mut self, filter: usize, node: Node) {
        if let Some(tally) = self.tallies.get_mut(filter) {
            tally.count = tally.count.saturating_add(1);
            if tally.first.is_none_or(|first| node.start < first.start) {
                tally.first = Some(node);
            }
        }
    }
}

/// What the words of a text are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form<'q> {
    /// JSON of the caller's.
    Json,
    /// The object of these questions. The words that make up a question are ours and are not looked at.
    Questions(&'q [Question]),
    /// No JSON.
    Text,
}

/// An array or object that is open.
struct Frame<'t> {
    is_object: bool,
    start: usize,
    /// How many members or elements were begun.
    count: usize,
    /// The member that comes next: its name, what that says, and whether its value is one of our words.
    name: &'t str,
    hint: Hint,
    is_ours: bool,
    /// The strings in it.
    run: Run<'t>,
    /// The strings named `text` or `content` in objects that are elements of it.
    columns: Run<'t>,
}

/// Looks through a text.
pub(super) struct Scan<'f, 't> {
    filters: &'f CompiledFilters,
    text: &'t str,
    form: Form<'f>,
    /// True where what stands in for earlier matches is nobody's match.
    is_again: bool,
    wants_hints: bool,
    found: Found,
    hits: Vec<(usize, Range<usize>)>,
}

impl<'f, 't> Scan<'f, 't> {
    /// `again`: the text has been redacted before.
    pub(super) fn of(filters: &'f CompiledFilters, text: &'t str, form: Form<'f>, again: bool) -> Found {
        let found = Found { tallies: vec![Tally::default(); filters.filters.len()], ..Found::default() };
        let wants_hints = filters.wants_hints();
        let mut scan = Self { filters, text, form, is_again: again, wants_hints, found, hits: Vec::new() };
        if let Form::Text = form {
            let node = Node { kind: NodeKind::Text, start: 0, end: text.len(), object: 0 };
            scan.leaf(node, &Views::of_text(text), Hint::None);
        } else {
            scan.walk();
        }
        scan.found
    }

    fn walk(&mut self) {
        let text = self.text;
        let mut frames: Vec<Frame<'t>> = Vec::new();
        for (token, span) in Tokens::of(text) {
            if !matches!(token, Token::Key | Token::Close)
                && let Some(frame) = frames.last_mut()
                && !frame.is_object
            {
                frame.count += 1;
            }
            match token {
                Token::Object | Token::Array => frames.push(Frame {
                    is_object: token == Token::Object,
                    start: span.start,
                    count: 0,
                    name: "",
                    hint: Hint::None,
                    is_ours: false,
                    run: Run::default(),
                    columns: Run::default(),
                }),
                Token::Close => {
                    if let Some(mut frame) = frames.pop() {
                        frame.run.flush(self.filters, text, &mut self.found, self.is_again);
                        frame.columns.flush(self.filters, text, &mut self.found, self.is_again);
                    }
                }
                Token::Key => self.key(&mut frames, span),
                Token::String => self.string(&mut frames, span),
                Token::Number => {
                    let hint = frames.last().map_or(Hint::None, |frame| frame.hint);
                    let node = Node { kind: NodeKind::Number, start: span.start, end: span.end, object: 0 };
                    self.leaf(node, &Views::of_json(&text[span.clone()], span.start), hint);
                    self.moved(node, hint);
                }
                Token::Word => {}
            }
        }
    }

    fn key(&mut self, frames: &mut [Frame<'t>], span: Range<usize>) {
        let is_ours = self.is_ours(frames, &self.text[content(span.clone())]);
        let depth = frames.len();
        let is_criteria = depth > 1 && frames[depth - 2].name == "criteria";
        let Some(frame) = frames.last_mut() else { return };
        frame.count += 1;
        frame.name = &self.text[content(span.clone())];
        frame.is_ours = is_ours && frame.name == "type";
        frame.hint = Hint::None;
        if is_ours {
            return;
        }
        let node = Node { kind: NodeKind::Key, start: span.start, end: span.end, object: frame.start };
        let views = Views::of_json(frame.name, span.start + 1);
        // The names of questions and options say what is asked, not what a value is.
        let asks = depth < 3 || depth == 3 && is_criteria;
        if self.wants_hints && !(matches!(self.form, Form::Questions(_)) && asks) {
            frame.hint = Hint::of(&views.looks().text);
        }
        self.leaf(node, &views, Hint::None);
    }

    /// True where a name is a word of the form of questions.
    fn is_ours(&self, frames: &[Frame<'t>], name: &str) -> bool {
        let Form::Questions(questions) = self.form else { return false };
        match frames {
            [_, _] => matches!(name, "type" | "instructions" | "criteria"),
            [all, question, _] => {
                let kind = questions.get(all.count.wrapping_sub(1)).map(|question| &question.kind);
                matches!(kind, Some(QuestionKind::Noul { .. }))
                    && question.name == "criteria"
                    && matches!(name, "true" | "false")
            }
            _ => false,
        }
    }

    fn string(&mut self, frames: &mut [Frame<'t>], span: Range<usize>) {
        let (hint, is_ours) = frames.last().map_or((Hint::None, false), |frame| (frame.hint, frame.is_ours));
        if is_ours {
            return;
        }
        let node = Node { kind: NodeKind::String, start: span.start, end: span.end, object: 0 };
        let views = Views::of_json(&self.text[content(span.clone())], span.start + 1);
        self.leaf(node, &views, hint);
        let (filters, text, again) = (self.filters, self.text, self.is_again);
        match frames {
            [.., above, frame] => {
                if !above.is_object && frame.is_object && matches!(frame.name, "text" | "content") {
                    above.columns.add(Piece::of(node, views.clone()), filters, text, &mut self.found, again);
                }
                frame.run.add(Piece::of(node, views), filters, text, &mut self.found, again);
            }
            [frame] => frame.run.add(Piece::of(node, views), filters, text, &mut self.found, again),
            [] => {}
        }
    }

    /// One node for itself.
    fn leaf(&mut self, node: Node, views: &Views<'_>, hint: Hint) {
        let source = if node.kind == NodeKind::Number { Source::Number } else { Source::String };
        let mut hits = std::mem::take(&mut self.hits);
        hits.clear();
        let within = node.content();
        let (filters, text) = (self.filters, self.text);
        filters.each(views, source, hint, &mut |filter, span| {
            let start = text.floor_char_boundary(span.start).max(within.start);
            let end = text.ceil_char_boundary(span.end).min(within.end);
            match hits.last_mut() {
                // Matches that touch are one, so that a pattern of one letter leaves no list as long as the text.
                Some((last, before)) if *last == filter && before.end == start => before.end = before.end.max(end),
                _ if start < end => hits.push((filter, start..end)),
                _ => {}
            }
        });
        if !hits.is_empty() {
            self.record(node, &mut hits);
        }
        self.hits = hits;
    }

    /// A number whose point an exponent moves, as it is without one. A match takes all of it.
    fn moved(&mut self, node: Node, hint: Hint) {
        let Some(number) = number::written_out(&self.text[node.content()]) else { return };
        let (filters, known) = (self.filters, std::mem::take(&mut self.hits));
        let mut hits = Vec::new();
        filters.each(&Views::verbatim(&number), Source::Number, hint, &mut |filter, _| {
            if !known.iter().any(|(known, _)| *known == filter) {
                hits.push((filter, node.content()));
            }
        });
        self.hits = known;
        if !hits.is_empty() {
            self.record(node, &mut hits);
        }
    }

    fn record(&mut self, node: Node, hits: &mut Vec<(usize, Range<usize>)>) {
        unite(hits);
        let action = |filter: usize| self.filters.filters.get(filter).map(|filter| filter.action);
        let is_told = |filter: usize, span: &Range<usize>| {
            let is_exempt = action(filter) == Some(FilterAction::Redact) || self.is_again;
            !(is_exempt && self.filters.is_placeholder(self.text, span, node.kind == NodeKind::Key))
        };
        hits.retain(|(filter, span)| is_told(*filter, span));
        if hits.is_empty() {
            return;
        }
        if node.kind == NodeKind::Key {
            self.found.keys.push(node.start);
        }
        let blocks = hits.iter().filter(|(filter, _)| action(*filter) == Some(FilterAction::Block));
        if let Some((filter, _)) = blocks.min_by_key(|(filter, span)| (span.start, *filter)) {
            self.found.block_at(*filter, node);
        }
        let mut redacted: Vec<Range<usize>> = Vec::new();
        for (filter, span) in hits.iter().filter(|(filter, _)| action(*filter) == Some(FilterAction::Redact)) {
            self.found.count(*filter, node);
            redacted.push(span.clone());
            self.found.redactions.push(Redaction { node, span: span.clone(), filter: *filter });
        }
        redacted.sort_unstable_by_key(|span| (span.start, span.end));
        // Ends in order as well, so that one look finds whether anything overlaps.
        let mut most = 0;
        for span in &mut redacted {
            most = most.max(span.end);
            span.end = most;
        }
        for (filter, span) in hits.iter().filter(|(filter, _)| action(*filter) == Some(FilterAction::Flag)) {
            let before = redacted.partition_point(|redacted| redacted.start < span.end);
            let is_redacted = before.checked_sub(1).is_some_and(|last| redacted[last].end > span.start);
            if !is_redacted {
                self.found.count(*filter, node);
            }
        }
    }
}

/// Puts matches of one filter that overlap together.
fn unite(hits: &mut Vec<(usize, Range<usize>)>) {
    hits.sort_unstable_by_key(|(filter, span)| (*filter, span.start, span.end));
    hits.dedup_by(|next, kept| {
        let overlaps = next.0 == kept.0 && next.1.start < kept.1.end;
        if overlaps {
            kept.1.end = kept.1.end.max(next.1.end);
        }
        overlaps
    });
}
