//! The matches to redact in one text, in bounded memory.

use std::ops::Range;

use super::bits::Bits;

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
