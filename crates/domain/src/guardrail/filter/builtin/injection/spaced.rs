//! Spaced-out letters: `i g n o r e`, `i-g-n-o-r-e`.

use std::ops::Range;

use super::patterns;
use crate::guardrail::filter::text::View;

/// Fewer letters in a row are initials or a list.
pub(super) const MIN_LETTERS: usize = 4;
/// The highest number of bytes between two letters of a row.
const MAX_GAP: usize = 4;

/// The most letters of a row that are collapsed at a time, and the number of them that the next part repeats: a row may
/// be as long as the text.
const PART_LETTERS: usize = 32 << 10;
const REPEATED_LETTERS: usize = 1 << 10;

/// Reports every attempt in the rows of single letters: with the spaces between their words, and without.
pub(super) fn each(text: &str, found: &mut dyn FnMut(Range<usize>)) {
    let mut collapsed = View::empty(0);
    // The ranges of the rows in the view, in order.
    let (mut rows, mut at) = (Vec::new(), 0);
    each_row(text.as_bytes(), &mut |row, repeated| {
        let narrow = row.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or_default();
        let mut tight = View::empty(row[0]);
        let begin = collapsed.text.len();
        for (place, letter) in row.iter().copied().enumerate() {
            let letter_text = &text[letter..=letter];
            let before = place.checked_sub(1).map(|before| row[before]);
            if let Some(before) = before {
                tight.push_replacement("", before + 1..letter);
            }
            tight.push_same(letter_text);
            if place < repeated {
                continue;
            }
            match before {
                Some(before) => {
                    let wide = letter - before > narrow;
                    collapsed.push_replacement(if wide { " " } else { "" }, before + 1..letter);
                }
                None => collapsed.push_same(&text[at..letter]),
            }
            collapsed.push_same(letter_text);
            at = letter + 1;
        }
        rows.push(begin..collapsed.text.len());
        patterns::each_tight(&tight.text, &mut |attempt| found(tight.map.source(attempt)));
    });
    if rows.is_empty() {
        return;
    }
    collapsed.push_same(&text[at..]);
    patterns::each(&collapsed.text, &mut |attempt| {
        // Attempts outside of all rows were already found in the original text.
        let after = rows.partition_point(|row| row.end <= attempt.start);
        if rows.get(after).is_some_and(|row| row.start < attempt.end) {
            found(collapsed.map.source(attempt));
        }
    });
}

/// Calls `each` with the positions of the letters of each row, and with the number of them that it has seen before: a
/// long row comes in parts.
pub(super) fn each_row(bytes: &[u8], each: &mut dyn FnMut(&[usize], usize)) {
    let is_word = |place: Option<usize>| {
        place.and_then(|place| bytes.get(place)).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80)
    };
    let is_single = |place: usize| {
        bytes[place].is_ascii_alphabetic() && !is_word(place.checked_sub(1)) && !is_word(Some(place + 1))
    };
    let (mut row, mut repeated): (Vec<usize>, usize) = (Vec::new(), 0);
    for place in (0..bytes.len()).filter(|place| is_single(*place)) {
        if row.last().is_some_and(|last| !is_near(bytes, *last, place)) {
            if row.len() >= MIN_LETTERS.max(repeated + 1) {
                each(&row, repeated);
            }
            row.clear();
            repeated = 0;
        }
        row.push(place);
        if row.len() == PART_LETTERS {
            each(&row, repeated);
            row.drain(..PART_LETTERS - REPEATED_LETTERS);
            repeated = REPEATED_LETTERS;
        }
    }
    if row.len() >= MIN_LETTERS.max(repeated + 1) {
        each(&row, repeated);
    }
}

/// Returns true if two single letters belong to the same row.
pub(super) fn is_near(bytes: &[u8], last: usize, place: usize) -> bool {
    let gap = &bytes[last + 1..place.min(last + 1 + MAX_GAP)];
    place - last <= MAX_GAP && gap.iter().all(|byte| byte.is_ascii_whitespace() || byte.is_ascii_punctuation())
}
