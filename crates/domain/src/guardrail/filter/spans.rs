//! The matches of one filter in one node, in bounded memory.

use std::ops::Range;

use super::bits::Bits;

/// More matches than this are kept as bits.
const MAX_LISTED: usize = 1024;

/// The matches of one filter in one node. Overlapping ones are merged, as are adjacent ones that are added one after
/// the other. Takes at most a quarter of the node's length, plus a constant.
#[derive(Debug, Default)]
pub(super) struct Spans {
    listed: Vec<Range<usize>>,
    dense: Option<Dense>,
    node: Range<usize>,
}

/// Many matches, by their offsets in the node.
#[derive(Debug)]
struct Dense {
    starts: Bits,
    /// The offsets that belong to the same match as the offset before them.
    joined: Bits,
    last_end: usize,
}

impl Dense {
    fn add(&mut self, start: usize, end: usize) {
        self.starts.insert(start);
        let first = if self.last_end == start { start } else { start + 1 };
        self.joined.insert_range(first..end);
        self.last_end = end;
    }
}

impl Spans {
    /// Forgets all matches and prepares for those within `node`.
    pub(super) fn reset(&mut self, node: Range<usize>) {
        self.listed.clear();
        self.dense = None;
        self.node = node;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.dense.is_none()
    }

    /// Adds a match that is not empty and lies within the node.
    pub(super) fn add(&mut self, span: Range<usize>) {
        let base = self.node.start;
        if let Some(dense) = &mut self.dense {
            dense.add(span.start - base, span.end - base);
            return;
        }
        match self.listed.last_mut() {
            Some(before) if before.end == span.start => before.end = span.end,
            _ => self.listed.push(span),
        }
        if self.listed.len() > MAX_LISTED {
            let new = || Bits::new(self.node.len());
            let mut dense = Dense { starts: new(), joined: new(), last_end: usize::MAX };
            for span in self.listed.drain(..) {
                dense.add(span.start - base, span.end - base);
            }
            self.dense = Some(dense);
        }
    }

    /// Calls `each` with the merged matches, in ascending order, and forgets them.
    pub(super) fn drain(&mut self, mut each: impl FnMut(Range<usize>)) {
        if let Some(Dense { starts, joined, .. }) = self.dense.take() {
            let (mut at, len) = (0, self.node.len());
            while let Some(start) = starts.first_in(at..len) {
                let end = joined.first_absent_in(start + 1..len).max(start + 1);
                each(self.node.start + start..self.node.start + end);
                at = end;
            }
            return;
        }
        self.listed.sort_unstable_by_key(|span| (span.start, span.end));
        self.listed.dedup_by(|next, kept| {
            let overlaps = next.start < kept.end;
            if overlaps {
                kept.end = kept.end.max(next.end);
            }
            overlaps
        });
        self.listed.drain(..).for_each(each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn merged(spans: &mut Spans, added: &[Range<usize>]) -> Vec<Range<usize>> {
        spans.reset(100..20_000);
        for span in added {
            spans.add(span.clone());
        }
        let mut all = Vec::new();
        spans.drain(|span| all.push(span));
        all
    }

    proptest! {
        #[test]
        fn dense_matches_are_merged_like_few(
            few in prop::collection::vec((200_usize..400, 1_usize..12), 0..30),
        ) {
            let few: Vec<Range<usize>> = few.into_iter().map(|(start, length)| start..start + length).collect();
            let far: Vec<Range<usize>> = (0..=MAX_LISTED).map(|place| 1_000 + 3 * place..1_002 + 3 * place).collect();
            let mut spans = Spans::default();
            let expected = [merged(&mut spans, &few), far.clone()].concat();
            // The dense form is in use for some, or all, of the few.
            prop_assert_eq!(merged(&mut spans, &[few.clone(), far.clone()].concat()), expected.clone());
            prop_assert_eq!(merged(&mut spans, &[far, few].concat()), expected);
        }
    }
}
