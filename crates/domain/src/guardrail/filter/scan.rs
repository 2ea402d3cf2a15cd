//! Scans every string, name and number of one text.

use std::borrow::Cow;
use std::ops::Range;

use super::builtin::{Hint, Source};
use super::compile::{Placeholder, Search};
use super::media::Media;
use super::number;
use super::run::{Piece, Run};
use super::text::Views;
use crate::json::{Token, Tokens, string_content};
use crate::question::{Question, QuestionKind};
use crate::usage::FilterAction;

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NodeKind {
    /// The name of a member.
    Key,
    /// A string value.
    String,
    /// A number.
    Number,
    /// A whole text that is not JSON.
    Text,
}

/// A name or value with text in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    /// The start, including the quote.
    pub(super) start: usize,
    pub(super) end: usize,
    /// The start of the object that holds a name.
    pub(super) object: usize,
}

impl Node {
    /// Returns a node for a whole text, without a position.
    pub(super) fn whole_text() -> Self {
        Self { kind: NodeKind::Text, start: 0, end: 0, object: 0 }
    }

    /// Returns the range of the content, without quotes.
    pub(super) fn content(&self) -> Range<usize> {
        match self.kind {
            NodeKind::Key | NodeKind::String => string_content(self.start..self.end),
            NodeKind::Number | NodeKind::Text => self.start..self.end,
        }
    }
}

/// A match to replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redaction {
    pub(super) node: Node,
    pub(super) span: Range<usize>,
    pub(super) filter: usize,
}

/// The number of matches of a filter, and the first of them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MatchCount {
    pub(super) count: u32,
    pub(super) first: Option<Node>,
}

/// The findings in one text.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The first match of a filter that blocks.
    pub(super) block: Option<(usize, Node)>,
    pub(super) redactions: Vec<Redaction>,
    /// The matches of each filter that redacts or flags.
    pub(super) match_counts: Vec<MatchCount>,
    /// The start positions of names with a match.
    pub(super) keys: Vec<usize>,
    /// The first medium that no filter can read.
    pub(super) medium: Option<Node>,
}

impl Found {
    pub(super) fn block_at(&mut self, filter: usize, node: Node) {
        if self.block.is_none_or(|(_, first)| node.start < first.start) {
            self.block = Some((filter, node));
        }
    }

    fn medium_at(&mut self, node: Node) {
        if self.medium.is_none_or(|first| node.start < first.start) {
            self.medium = Some(node);
        }
    }

    pub(super) fn count(&mut self, filter: usize, node: Node) {
        if let Some(matches) = self.match_counts.get_mut(filter) {
            matches.count = matches.count.saturating_add(1);
            if matches.first.is_none_or(|first| node.start < first.start) {
                matches.first = Some(node);
            }
        }
    }
}

/// The format of a text.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form<'q> {
    /// JSON of the caller, with the rule for media in it.
    Json(Media),
    /// The object of these questions. The keywords of the question format are not scanned.
    Questions(&'q [Question]),
    /// Plain text.
    Text,
}

/// The number of nested arrays and objects into which the hint of a member's name reaches.
const HINT_REACH: u8 = 8;
/// The number of digits of the shortest number that a hint from outside its object or array makes a secret. Shorter
/// numbers are settings, such as a minimum length.
const MIN_HINTED_NUMBER: usize = 4;

/// The hint of the member names above a value.
#[derive(Debug, Clone, Copy, Default)]
struct NameHint {
    hint: Hint,
    /// The number of arrays and objects between the name and the value.
    distance: u8,
}

impl NameHint {
    /// Returns the hint for the values inside a value that has this hint.
    fn inside(self) -> Self {
        if self.distance < HINT_REACH { Self { distance: self.distance + 1, ..self } } else { Self::default() }
    }

    /// Returns the hint for a number of that many bytes.
    fn for_number(self, bytes: usize) -> Hint {
        let is_setting = self.hint == Hint::Secret && self.distance > 0 && bytes < MIN_HINTED_NUMBER;
        if is_setting { Hint::None } else { self.hint }
    }
}

/// A match in a numbered name, which is exempt if its object has at least `number` members.
struct NumberedName {
    node: Node,
    filter: usize,
    span: Range<usize>,
    /// The number that makes the name unique.
    number: usize,
}

/// An open array or object.
struct Frame<'t> {
    is_object: bool,
    start: usize,
    /// The number of members or elements so far.
    count: usize,
    /// The next member: its decoded name, the hint of the name, and whether its value is a keyword of the question
    /// format.
    name: Cow<'t, str>,
    hint: NameHint,
    is_keyword: bool,
    /// True if the next member is the `text` or `content` of a part.
    is_column: bool,
    /// The hint from the names above this array or object.
    inherited: NameHint,
    /// The strings in it.
    run: Run<'t>,
    /// The strings named `text` or `content` in objects that are elements of this array.
    columns: Run<'t>,
    /// Names that an earlier redaction may have numbered.
    numbered: Vec<NumberedName>,
}

impl Frame<'_> {
    fn open(is_object: bool, start: usize, inherited: NameHint) -> Self {
        Self {
            is_object,
            start,
            count: 0,
            name: Cow::Borrowed(""),
            hint: if is_object { NameHint::default() } else { inherited },
            is_keyword: false,
            is_column: false,
            inherited,
            run: Run::default(),
            columns: Run::default(),
            numbered: Vec::new(),
        }
    }
}

/// A scan of one text.
pub(super) struct Scan<'f, 't> {
    filters: Search<'f>,
    text: &'t str,
    form: Form<'f>,
    /// True if placeholders of earlier redactions are exempt.
    is_rescan: bool,
    media: Media,
    wants_hints: bool,
    found: Found,
    hits: Vec<(usize, Range<usize>)>,
}

impl<'f, 't> Scan<'f, 't> {
    /// Scans a text. `again`: the text was redacted before. The findings are incomplete if the search is cancelled.
    pub(super) fn run(filters: Search<'f>, text: &'t str, form: Form<'f>, again: bool) -> Found {
        let found = Found { match_counts: vec![MatchCount::default(); filters.filters.len()], ..Found::default() };
        let wants_hints = filters.wants_hints();
        let media = match form {
            Form::Json(media) => media,
            Form::Questions(_) => Media::InPlainJson,
            Form::Text => Media::Ignored,
        };
        let mut scan = Self { filters, text, form, is_rescan: again, media, wants_hints, found, hits: Vec::new() };
        if let Form::Text = form {
            let node = Node { kind: NodeKind::Text, start: 0, end: text.len(), object: 0 };
            scan.scan_node(node, &Views::of_text(text), Hint::None, None);
        } else {
            scan.walk();
        }
        // Numbered names are added at the end of their object, out of order.
        scan.found.keys.sort_unstable();
        scan.found
    }

    fn walk(&mut self) {
        let text = self.text;
        let mut frames: Vec<Frame<'t>> = Vec::new();
        for (token, span) in Tokens::new(text).without_separators() {
            if self.filters.is_cancelled() {
                return;
            }
            if !matches!(token, Token::Name | Token::Close)
                && let Some(frame) = frames.last_mut()
                && !frame.is_object
            {
                frame.count += 1;
            }
            match token {
                Token::Object | Token::Array => {
                    let inherited = frames.last().map(|frame| frame.hint.inside()).unwrap_or_default();
                    frames.push(Frame::open(token == Token::Object, span.start, inherited));
                }
                Token::Close => {
                    if let Some(frame) = frames.pop() {
                        self.close(frame);
                    }
                }
                Token::Name => self.scan_key(&mut frames, span),
                Token::String => self.scan_string(&mut frames, span),
                Token::Number => {
                    let hint = frames.last().map(|frame| frame.hint).unwrap_or_default().for_number(span.len());
                    let node = Node { kind: NodeKind::Number, start: span.start, end: span.end, object: 0 };
                    self.scan_node(node, &Views::of_json(&text[span.clone()], span.start), hint, None);
                    self.scan_expanded_number(node, hint);
                }
                Token::Word | Token::Comma | Token::Colon => {}
            }
        }
    }

    fn close(&mut self, mut frame: Frame<'t>) {
        frame.run.flush(self.filters, self.text, &mut self.found, self.is_rescan);
        frame.columns.flush(self.filters, self.text, &mut self.found, self.is_rescan);
        // A redaction numbers names from 2 up to the number of members.
        for name in frame.numbered.drain(..).filter(|name| name.number > frame.count) {
            self.add_matches(name.node, &[(name.filter, name.span)]);
        }
    }

    fn scan_key(&mut self, frames: &mut [Frame<'t>], span: Range<usize>) {
        let depth = frames.len();
        let views = Views::of_json(&self.text[string_content(span.clone())], span.start + 1);
        let is_keyword = self.is_keyword(frames, &views.plain.text);
        let is_criteria = depth > 1 && frames[depth - 2].name == "criteria";
        let Some(frame) = frames.last_mut() else { return };
        frame.count += 1;
        frame.name = views.plain.text.clone();
        frame.is_keyword = is_keyword && frame.name == "type";
        frame.is_column = false;
        frame.hint = NameHint::default();
        if self.media.is_unknown_member(depth, &frame.name) {
            self.found.medium_at(Node { kind: NodeKind::String, start: frame.start, end: frame.start, object: 0 });
        }
        if is_keyword {
            return;
        }
        frame.is_column = matches!(&*views.normalized_or_plain().text, "text" | "content");
        let node = Node { kind: NodeKind::Key, start: span.start, end: span.end, object: frame.start };
        // The names of questions and options are part of the question and give no hint about values.
        let asks = depth < 3 || depth == 3 && is_criteria;
        if self.wants_hints && !(matches!(self.form, Form::Questions(_)) && asks) {
            let own = Hint::from_name(&views.normalized_or_plain().text);
            frame.hint = if own == Hint::None { frame.inherited } else { NameHint { hint: own, distance: 0 } };
        }
        self.scan_node(node, &views, Hint::None, Some(frame));
    }

    /// Returns true if a name is a keyword of the question format.
    fn is_keyword(&self, frames: &[Frame<'t>], name: &str) -> bool {
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

    fn scan_string(&mut self, frames: &mut [Frame<'t>], span: Range<usize>) {
        let (hint, is_keyword) = frames.last().map_or((Hint::None, false), |frame| (frame.hint.hint, frame.is_keyword));
        if is_keyword {
            return;
        }
        let node = Node { kind: NodeKind::String, start: span.start, end: span.end, object: 0 };
        let views = Views::of_json(&self.text[string_content(span.clone())], span.start + 1);
        self.find_medium(frames, node, &views.plain.text);
        self.scan_node(node, &views, hint, None);
        let (filters, text, again) = (self.filters, self.text, self.is_rescan);
        match frames {
            [.., above, frame] => {
                if !above.is_object && frame.is_object && frame.is_column {
                    above.columns.add(Piece::new(node, views.clone()), filters, text, &mut self.found, again);
                }
                frame.run.add(Piece::new(node, views), filters, text, &mut self.found, again);
            }
            [frame] => frame.run.add(Piece::new(node, views), filters, text, &mut self.found, again),
            [] => {}
        }
    }

    /// Records a string that is a medium or marks its object as one.
    fn find_medium(&mut self, frames: &[Frame<'t>], node: Node, value: &str) {
        if self.media.is_medium(value) {
            self.found.medium_at(node);
        }
        if let Some(frame) = frames.last().filter(|frame| frame.is_object)
            && self.media.makes_medium(frames.len(), &frame.name, value)
        {
            self.found.medium_at(Node { start: frame.start, ..node });
        }
    }

    /// Scans a single node. `frame` is the object of a name.
    fn scan_node(&mut self, node: Node, views: &Views<'_>, hint: Hint, frame: Option<&mut Frame<'t>>) {
        let source = if node.kind == NodeKind::Number { Source::Number } else { Source::String };
        let mut hits = std::mem::take(&mut self.hits);
        hits.clear();
        let within = node.content();
        let (filters, text) = (self.filters, self.text);
        filters.each(views, source, hint, &mut |filter, span| {
            let start = text.floor_char_boundary(span.start).max(within.start);
            let end = text.ceil_char_boundary(span.end).min(within.end);
            match hits.last_mut() {
                // Adjacent matches are merged, so that a one-letter pattern does not make a list as long as the text.
                Some((last, before)) if *last == filter && before.end == start => before.end = before.end.max(end),
                _ if start < end => hits.push((filter, start..end)),
                _ => {}
            }
        });
        if !hits.is_empty() {
            self.record(node, &mut hits, frame);
        }
        self.hits = hits;
    }

    /// Scans the expanded form of a number with an exponent. A match takes the whole number.
    fn scan_expanded_number(&mut self, node: Node, hint: Hint) {
        let Some(number) = number::expand_exponent(&self.text[node.content()]) else { return };
        let (filters, known) = (self.filters, std::mem::take(&mut self.hits));
        let mut hits = Vec::new();
        filters.each(&Views::verbatim(&number), Source::Number, hint, &mut |filter, _| {
            if !known.iter().any(|(known, _)| *known == filter) {
                hits.push((filter, node.content()));
            }
        });
        self.hits = known;
        if !hits.is_empty() {
            self.record(node, &mut hits, None);
        }
    }

    /// Records the matches in a node, except those in placeholders of earlier redactions.
    fn record(&mut self, node: Node, hits: &mut Vec<(usize, Range<usize>)>, mut frame: Option<&mut Frame<'t>>) {
        merge_overlaps(hits);
        let (filters, text, is_rescan) = (self.filters, self.text, self.is_rescan);
        let end = if node.kind == NodeKind::Key { Some(node.content().end) } else { None };
        hits.retain(|(filter, span)| {
            let is_exempt = is_rescan || filters.action(*filter) == Some(FilterAction::Redact);
            match filters.placeholder_at(text, span, end).filter(|_| is_exempt) {
                None => true,
                Some(Placeholder::Whole) => false,
                Some(Placeholder::Numbered(number)) => {
                    if let Some(frame) = &mut frame {
                        let (filter, span) = (*filter, span.clone());
                        frame.numbered.push(NumberedName { node, filter, span, number });
                    }
                    false
                }
            }
        });
        if !hits.is_empty() {
            self.add_matches(node, hits);
        }
    }

    fn add_matches(&mut self, node: Node, hits: &[(usize, Range<usize>)]) {
        let action = |filter: usize| self.filters.action(filter);
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
        // The ends are made ascending as well, so that one binary search finds any overlap.
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

/// Merges overlapping matches of one filter.
fn merge_overlaps(hits: &mut Vec<(usize, Range<usize>)>) {
    hits.sort_unstable_by_key(|(filter, span)| (*filter, span.start, span.end));
    hits.dedup_by(|next, kept| {
        let overlaps = next.0 == kept.0 && next.1.start < kept.1.end;
        if overlaps {
            kept.1.end = kept.1.end.max(next.1.end);
        }
        overlaps
    });
}
