//! A cheap test for suspicious words. They are rare, and the full analysis of them is expensive.

use super::super::bytes::{self, LETTER, WORD};
use super::{scrambled, spaced};

/// The suspicious words of a text.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct SuspiciousWords {
    /// A row of single letters.
    pub(super) spaced: bool,
    /// A word with scrambled inner letters.
    pub(super) scrambled: bool,
}

pub(super) fn find_suspicious_words(text: &str) -> SuspiciousWords {
    let bytes = text.as_bytes();
    let is_word = |place: usize| bytes.get(place).is_some_and(|byte| bytes::is(*byte, WORD));
    let mut found = SuspiciousWords::default();
    let (mut at, mut last, mut row) = (0, None, 0);
    while let Some(start) = bytes::find(bytes, at, LETTER) {
        at = bytes::end(bytes, start, LETTER);
        if at - start > 1 {
            found.scrambled |= scrambled::unscramble_word(&bytes[start..at]).is_some();
        } else if !is_word(at) && !start.checked_sub(1).is_some_and(is_word) {
            row = if last.is_some_and(|last| spaced::is_near(bytes, last, start)) { row + 1 } else { 1 };
            last = Some(start);
            found.spaced |= row >= spaced::MIN_LETTERS;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cheap_test_agrees_with_full_analysis(
            words in prop::collection::vec("[ioe]|[a-z]|ingore|ignore|IGNROE|rulse|1|\u{e9}|\\.", 0..12),
            gaps in prop::collection::vec(" |-| {1,5}|", 12),
        ) {
            let text: String = words.iter().zip(&gaps).flat_map(|(word, gap)| [word.as_str(), gap]).collect();
            let mut spaced = false;
            spaced::each_row(text.as_bytes(), &mut |_, _| spaced = true);
            let expected = SuspiciousWords {
                spaced,
                scrambled: scrambled::unscramble(&text).is_some(),
            };
            prop_assert_eq!(find_suspicious_words(&text), expected);
        }
    }
}
