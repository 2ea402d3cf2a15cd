//! Groups of digits and their separators, the basis of card, telephone and social security numbers.

use std::ops::Range;

use super::bytes::{self, DIGIT, GAP, Reach};

/// A run of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    // A text may consist of groups of one digit.
    start: u32,
    end: u32,
}

impl Group {
    /// Returns the start in the text.
    pub(super) fn start(self) -> usize {
        self.start as usize
    }

    /// Returns the end in the text.
    pub(super) fn end(self) -> usize {
        self.end as usize
    }

    pub(super) fn len(self) -> usize {
        self.end() - self.start()
    }
}

/// The highest number of bytes between two groups of one number.
const MAX_GAP: usize = 3;

/// The length in bytes of the shortest text whose groups are counted before they are listed.
const COUNTED_BYTES: usize = 64 << 10;

/// Counts the groups of digits in a part of a text.
fn count(bytes: &[u8], part: Range<usize>) -> usize {
    let (bytes, mut at, mut groups) = (&bytes[..part.end], part.start, 0);
    while let Some(start) = bytes::find(bytes, at, DIGIT) {
        at = bytes::end(bytes, start, DIGIT);
        groups += 1;
    }
    groups
}

/// The groups of digits of a text.
#[derive(Debug, Default)]
pub(in crate::guardrail::filter) struct Digits {
    groups: Vec<Group>,
    /// The end index of each cluster.
    ends: Vec<usize>,
}

impl Digits {
    /// Collects the digit groups within reach.
    pub(super) fn collect(text: &str, reach: Reach<'_>) -> Self {
        let bytes = text.as_bytes();
        let mut digits = Self::default();
        if bytes::has_digit(bytes) {
            if bytes.len() > COUNTED_BYTES {
                // A list that grows would take as much again while it is copied.
                digits.groups.reserve_exact(reach.parts(bytes, DIGIT | GAP).map(|part| count(bytes, part)).sum());
            }
            for part in reach.parts(bytes, DIGIT | GAP) {
                digits.add(bytes, part);
            }
        }
        digits
    }

    fn add(&mut self, bytes: &[u8], part: Range<usize>) {
        let bytes = &bytes[..part.end];
        let (first, mut at) = (self.groups.len(), part.start);
        while let Some(start) = bytes::find(bytes, at, DIGIT) {
            let goes_on = self.groups[first..].last().is_some_and(|last| {
                let gap = &bytes[last.end()..start];
                gap.len() <= MAX_GAP && gap.iter().all(|byte| bytes::is(*byte, GAP))
            });
            if !goes_on && self.groups.len() > first {
                self.ends.push(self.groups.len());
            }
            at = bytes::end(bytes, start, DIGIT);
            if self.groups.len() == self.groups.capacity() {
                // Half as much again, not twice.
                self.groups.reserve_exact(self.groups.len() / 2 + 8);
            }
            // Longer texts are not scanned.
            let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
            self.groups.push(Group { start: place(start), end: place(at) });
        }
        if self.groups.len() > first {
            self.ends.push(self.groups.len());
        }
    }

    /// Returns all groups, in order.
    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Returns the clusters with at least `least` digits. A cluster is a sequence of groups separated by short
    /// punctuation.
    pub(super) fn clusters(&self, least: usize) -> impl Iterator<Item = &[Group]> {
        let mut start = 0;
        let clusters = self.ends.iter().map(move |end| &self.groups[std::mem::replace(&mut start, *end)..*end]);
        clusters.filter(move |cluster| digits(cluster) >= least)
    }
}

/// Returns the bytes between two groups.
pub(super) fn gap(text: &str, left: Group, right: Group) -> &[u8] {
    &text.as_bytes()[left.end()..right.start()]
}

/// Returns the number of digits in all groups.
pub(super) fn digits(groups: &[Group]) -> usize {
    groups.iter().map(|group| group.len()).sum()
}

/// Returns the range from the first group to the last.
pub(super) fn span(groups: &[Group]) -> Range<usize> {
    match (groups.first(), groups.last()) {
        (Some(first), Some(last)) => first.start()..last.end(),
        _ => 0..0,
    }
}

/// The highest number of underscores that count as emphasis.
const MAX_EMPHASIS: usize = 8;

/// Returns true if a letter or digit is directly before or after the span, or behind underscores there. Underscores
/// without a letter or digit behind them are emphasis.
pub(super) fn in_word(text: &str, span: &Range<usize>) -> bool {
    let (before, after) = (&text.as_bytes()[..span.start], &text.as_bytes()[span.end..]);
    let is_line = |byte: &&u8| **byte == b'_';
    let mut before = before.iter().rev().take(MAX_EMPHASIS).skip_while(is_line);
    let mut after = after.iter().take(MAX_EMPHASIS).skip_while(is_line);
    [before.next(), after.next()].into_iter().flatten().any(u8::is_ascii_alphanumeric)
}
