//! Social security numbers of the United States.

use std::ops::Range;

use super::subject::{Digits, Group, gap, in_word, span};
use super::{Hint, Source};

/// The highest distance in bytes from nine bare digits to the word before that labels them.
const CONTEXT: usize = 32;

/// The number of digits.
pub(super) const DIGITS: usize = 9;

pub(super) fn each(text: &str, digits: &Digits, source: Source, hint: Hint, found: &mut dyn FnMut(Range<usize>)) {
    for groups in digits.clusters(DIGITS) {
        let mut first = 0;
        while first < groups.len() {
            let bare = groups[first].len() == DIGITS && is_bare(text, groups[first], source, hint);
            if bare || is_separated(text, groups, first) {
                let end = if bare { first + 1 } else { first + 3 };
                found(span(&groups[first..end]));
                first = end;
            } else {
                first += 1;
            }
        }
    }
}

/// Matches three, two and four digits with the same separator twice, if they are not part of a longer number.
fn is_separated(text: &str, groups: &[Group], first: usize) -> bool {
    let Some(window) = groups.get(first..first + 3) else { return false };
    if !window.iter().map(|group| group.len()).eq([3, 2, 4]) {
        return false;
    }
    let (mark, second) = (gap(text, window[0], window[1]), gap(text, window[1], window[2]));
    if mark != second || !matches!(mark, b"-" | b" " | b".") {
        return false;
    }
    let before = first.checked_sub(1).map(|before| gap(text, groups[before], window[0]));
    let after = groups.get(first + 3).map(|after| gap(text, window[2], *after));
    if before == Some(mark) || before == Some(b"-") || after == Some(mark) || after == Some(b"-") {
        return false;
    }
    let whole = span(window);
    let before = &text.as_bytes()[whole.start.saturating_sub(3)..whole.start];
    let named = before.eq_ignore_ascii_case(b"ssn");
    (named || !in_word(text, &whole)) && is_issued(text[whole].bytes().filter(u8::is_ascii_digit))
}

/// Matches nine digits that are labelled as a social security number.
fn is_bare(text: &str, group: Group, source: Source, hint: Hint) -> bool {
    let place = group.start()..group.end();
    if source.is_joined() || in_word(text, &place) || !is_issued(text[place.clone()].bytes()) {
        return false;
    }
    let start = text.ceil_char_boundary(place.start.saturating_sub(CONTEXT));
    let before = &text.as_bytes()[start..place.start];
    let is_said = |word: &&[u8]| before.windows(word.len()).any(|said| said.eq_ignore_ascii_case(word));
    hint == Hint::Ssn || [&b"ssn"[..], b"social security"].iter().any(is_said)
}

/// Area numbers 000, 666 and 900 to 999, group 00 and serial 0000 are never issued.
fn is_issued(digits: impl Iterator<Item = u8>) -> bool {
    let mut number = [0; DIGITS];
    let mut count = 0;
    for digit in digits {
        let Some(place) = number.get_mut(count) else { return false };
        *place = digit;
        count += 1;
    }
    let (digits, is_zero) = (number, |part: &[u8]| part.iter().all(|digit| *digit == b'0'));
    count == DIGITS
        && !is_zero(&digits[..3])
        && digits[0] != b'9'
        && &digits[..3] != b"666"
        && !is_zero(&digits[3..5])
        && !is_zero(&digits[5..])
}
