//! Replaces matches with placeholders. Everything outside of a match stays byte for byte.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use super::CompiledFilters;
use super::found::{Node, NodeKind};
use super::scan::Form;
use super::spans::{Bits, Marks, Redaction};
use super::text::Views;
use crate::json::{Token, Tokens, string_content};

/// The error of a redaction whose result is too large.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// The number of bytes that a text may grow beyond twice its size.
const MAX_GROWTH_BYTES: usize = 1 << 20;
/// The most bytes of the number that makes a name unique, with the space before it.
const MAX_NUMBER_BYTES: usize = 11;
/// The placeholder of a filter that does not exist.
const UNKNOWN: &str = "[REDACTED]";

/// Returns the highest size of a text after all its redactions.
pub(super) fn max_bytes(text: &str) -> usize {
    text.len().saturating_mul(2).saturating_add(MAX_GROWTH_BYTES)
}

/// Returns the text with each match replaced by its placeholder.
///
/// # Errors
/// Fails if the result would be larger than `max_bytes`, before it is written.
pub(super) fn rewrite(
    filters: &CompiledFilters,
    text: &str,
    form: Form<'_>,
    marks: &Marks,
    max_bytes: usize,
) -> Result<String, TooLarge> {
    let mut bytes = text.len();
    for Redaction { filter, span } in marks.within(0..text.len()) {
        bytes = bytes - span.len() + placeholder(filters, filter).len();
    }
    let is_json = !matches!(form, Form::Text);
    let mut names = 0;
    if is_json {
        for (token, _) in Tokens::new(text).without_separators().filter(|(_, span)| has_match(marks, span)) {
            names += usize::from(token == Token::Name);
            // A name may get a number, and a number becomes a string.
            bytes += if token == Token::Name { MAX_NUMBER_BYTES } else { 2 };
        }
    }
    if bytes > max_bytes || marks.is_full() {
        return Err(TooLarge);
    }
    let mut writer = Writer { filters, text, marks, out: String::with_capacity(bytes), copied: 0 };
    if is_json {
        let names = if names > 0 { Names::collect(filters, text, marks) } else { Names::default() };
        writer.write_json(names);
    } else {
        writer.write_content(0..text.len());
    }
    writer.out.push_str(&text[writer.copied..]);
    Ok(writer.out)
}

fn has_match(marks: &Marks, span: &Range<usize>) -> bool {
    marks.within(span.clone()).next().is_some()
}

fn placeholder(filters: &CompiledFilters, filter: usize) -> &str {
    filters.filters.get(filter).map_or(UNKNOWN, |filter| filter.placeholder.as_str())
}

struct Writer<'w> {
    filters: &'w CompiledFilters,
    text: &'w str,
    marks: &'w Marks,
    out: String,
    /// The end of the text that was written so far.
    copied: usize,
}

impl Writer<'_> {
    fn write_json(&mut self, mut names: Names) {
        let mut open = Vec::new();
        for (token, span) in Tokens::new(self.text).without_separators() {
            match token {
                Token::Object | Token::Array => open.push(span.start),
                Token::Close => drop(open.pop()),
                Token::String => _ = self.write_content(string_content(span)),
                Token::Name => {
                    let content = string_content(span);
                    let from = self.out.len() + (content.start - self.copied);
                    if self.write_content(content.clone()) {
                        // The rest of the name, so that a number follows its end.
                        self.out.push_str(&self.text[self.copied..content.end]);
                        self.copied = content.end;
                        names.make_distinct(open.last().copied().unwrap_or_default(), from, &mut self.out);
                    }
                }
                Token::Number => {
                    if let Some(first) = self.marks.within(span.clone()).next() {
                        self.out.push_str(&self.text[self.copied..span.start]);
                        // A partly redacted number is not a number any more, so the placeholder becomes a string.
                        let _ = write!(self.out, "\"{}\"", placeholder(self.filters, first.filter));
                        self.copied = span.end;
                    }
                }
                Token::Word | Token::Comma | Token::Colon => {}
            }
        }
    }

    /// Writes up to the last match in a content. Returns false if there is none.
    fn write_content(&mut self, content: Range<usize>) -> bool {
        let mut is_found = false;
        for Redaction { filter, span } in self.marks.within(content) {
            self.out.push_str(&self.text[self.copied..span.start]);
            self.out.push_str(placeholder(self.filters, filter));
            self.copied = span.end;
            is_found = true;
        }
        is_found
    }
}

/// The names that a redacted name may equal: the others in its object that hold a placeholder. Names are kept by their
/// hashes, each with the start of its object, because there may be as many as bytes in the text. Two names with the
/// same hash cost a number that was not needed.
#[derive(Default)]
struct Names {
    taken: HashSet<u64>,
    /// The next free number for a name.
    next: HashMap<u64, u32>,
}

impl Names {
    fn collect(filters: &CompiledFilters, text: &str, marks: &Marks) -> Self {
        let (mut taken, mut open) = (HashSet::new(), Vec::new());
        for (token, span) in Tokens::new(text).without_separators() {
            match token {
                Token::Object | Token::Array => open.push(span.start),
                Token::Close => drop(open.pop()),
                Token::Name if !has_match(marks, &span) => {
                    let raw = &text[string_content(span)];
                    if !raw.contains(['[', '\\']) {
                        continue;
                    }
                    let name = decode_name(raw);
                    if filters.placeholders().any(|placeholder| name.contains(placeholder)) {
                        taken.insert(hash(open.last().copied().unwrap_or_default(), &name));
                    }
                }
                _ => {}
            }
        }
        Self { taken, next: HashMap::new() }
    }

    /// Appends a number to the name that begins at `from`, if the name is in use.
    fn make_distinct(&mut self, object: usize, from: usize, out: &mut String) {
        let plain = decode_name(&out[from..]);
        let of_plain = hash(object, &plain);
        if self.taken.insert(of_plain) {
            return;
        }
        let next = self.next.entry(of_plain).or_insert(2);
        while !self.taken.insert(hash(object, &format!("{plain} {next}"))) {
            *next += 1;
        }
        // Writing to a string cannot fail.
        let _ = write!(out, " {next}");
        *next += 1;
    }
}

fn hash(object: usize, name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (object, name).hash(&mut hasher);
    hasher.finish()
}

/// Decodes a name.
fn decode_name(raw: &str) -> std::borrow::Cow<'_, str> {
    Views::of_json(raw, 0).plain.text
}

/// The highest length in bytes of a name in a path.
const MAX_NAME_BYTES: usize = 64;

struct Frame {
    is_object: bool,
    /// The number of members or elements so far.
    count: usize,
    name: Range<usize>,
}

/// Returns the paths of nodes, computed in one walk. Names that begin at one of `hidden` are replaced by their index, as
/// are long names and names with special characters.
pub(super) fn paths_of_nodes(text: &str, root: &str, nodes: &[Node], hidden: &Bits) -> Vec<String> {
    let mut paths = vec![root.to_owned(); nodes.len()];
    let mut wanted: Vec<(usize, usize)> = nodes.iter().enumerate().map(|(place, node)| (node.start, place)).collect();
    wanted.retain(|(_, place)| nodes.get(*place).is_some_and(|node| node.kind != NodeKind::Text));
    wanted.sort_unstable();
    let mut wanted = wanted.into_iter().peekable();
    let mut frames: Vec<Frame> = Vec::new();
    for (token, span) in Tokens::new(text).without_separators() {
        if wanted.peek().is_none() {
            break;
        }
        if let Some(frame) = frames.last_mut() {
            match token {
                Token::Name => {
                    frame.count += 1;
                    frame.name = span.clone();
                }
                Token::Close => {}
                _ if !frame.is_object => frame.count += 1,
                _ => {}
            }
        }
        while let Some((_, place)) = wanted.next_if(|(start, _)| *start <= span.start) {
            paths[place] = write_path(text, root, &frames, token == Token::Name, hidden);
        }
        match token {
            Token::Object | Token::Array => {
                frames.push(Frame { is_object: token == Token::Object, count: 0, name: 0..0 });
            }
            Token::Close => drop(frames.pop()),
            _ => {}
        }
    }
    paths
}

fn write_path(text: &str, root: &str, frames: &[Frame], is_key: bool, hidden: &Bits) -> String {
    let mut path = root.to_owned();
    let frames = if is_key { &frames[..frames.len().saturating_sub(1)] } else { frames };
    for frame in frames {
        // Writing to a string cannot fail.
        let _ = if !frame.is_object {
            write!(path, "[{}]", frame.count.saturating_sub(1))
        } else if is_shown(text, &frame.name, hidden) {
            write!(path, ".{}", &text[string_content(frame.name.clone())])
        } else {
            write!(path, ".(key {})", frame.count)
        };
    }
    if is_key {
        path.push_str(" (key)");
    }
    path
}

fn is_shown(text: &str, name: &Range<usize>, hidden: &Bits) -> bool {
    let content = &text[string_content(name.clone())];
    !content.is_empty()
        && content.len() <= MAX_NAME_BYTES
        && content.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        && !hidden.contains(name.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_replace_hidden_and_long_names_by_index() {
        let text = r#"{"a":[{"b":1},"x"],"two words":{"c":"y"},"secret":[[],{"d":"z"}],"":true}"#;
        let node = |wanted: &str, kind: NodeKind| {
            let start = text.find(wanted).unwrap();
            Node { kind, start, end: start + wanted.len(), object: 0 }
        };
        let nodes = [
            node("\"z\"", NodeKind::String),
            node("1", NodeKind::Number),
            node("\"x\"", NodeKind::String),
            node("\"y\"", NodeKind::String),
            node("\"d\"", NodeKind::Key),
            node("\"a\"", NodeKind::Key),
            node("true", NodeKind::String),
        ];
        let mut hidden = Bits::new(text.len());
        hidden.insert(text.find("\"secret\"").unwrap());
        let expected = [
            "state.(key 3)[1].d",
            "state.a[0].b",
            "state.a[1]",
            "state.(key 2).c",
            "state.(key 3)[1] (key)",
            "state (key)",
            "state.(key 4)",
        ];
        assert_eq!(paths_of_nodes(text, "state", &nodes, &hidden), expected);
        assert_eq!(paths_of_nodes("\"x\"", "state", &[node("{", NodeKind::String)], &Bits::default()), ["state"]);
    }
}
