//! Spaced-out letters: `i g n o r e`, `i-g-n-o-r-e`.

use std::ops::Range;

use super::patterns;
use crate::guardrail::filter::text::View;

/// Fewer letters in a row are initials or a list.
pub(super) const MIN_LETTERS: usize = 4;
/// The highest number of bytes between two letters of a row.
const MAX_GAP: usize = 4;

/// A text with its rows of single letters collapsed into words.
pub(super) struct CollapsedText {
    view: View<'static>,
    /// The ranges of the rows in the view, in order.
    rows: Vec<Range<usize>>,
    /// The rows without the spaces between their words.
    tight: Vec<View<'static>>,
}

/// Collapses the rows of single letters; returns `None` if there are none.
pub(super) fn collapse_rows(text: &str) -> Option<CollapsedText> {
    let rows = rows(text.as_bytes());
    if rows.is_empty() {
        return None;
    }
    let mut collapsed = CollapsedText { view: View::default(), rows: Vec::new(), tight: Vec::new() };
    let mut at = 0;
    for row in rows {
        let (first, last) = (row[0], row[row.len() - 1]);
        collapsed.view.push_same(&text[at..first], at);
        let narrow = row.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or_default();
        let mut tight = View::default();
        let begin = collapsed.view.text.len();
        for (place, letter) in row.iter().enumerate() {
            if let Some(before) = place.checked_sub(1).map(|before| row[before]) {
                let wide = letter - before > narrow;
                collapsed.view.push_replacement(if wide { " " } else { "" }, before + 1..*letter);
            }
            collapsed.view.push_replacement(&text[*letter..=*letter], *letter..*letter + 1);
            tight.push_replacement(&text[*letter..=*letter], *letter..*letter + 1);
        }
        collapsed.rows.push(begin..collapsed.view.text.len());
        collapsed.tight.push(tight);
        at = last + 1;
    }
    collapsed.view.push_same(&text[at..], at);
    Some(collapsed)
}

impl CollapsedText {
    pub(super) fn each(&self, found: &mut dyn FnMut(Range<usize>)) {
        patterns::each(&self.view.text, &mut |attempt| {
            // Attempts outside of all rows were already found in the original text.
            let after = self.rows.partition_point(|row| row.end <= attempt.start);
            if self.rows.get(after).is_some_and(|row| row.start < attempt.end) {
                found(self.view.map.source(attempt));
            }
        });
        for tight in &self.tight {
            patterns::each_tight(&tight.text, &mut |attempt| found(tight.map.source(attempt)));
        }
    }
}

/// Returns the positions of the letters of each row.
fn rows(bytes: &[u8]) -> Vec<Vec<usize>> {
    let is_word = |place: Option<usize>| {
        place.and_then(|place| bytes.get(place)).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80)
    };
    let is_single = |place: usize| {
        bytes[place].is_ascii_alphabetic() && !is_word(place.checked_sub(1)) && !is_word(Some(place + 1))
    };
    let (mut rows, mut row): (Vec<Vec<usize>>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut keep = |row: &mut Vec<usize>| {
        if row.len() >= MIN_LETTERS {
            rows.push(std::mem::take(row));
        }
        row.clear();
    };
    for place in 0..bytes.len() {
        if !is_single(place) {
            continue;
        }
        if row.last().is_some_and(|last| !is_near(bytes, *last, place)) {
            keep(&mut row);
        }
        row.push(place);
    }
    keep(&mut row);
    rows
}

/// Returns true if two single letters belong to the same row.
pub(super) fn is_near(bytes: &[u8], last: usize, place: usize) -> bool {
    let gap = &bytes[last + 1..place.min(last + 1 + MAX_GAP)];
    place - last <= MAX_GAP && gap.iter().all(|byte| byte.is_ascii_whitespace() || byte.is_ascii_punctuation())
}
