//! Scans every string, name and number of one text.

use std::borrow::Cow;
use std::ops::Range;

use super::attachment::Media;
use super::builtin::{Hint, Source};
use super::compile::Placeholder;
use super::found::{Found, Node, NodeKind};
use super::run::Run;
use super::search::{Pass, Prefilter, Search};
use super::spans::Spans;
use super::text;
use super::text::Views;
use crate::json::{Token, Tokens, string_content};
use crate::question::{Question, QuestionKind};
use crate::usage::FilterAction;

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

/// The most numbered names of a text that are checked again at the end of their object. Matches in further ones are not
/// exempt.
const MAX_NUMBERED: usize = 16 << 10;

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
    run: Run,
    /// The strings named `text` or `content` in objects that are elements of this array.
    columns: Run,
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

/// Returns the search with the filters that may match one of the texts, which have these formats.
pub(super) fn select<'f, 't>(search: &Search<'f>, texts: impl Iterator<Item = (&'t str, Form<'t>)>) -> Search<'f> {
    let mut prefilter = Prefilter::new(search);
    let mut has_medium = false;
    for (text, form) in texts {
        let pass = Pass { search, text, is_rescan: false, found: Found::default(), prefilter: Some(&mut prefilter) };
        has_medium |= Scan::run_pass(pass, form).medium.is_some();
    }
    prefilter.finish(search, has_medium)
}

/// A scan of one text.
pub(super) struct Scan<'p> {
    pass: Pass<'p>,
    form: Form<'p>,
    media: Media,
    /// The filters with a match in the current node.
    matched: Vec<usize>,
    /// The first match in the current node by a filter that blocks: its start, and the filter.
    block: Option<(usize, usize)>,
    /// The number of numbered names so far.
    numbered: usize,
}

impl<'p> Scan<'p> {
    /// Scans a text. `is_rescan`: the text was redacted before. The findings are incomplete if the search is cancelled.
    pub(super) fn run(search: &'p Search<'_>, text: &'p str, form: Form<'p>, is_rescan: bool) -> Found {
        if search.finds_nothing() {
            return Found::default();
        }
        let found = Found::new(search.filters.count(), text);
        Self::run_pass(Pass { search, text, is_rescan, found, prefilter: None }, form)
    }

    fn run_pass(pass: Pass<'p>, form: Form<'p>) -> Found {
        let text = pass.text;
        let media = match form {
            Form::Json(media) => media,
            Form::Questions(_) => Media::InPlainJson,
            Form::Text => Media::Ignored,
        };
        let mut scan = Self { pass, form, media, matched: Vec::new(), block: None, numbered: 0 };
        if let Form::Text = form {
            let node = Node { kind: NodeKind::Text, start: 0, end: text.len(), object: 0 };
            scan.scan_node(node, &Views::of_text(text), Hint::None, None);
        } else {
            scan.walk();
        }
        scan.pass.found
    }

    fn walk(&mut self) {
        let text = self.pass.text;
        let mut frames: Vec<Frame<'p>> = Vec::new();
        for (token, span) in Tokens::new(text).without_separators() {
            if self.pass.search.is_cancelled() {
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

    fn close(&mut self, mut frame: Frame<'p>) {
        frame.run.flush(&mut self.pass);
        frame.columns.flush(&mut self.pass);
        // A redaction numbers names from 2 up to the number of members.
        for name in frame.numbered.drain(..).filter(|name| name.number > frame.count) {
            self.add_match(name.node, name.filter, name.span);
            self.end_node(name.node);
        }
    }

    fn scan_key(&mut self, frames: &mut [Frame<'p>], span: Range<usize>) {
        let depth = frames.len();
        let views = Views::of_json(&self.pass.text[string_content(span.clone())], span.start + 1);
        let is_keyword = self.is_keyword(frames, &views.plain.text);
        let is_criteria = depth > 1 && frames[depth - 2].name == "criteria";
        let Some(frame) = frames.last_mut() else { return };
        frame.count += 1;
        frame.name = views.plain.text.clone();
        frame.is_keyword = is_keyword && frame.name == "type";
        frame.is_column = false;
        frame.hint = NameHint::default();
        if self.media.is_unknown_member(depth, &frame.name) {
            let node = Node { kind: NodeKind::String, start: frame.start, end: frame.start, object: 0 };
            self.pass.found.medium_at(node);
        }
        if is_keyword {
            return;
        }
        frame.is_column = matches!(&*views.normalized_or_plain().text, "text" | "content");
        let node = Node { kind: NodeKind::Key, start: span.start, end: span.end, object: frame.start };
        // The names of questions and options are part of the question and give no hint about values.
        let asks = depth < 3 || depth == 3 && is_criteria;
        if !(matches!(self.form, Form::Questions(_)) && asks) {
            let own = Hint::from_name(&views.normalized_or_plain().text);
            frame.hint = if own == Hint::None { frame.inherited } else { NameHint { hint: own, distance: 0 } };
        }
        self.scan_node(node, &views, Hint::None, Some(frame));
    }

    /// Returns true if a name is a keyword of the question format.
    fn is_keyword(&self, frames: &[Frame<'p>], name: &str) -> bool {
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

    fn scan_string(&mut self, frames: &mut [Frame<'p>], span: Range<usize>) {
        let (hint, is_keyword) = frames.last().map_or((Hint::None, false), |frame| (frame.hint.hint, frame.is_keyword));
        if is_keyword {
            return;
        }
        let node = Node { kind: NodeKind::String, start: span.start, end: span.end, object: 0 };
        let views = Views::of_json(&self.pass.text[string_content(span.clone())], span.start + 1);
        self.find_medium(frames, node, &views.plain.text);
        self.scan_node(node, &views, hint, None);
        drop(views);
        if let [.., above, frame] = frames
            && !above.is_object
            && frame.is_object
            && frame.is_column
        {
            above.columns.add(node.content(), &mut self.pass);
        }
        if let Some(frame) = frames.last_mut() {
            frame.run.add(node.content(), &mut self.pass);
        }
    }

    /// Records a string that is a medium or marks its object as one.
    fn find_medium(&mut self, frames: &[Frame<'p>], node: Node, value: &str) {
        if self.media.is_medium(value) {
            self.pass.found.medium_at(node);
        }
        if let Some(frame) = frames.last().filter(|frame| frame.is_object)
            && self.media.makes_medium(frames.len(), &frame.name, value)
        {
            self.pass.found.medium_at(Node { start: frame.start, ..node });
        }
    }

    /// Scans a single node. `frame` is the object of a name.
    fn scan_node(&mut self, node: Node, views: &Views<'_>, hint: Hint, mut frame: Option<&mut Frame<'p>>) {
        if let Some(prefilter) = &mut self.pass.prefilter {
            return prefilter.add(self.pass.search, views, hint);
        }
        let source = if node.kind == NodeKind::Number { Source::Number } else { Source::String };
        let (search, text, within) = (self.pass.search, self.pass.text, node.content());
        let prepared = search.prepare(views, (source, &[]), hint);
        self.matched.clear();
        for filter in &search.selected {
            if search.is_cancelled() {
                return;
            }
            let mut spans = Spans::new(within.clone());
            search.each(&prepared, *filter, &mut |span| {
                let start = text.floor_char_boundary(span.start).max(within.start);
                let end = text.ceil_char_boundary(span.end).min(within.end);
                if start < end {
                    spans.add(start..end);
                }
            });
            if !spans.is_empty() {
                self.matched.push(*filter);
                self.record(node, *filter, &spans, frame.as_deref_mut());
            }
        }
        self.end_node(node);
    }

    /// Scans the expanded form of a number with an exponent. A match takes the whole number.
    fn scan_expanded_number(&mut self, node: Node, hint: Hint) {
        let Some(number) = text::expand_exponent(&self.pass.text[node.content()]) else { return };
        let (search, views) = (self.pass.search, Views::verbatim(&number));
        if let Some(prefilter) = &mut self.pass.prefilter {
            return prefilter.add(search, &views, hint);
        }
        let prepared = search.prepare(&views, (Source::Number, &[]), hint);
        for filter in &search.selected {
            if search.is_cancelled() {
                return;
            }
            let mut is_found = false;
            search.each(&prepared, *filter, &mut |_| is_found = true);
            if is_found && !self.matched.contains(filter) {
                let mut spans = Spans::new(node.content());
                spans.add(node.content());
                self.record(node, *filter, &spans, None);
            }
        }
        self.end_node(node);
    }

    /// Records the matches of a filter in a node, except those in placeholders of earlier redactions.
    fn record(&mut self, node: Node, filter: usize, spans: &Spans, mut frame: Option<&mut Frame<'p>>) {
        let (search, text) = (self.pass.search, self.pass.text);
        let is_exempt = self.pass.is_rescan || search.filters.action(filter) == Some(FilterAction::Redact);
        let end = if node.kind == NodeKind::Key { Some(node.content().end) } else { None };
        for span in spans.merged() {
            match search.filters.placeholder_at(text, &span, end).filter(|_| is_exempt) {
                None => self.add_match(node, filter, span),
                Some(Placeholder::Whole) => {}
                Some(Placeholder::Numbered(number)) => match &mut frame {
                    Some(frame) if self.numbered < MAX_NUMBERED => {
                        self.numbered += 1;
                        frame.numbered.push(NumberedName { node, filter, span, number });
                    }
                    Some(_) => self.add_match(node, filter, span),
                    None => {}
                },
            }
        }
    }

    /// Adds a match. Filters that redact come before filters that flag.
    fn add_match(&mut self, node: Node, filter: usize, span: Range<usize>) {
        let found = &mut self.pass.found;
        if node.kind == NodeKind::Key {
            found.keys.insert(node.start);
        }
        match self.pass.search.filters.action(filter) {
            Some(FilterAction::Block) => {
                let first = (span.start, filter);
                self.block = Some(self.block.map_or(first, |known| known.min(first)));
            }
            Some(FilterAction::Redact) => {
                found.count(filter, node);
                found.redact(filter, node, span);
            }
            Some(FilterAction::Flag) if !found.marks.overlaps(span) => found.count(filter, node),
            Some(FilterAction::Flag) | None => {}
        }
    }

    /// Notes the first match in a node that blocks.
    fn end_node(&mut self, node: Node) {
        if let Some((_, filter)) = self.block.take() {
            self.pass.found.block_at(filter, node);
        }
    }
}
