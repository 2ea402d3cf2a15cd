//! The findings in one text, by node.

use std::ops::Range;

use super::spans::{Bits, Marks};
use crate::json::string_content;

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
    /// The matches to redact.
    pub(super) marks: Marks,
    /// The first match to redact that was found.
    pub(super) first_redaction: Option<(usize, Node)>,
    /// The matches of each filter that redacts or flags.
    pub(super) match_counts: Vec<MatchCount>,
    /// The start positions of names with a match.
    pub(super) keys: Bits,
    /// The first medium that no filter can read.
    pub(super) medium: Option<Node>,
}

impl Found {
    pub(super) fn new(filters: usize, text: &str) -> Self {
        Self {
            match_counts: vec![MatchCount::default(); filters],
            marks: Marks::new(text.len()),
            keys: Bits::new(text.len()),
            ..Self::default()
        }
    }

    /// Marks a match to redact.
    pub(super) fn redact(&mut self, filter: usize, node: Node, span: Range<usize>) {
        if self.first_redaction.is_none_or(|(first, of)| of == node && filter < first) {
            self.first_redaction = Some((filter, node));
        }
        self.marks.add(filter, span);
    }

    pub(super) fn block_at(&mut self, filter: usize, node: Node) {
        if self.block.is_none_or(|(_, first)| node.start < first.start) {
            self.block = Some((filter, node));
        }
    }

    pub(super) fn medium_at(&mut self, node: Node) {
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
