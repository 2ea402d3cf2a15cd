//! Replaces matches with placeholders. Everything outside of a match stays byte for byte.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use super::CompiledFilters;
use super::scan::{Node, NodeKind, Redaction};
use super::text::Views;
use crate::json::{Token, Tokens, string_content};

/// The error of a redaction whose result is too large.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// The number of bytes that a text may grow beyond twice its size.
const MAX_GROWTH_BYTES: usize = 1 << 20;

/// Returns the text with each match replaced by its placeholder.
///
/// # Errors
/// Fails if the result is larger than twice the text plus one mebibyte.
pub(super) fn rewrite(
    filters: &CompiledFilters,
    text: &str,
    mut redactions: Vec<Redaction>,
) -> Result<String, TooLarge> {
    redactions.sort_unstable_by_key(|redaction| {
        let Redaction { node, span, filter } = redaction;
        (node.start, span.start, *filter, span.end)
    });
    redactions.dedup_by(|next, kept| {
        let meets = next.span.start < kept.span.end || next.span.start == kept.span.end && next.filter == kept.filter;
        let is_one = next.node == kept.node && meets;
        if is_one {
            kept.span.end = kept.span.end.max(next.span.end);
        }
        is_one
    });
    let mut names = Names::collect(text, &redactions);
    let mut out = String::with_capacity(text.len());
    let (mut copied, mut rest) = (0, &redactions[..]);
    while let Some(node) = rest.first().map(|first| first.node) {
        let count = rest.iter().take_while(|redaction| redaction.node == node).count();
        let (here, after) = rest.split_at(count);
        rest = after;
        out.push_str(&text[copied..node.start]);
        copied = node.end;
        write_node(filters, text, node, here, &mut names, &mut out);
        if out.len() > 2 * text.len() + MAX_GROWTH_BYTES {
            return Err(TooLarge);
        }
    }
    out.push_str(&text[copied..]);
    Ok(out)
}

fn write_node(
    filters: &CompiledFilters,
    text: &str,
    node: Node,
    redactions: &[Redaction],
    names: &mut Names,
    out: &mut String,
) {
    let placeholder = |redaction: &Redaction| {
        filters.filters.get(redaction.filter).map_or("[REDACTED]", |filter| filter.placeholder.as_str())
    };
    let whole = node.content();
    let mut inner = String::with_capacity(whole.len());
    let mut copied = whole.start;
    for redaction in redactions {
        inner.push_str(&text[copied..redaction.span.start]);
        inner.push_str(placeholder(redaction));
        copied = redaction.span.end;
    }
    inner.push_str(&text[copied..whole.end]);
    match node.kind {
        NodeKind::Text => out.push_str(&inner),
        NodeKind::String => {
            out.push('"');
            out.push_str(&inner);
            out.push('"');
        }
        NodeKind::Number => {
            // A partly redacted number is not a number any more, so the placeholder becomes a string.
            out.push('"');
            out.push_str(redactions.first().map_or("[REDACTED]", placeholder));
            out.push('"');
        }
        NodeKind::Key => {
            out.push('"');
            names.make_distinct(node.object, &mut inner);
            out.push_str(&inner);
            out.push('"');
        }
    }
}

/// The names in objects that have a redacted name.
struct Names {
    /// The names in use, by the start of their object.
    taken: HashMap<usize, HashSet<String>>,
    /// The next free number for a name, by object and name.
    next: HashMap<(usize, String), u32>,
}

impl Names {
    fn collect(text: &str, redactions: &[Redaction]) -> Self {
        let keys = redactions.iter().filter(|redaction| redaction.node.kind == NodeKind::Key);
        let redacted: HashSet<usize> = keys.clone().map(|redaction| redaction.node.start).collect();
        let mut taken: HashMap<usize, HashSet<String>> =
            keys.map(|redaction| (redaction.node.object, HashSet::new())).collect();
        if !taken.is_empty() {
            let mut open = Vec::new();
            for (token, span) in Tokens::new(text).without_separators() {
                match token {
                    Token::Object | Token::Array => open.push(span.start),
                    Token::Close => drop(open.pop()),
                    Token::Name if !redacted.contains(&span.start) => {
                        if let Some(names) = open.last().and_then(|object| taken.get_mut(object)) {
                            names.insert(decode_name(&text[string_content(span)]));
                        }
                    }
                    _ => {}
                }
            }
        }
        Self { taken, next: HashMap::new() }
    }

    /// Appends a number if the name is in use.
    fn make_distinct(&mut self, object: usize, name: &mut String) {
        let Some(taken) = self.taken.get_mut(&object) else { return };
        let plain = decode_name(name);
        if taken.insert(plain.clone()) {
            return;
        }
        let next = self.next.entry((object, plain.clone())).or_insert(2);
        while !taken.insert(format!("{plain} {next}")) {
            *next += 1;
        }
        // Writing to a string cannot fail.
        let _ = write!(name, " {next}");
        *next += 1;
    }
}

/// Decodes a name.
fn decode_name(raw: &str) -> String {
    Views::of_json(raw, 0).plain.text.into_owned()
}
