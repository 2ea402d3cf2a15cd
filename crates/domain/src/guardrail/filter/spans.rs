//! Spans of matches: of one text, merged, and marked in bounded memory.

use std::ops::Range;

/// The matches of one filter in one node. Overlapping ones are merged, as are adjacent ones that are added one after
/// the other. Takes nothing without a match, else a quarter of the node's length, however many there are.
#[derive(Debug, Default)]
pub(super) struct Spans {
    node: Range<usize>,
    /// The offsets in the node at which a match begins.
    starts: Bits,
    /// The offsets that belong to the same match as the offset before them.
    joined: Bits,
    last_end: usize,
    is_empty: bool,
}

impl Spans {
    /// Creates an empty set of matches within `node`.
    pub(super) fn new(node: Range<usize>) -> Self {
        let new = || Bits::new(node.len());
        Self { starts: new(), joined: new(), last_end: usize::MAX, is_empty: true, node }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Adds a match that is not empty and lies within the node.
    pub(super) fn add(&mut self, span: Range<usize>) {
        let (start, end) = (span.start - self.node.start, span.end - self.node.start);
        self.starts.insert(start);
        let first = if self.last_end == start { start } else { start + 1 };
        self.joined.insert_range(first..end);
        (self.last_end, self.is_empty) = (end, false);
    }

    /// Returns the merged matches, in ascending order.
    pub(super) fn merged(&self) -> impl Iterator<Item = Range<usize>> {
        let (mut at, len) = (0, self.node.len());
        std::iter::from_fn(move || {
            let start = self.starts.first_in(at..len)?;
            at = self.joined.first_absent_in(start + 1..len).max(start + 1);
            Some(self.node.start + start..self.node.start + at)
        })
    }
}

/// A set of positions. It takes no memory while it is empty, and one bit for each position afterwards.
#[derive(Debug, Default)]
pub(super) struct Bits {
    words: Vec<u64>,
    /// The number of positions.
    len: usize,
}

impl Bits {
    /// Creates an empty set of positions below `len`.
    pub(super) fn new(len: usize) -> Self {
        Self { words: Vec::new(), len }
    }

    /// Returns true if the set contains a position.
    pub(super) fn contains(&self, at: usize) -> bool {
        self.words.get(at / 64).is_some_and(|word| word & (1 << (at % 64)) != 0)
    }

    pub(super) fn insert(&mut self, at: usize) {
        self.insert_range(at..at + 1);
    }

    /// Inserts the positions of a range, many at a time. Ignores positions beyond the end.
    pub(super) fn insert_range(&mut self, range: Range<usize>) {
        let end = range.end.min(self.len);
        if range.start >= end {
            return;
        }
        if self.words.is_empty() {
            self.words = vec![0; self.len.div_ceil(64)];
        }
        let (first, last) = (range.start / 64, (end - 1) / 64);
        for place in first..=last {
            let from = if place == first { range.start % 64 } else { 0 };
            let to = if place == last { (end - 1) % 64 } else { 63 };
            if let Some(word) = self.words.get_mut(place) {
                *word |= (u64::MAX >> (63 - to)) & (u64::MAX << from);
            }
        }
    }

    /// Returns the first position of a range that is in the set. Reads nothing behind it.
    pub(super) fn first_in(&self, range: Range<usize>) -> Option<usize> {
        self.find(range, |word| word)
    }

    /// Returns the first position of a range that is not in the set, else the end of the range.
    pub(super) fn first_absent_in(&self, range: Range<usize>) -> usize {
        if self.words.is_empty() { range.start } else { self.find(range.clone(), |word| !word).unwrap_or(range.end) }
    }

    fn find(&self, range: Range<usize>, of: impl Fn(u64) -> u64) -> Option<usize> {
        let mut at = range.start;
        while at < range.end {
            let word = of(*self.words.get(at / 64)?) & (u64::MAX << (at % 64));
            if word != 0 {
                let found = at / 64 * 64 + word.trailing_zeros() as usize;
                return (found < range.end).then_some(found);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }
}

/// The matches to redact in one text. Overlapping ones are one, which belongs to the filter whose match begins first,
/// or to the first filter of those. Takes nothing without a match, else nine bits for each byte of the text, however
/// many matches there are.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// For each byte, the place in `filters` plus one of the filter with a match that begins there; 0 for none.
    starts: Vec<u8>,
    /// The bytes that belong to the same match as the byte before them.
    joined: Bits,
    filters: Vec<usize>,
    text_bytes: usize,
    is_full: bool,
}

/// One match to redact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redaction {
    pub(super) filter: usize,
    pub(super) span: Range<usize>,
}

impl Marks {
    /// Creates the marks of a text without matches.
    pub(super) fn new(text_bytes: usize) -> Self {
        Self { joined: Bits::new(text_bytes), text_bytes, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// Returns true if more filters matched than can be told apart. The marks are then incomplete.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Adds a match.
    pub(super) fn add(&mut self, filter: usize, span: Range<usize>) {
        let known = self.filters.iter().position(|known| *known == filter).unwrap_or_else(|| {
            self.filters.push(filter);
            self.filters.len() - 1
        });
        let Ok(label) = u8::try_from(known + 1) else {
            self.is_full = true;
            return;
        };
        if self.starts.is_empty() {
            self.starts = vec![0; self.text_bytes];
        }
        let before = self.starts.get(span.start).and_then(|label| self.filter_of(*label));
        if before.is_none_or(|before| filter < before)
            && let Some(start) = self.starts.get_mut(span.start)
        {
            *start = label;
        }
        self.joined.insert_range(span.start + 1..span.end);
    }

    /// Returns true if a match overlaps a range.
    pub(super) fn overlaps(&self, range: Range<usize>) -> bool {
        self.joined.first_in(range.clone()).is_some()
            || self.starts.get(range).unwrap_or_default().iter().any(|label| *label != 0)
    }

    /// Returns the matches that begin in a range, in order. Adjacent matches of one filter are one.
    pub(super) fn within(&self, range: Range<usize>) -> impl Iterator<Item = Redaction> {
        let mut at = range.start;
        std::iter::from_fn(move || {
            let rest = self.starts.get(at..range.end)?;
            let start = at + rest.iter().position(|label| *label != 0)?;
            let filter = self.filter_at(start)?;
            let end_of = |start: usize| self.joined.first_absent_in(start + 1..range.end).max(start + 1);
            let mut end = end_of(start);
            while end < range.end && self.filter_at(end) == Some(filter) {
                end = end_of(end);
            }
            at = end;
            Some(Redaction { filter, span: start..end })
        })
    }

    fn filter_at(&self, at: usize) -> Option<usize> {
        self.filter_of(*self.starts.get(at)?)
    }

    fn filter_of(&self, label: u8) -> Option<usize> {
        self.filters.get(usize::from(label).checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Merges as specified: adjacent ones in the order of their addition, then overlapping ones.
    fn merge(added: &[Range<usize>]) -> Vec<Range<usize>> {
        let mut all: Vec<Range<usize>> = Vec::new();
        for span in added {
            match all.last_mut() {
                Some(before) if before.end == span.start => before.end = span.end,
                _ => all.push(span.clone()),
            }
        }
        all.sort_by_key(|span| (span.start, span.end));
        all.dedup_by(|next, kept| {
            let overlaps = next.start < kept.end;
            if overlaps {
                kept.end = kept.end.max(next.end);
            }
            overlaps
        });
        all
    }

    proptest! {
        #[test]
        fn spans_merge_matches(added in prop::collection::vec((200_usize..400, 1_usize..12), 0..90)) {
            let added: Vec<Range<usize>> = added.into_iter().map(|(start, length)| start..start + length).collect();
            let mut spans = Spans::new(100..20_000);
            for span in &added {
                spans.add(span.clone());
            }
            prop_assert_eq!(spans.is_empty(), added.is_empty());
            prop_assert_eq!(spans.merged().collect::<Vec<_>>(), merge(&added));
        }
    }
}

#[cfg(test)]
mod bits_tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn bits_agree_with_a_set(ranges in prop::collection::vec((0_usize..300, 0_usize..90), 0..8), at in 0_usize..310) {
            let (mut bits, mut set) = (Bits::new(300), BTreeSet::new());
            for (start, length) in ranges {
                bits.insert_range(start..start + length);
                set.extend((start..start + length).filter(|at| *at < 300));
            }
            prop_assert_eq!(bits.contains(at), set.contains(&at));
            for end in [at, at + 1, at + 70, 300] {
                prop_assert_eq!(bits.first_in(at..end), (at..end).find(|at| set.contains(at)));
                let end = end.min(300);
                let absent = (at..end).find(|at| !set.contains(at)).unwrap_or(end);
                prop_assert!(at >= end || bits.first_absent_in(at..end) == absent);
            }
        }
    }
}

#[cfg(test)]
mod marks_tests {
    use super::*;
    use proptest::prelude::*;

    /// Merges as specified: in the order of starts, then of filters.
    fn merge(mut all: Vec<Redaction>) -> Vec<Redaction> {
        all.sort_by_key(|redaction| (redaction.span.start, redaction.filter, redaction.span.end));
        all.dedup_by(|next, kept| {
            let meets =
                next.span.start < kept.span.end || next.span.start == kept.span.end && next.filter == kept.filter;
            if meets {
                kept.span.end = kept.span.end.max(next.span.end);
            }
            meets
        });
        all
    }

    proptest! {
        #[test]
        fn marks_merge_matches(all in prop::collection::vec((0_usize..5, 0_usize..90, 1_usize..9), 0..25)) {
            let all: Vec<Redaction> =
                all.into_iter().map(|(filter, start, length)| Redaction { filter, span: start..start + length }).collect();
            let mut marks = Marks::new(100);
            for redaction in &all {
                marks.add(redaction.filter, redaction.span.clone());
            }
            prop_assert_eq!(marks.is_empty(), all.is_empty());
            for at in 0..99 {
                let overlaps = all.iter().any(|redaction| redaction.span.contains(&at));
                prop_assert_eq!(marks.overlaps(at..at + 1), overlaps);
            }
            prop_assert_eq!(marks.within(0..100).collect::<Vec<_>>(), merge(all));
        }
    }

    #[test]
    fn marks_beyond_all_labels_are_reported() {
        let mut marks = Marks::new(10);
        (0..255).for_each(|filter| marks.add(filter, 0..1));
        assert!(!marks.is_full());
        marks.add(255, 0..1);
        assert!(marks.is_full());
    }
}
