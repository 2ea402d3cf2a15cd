//! Sets of positions in a text, one bit each.

use std::ops::Range;

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

#[cfg(test)]
mod tests {
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
