//! Payment card numbers: an issuer's prefix, a length that it uses, and a valid check digit.

use std::ops::Range;

use super::Source;
use super::subject::{Digits, Group, gap, span};

const LENGTHS: Range<usize> = 13..20;

pub(super) fn each(text: &str, digits: &Digits, source: Source, found: &mut dyn FnMut(Range<usize>)) {
    for groups in digits.clusters(LENGTHS.start) {
        let mut first = 0;
        while first < groups.len() {
            match find_longest(text, groups, first, source) {
                Some(end) => {
                    found(span(&groups[first..end]));
                    first = end;
                }
                None => first += 1,
            }
        }
    }
}

/// Returns the end index of the longest card number that begins with group `first`.
fn find_longest(text: &str, groups: &[Group], first: usize, source: Source) -> Option<usize> {
    let bytes = text.as_bytes();
    if !may_begin(bytes[groups[first].start()]) {
        return None;
    }
    let mut number = [0; LENGTHS.end - 1];
    let (mut length, mut longest) = (0, None);
    for (place, group) in groups.iter().enumerate().skip(first) {
        let Some(here) = number.get_mut(length..length + group.len()) else { break };
        for (digit, byte) in here.iter_mut().zip(&bytes[group.start()..group.end()]) {
            *digit = byte - b'0';
        }
        length += group.len();
        // Numbers in neighbouring strings are a card number only if they hold no other digits.
        let is_whole = first == 0 && place + 1 == groups.len();
        if (is_whole || !source.is_joined()) && is_card(text, groups, first..place + 1, &number[..length]) {
            longest = Some(place + 1);
        }
    }
    longest
}

fn is_card(text: &str, groups: &[Group], place: Range<usize>, number: &[u8]) -> bool {
    LENGTHS.contains(&number.len())
        && is_issued(number)
        && has_plausible_grouping(text, groups, place)
        && has_check_digit(number)
}

/// Checks that the groups have sizes in which card numbers are written. Single digits and groups of two or three are
/// more often something else, so they must be the whole cluster.
fn has_plausible_grouping(text: &str, groups: &[Group], place: Range<usize>) -> bool {
    let window = &groups[place.clone()];
    // Digits after a point are a fraction.
    if place.start > 0 && gap(text, groups[place.start - 1], groups[place.start]) == b"." {
        return false;
    }
    if window.windows(2).any(|pair| gap(text, pair[0], pair[1]).iter().any(|byte| matches!(byte, b'/' | b'(' | b')'))) {
        return false;
    }
    let Some((last, before)) = window.split_last() else { return false };
    let Some(size) = before.first().map(|group| group.len()) else { return true };
    // As printed on cards, also where a separator is missing: an invisible character may have stood there.
    let mut whole = 0;
    let ends: Vec<usize> = window
        .iter()
        .map(|group| {
            whole += group.len();
            whole
        })
        .collect();
    let is_short = matches!(whole, 14 | 15);
    if ends.iter().all(|end| end % 4 == 0) || is_short && ends.iter().all(|end| [4, 10, whole].contains(end)) {
        return true;
    }
    let is_even = before.iter().all(|group| group.len() == size) && last.len() <= size;
    is_even && (size >= 4 || window.len() == groups.len())
}

/// Returns true for the first digits of all issuers' prefixes.
fn may_begin(digit: u8) -> bool {
    matches!(digit, b'2'..=b'6' | b'8')
}

/// Checks the issuer's prefix and the length that goes with it.
fn is_issued(number: &[u8]) -> bool {
    let begin = |count: usize| number[..count].iter().fold(0_u32, |value, digit| value * 10 + u32::from(*digit));
    let (two, three, four, length) = (begin(2), begin(3), begin(4), number.len());
    match two {
        40..=49 => matches!(length, 13 | 16 | 19),
        34 | 37 => length == 15,
        51..=55 => length == 16,
        36 | 38 | 39 => length >= 14,
        35 => (3528..=3589).contains(&four) && length >= 16,
        30 => (300..=305).contains(&three) && length >= 14,
        62 | 65 | 81 => length >= 16,
        22..=27 => (2200..=2720).contains(&four) && length >= 16,
        60 => matches!(four, 6011 | 6062) && length >= 16,
        64 => (644..=649).contains(&three) && length >= 16,
        50 | 56..=58 | 63 | 67 => matches!(four, 5018 | 5020 | 5038 | 5893 | 6304 | 6759 | 6761..=6763),
        _ => false,
    }
}

/// Checks the Luhn checksum.
fn has_check_digit(number: &[u8]) -> bool {
    let sum: u32 = number
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| {
            let weighed = u32::from(*digit) * if place % 2 == 0 { 1 } else { 2 };
            weighed / 10 + weighed % 10
        })
        .sum();
    sum.is_multiple_of(10)
}
