//! Byte classes with a lookup table, and runs of bytes of a class.

use std::ops::Range;

/// Bit flags of byte classes. A combination matches any of them.
pub(super) const DIGIT: u16 = 1;
pub(super) const LETTER: u16 = 1 << 1;
/// An ASCII letter or digit, or any byte of a character beyond ASCII.
pub(super) const WORD: u16 = 1 << 2;
/// A separator of groups of digits.
pub(super) const GAP: u16 = 1 << 3;
/// A byte of an IP address.
pub(super) const IP: u16 = 1 << 4;
/// A byte of the local part of an e-mail address.
pub(super) const LOCAL: u16 = 1 << 5;
/// A byte of the domain of an e-mail address.
pub(super) const DOMAIN: u16 = 1 << 6;
/// The at sign.
pub(super) const AT: u16 = 1 << 7;
/// A byte of base64, in either alphabet.
pub(super) const BASE64: u16 = 1 << 8;
/// A byte that ends or breaks a line of base64.
pub(super) const BASE64_END: u16 = 1 << 9;
/// A byte of hexadecimal pairs, their prefixes and separators.
pub(super) const PAIRS: u16 = 1 << 10;
/// A byte of a key or token.
pub(super) const TOKEN: u16 = 1 << 11;

const TABLE: [u16; 256] = table();

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0_u8;
    loop {
        let mut kinds = 0;
        if byte.is_ascii_digit() {
            kinds |= DIGIT;
        }
        if byte.is_ascii_alphabetic() {
            kinds |= LETTER;
        }
        if byte.is_ascii_alphanumeric() {
            kinds |= BASE64 | TOKEN;
        }
        if byte.is_ascii_alphanumeric() || byte >= 0x80 {
            kinds |= WORD | LOCAL | DOMAIN;
        }
        if byte.is_ascii_hexdigit() {
            kinds |= IP | PAIRS;
        }
        kinds |= match byte {
            b' ' | b'\n' => GAP | PAIRS,
            b'\t' | b'\r' | b'(' | b')' => GAP,
            _ => 0,
        };
        kinds |= match byte {
            b'.' => GAP | IP | LOCAL | DOMAIN | TOKEN,
            b'-' => GAP | LOCAL | DOMAIN | BASE64 | PAIRS | TOKEN,
            b'/' => GAP | LOCAL | BASE64 | TOKEN,
            b'+' | b'_' => LOCAL | BASE64 | TOKEN,
            b'=' => LOCAL | BASE64_END | TOKEN,
            b'~' => LOCAL | TOKEN,
            b'\r' | b'\n' => BASE64_END,
            b'%' => LOCAL | PAIRS,
            b'!' | b'#' | b'$' | b'&' | b'\'' | b'*' | b'?' | b'^' | b'`' | b'{' | b'|' | b'}' => LOCAL,
            b':' => IP | PAIRS,
            b',' | b'\\' | b'x' | b'X' => PAIRS,
            b'@' => AT,
            _ => 0,
        };
        table[byte as usize] = kinds;
        if byte == u8::MAX {
            return table;
        }
        byte += 1;
    }
}

/// Returns true if a byte is of one of the classes.
pub(super) fn is(byte: u8, kinds: u16) -> bool {
    TABLE[usize::from(byte)] & kinds != 0
}

/// Returns the first position from `from` with a byte of the classes. `from` may be behind the end.
pub(super) fn find(bytes: &[u8], from: usize, kinds: u16) -> Option<usize> {
    bytes.get(from..)?.iter().position(|byte| is(*byte, kinds)).map(|offset| from + offset)
}

/// Returns the end of the run of the classes that begins at `from`.
pub(super) fn end(bytes: &[u8], from: usize, kinds: u16) -> usize {
    bytes[from..].iter().position(|byte| !is(*byte, kinds)).map_or(bytes.len(), |offset| from + offset)
}

/// Returns the start of the run of the classes that ends at `to`.
pub(super) fn begin(bytes: &[u8], to: usize, kinds: u16) -> usize {
    bytes[..to].iter().rposition(|byte| !is(*byte, kinds)).map_or(0, |before| before + 1)
}

/// Returns true if there is a digit.
pub(super) fn has_digit(bytes: &[u8]) -> bool {
    any(bytes, |byte| byte.is_ascii_digit())
}

/// Returns true if there is a byte `wanted`.
pub(super) fn has(bytes: &[u8], wanted: u8) -> bool {
    any(bytes, |byte| byte == wanted)
}

/// Tests 64 bytes at a time, so that the compiler vectorises the test. Stops at the first chunk with a hit.
pub(in crate::guardrail::filter) fn any(bytes: &[u8], test: impl Fn(u8) -> bool) -> bool {
    bytes.chunks(64).any(|chunk| chunk.iter().fold(false, |any, byte| any | test(*byte)))
}

/// Returns true if the two letters are adjacent, in either case. The loop has no branch, so that it is vectorised.
pub(super) fn has_pair(bytes: &[u8], [first, second]: [u8; 2]) -> bool {
    let pairs = bytes.iter().zip(bytes.iter().skip(1));
    let are = |one: u8, next: u8| u8::from(one | 0x20 == first) & u8::from(next | 0x20 == second);
    pairs.fold(0, |any, (one, next)| any | are(*one, *next)) != 0
}

/// Returns the maximal runs of the classes with at least `least` bytes. It skips ahead by `least` bytes and so reads
/// few bytes if there are no runs.
pub(super) fn long_runs(bytes: &[u8], kinds: u16, least: usize) -> impl Iterator<Item = Range<usize>> + '_ {
    // All bytes from `from` up to `known` are of the classes.
    let (mut from, mut known) = (0, 0);
    std::iter::from_fn(move || {
        loop {
            let probe = from + least;
            let unknown = bytes.get(known..probe)?;
            if let Some(other) = unknown.iter().rposition(|byte| !is(*byte, kinds)) {
                from = known + other + 1;
                known = probe;
            } else {
                let run = from..end(bytes, probe, kinds);
                from = run.end;
                known = run.end;
                return Some(run);
            }
        }
    })
}

/// The part of a text in which matches are reported.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reach<'j> {
    /// The whole text.
    Whole,
    /// Matches that span one of these positions, which are in order.
    Across(&'j [usize]),
}

impl<'j> Reach<'j> {
    /// Returns the parts of a text that can hold such matches of bytes of the classes: around each position the run
    /// that touches it, in order and without duplicates.
    pub(super) fn parts<'b>(self, bytes: &'b [u8], kinds: u16) -> impl Iterator<Item = Range<usize>> + use<'b, 'j> {
        let (whole, places) = match self {
            Self::Whole => (Some(0..bytes.len()), &[][..]),
            Self::Across(places) => (None, places),
        };
        let mut done = 0;
        let around = places.iter().filter_map(move |place| {
            // A match cannot span the beginning.
            if *place <= done {
                return None;
            }
            let run = begin(bytes, *place, kinds)..end(bytes, *place, kinds);
            done = run.end;
            (!run.is_empty()).then_some(run)
        });
        whole.into_iter().chain(around)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn places(runs: impl Iterator<Item = Range<usize>>) -> Vec<(usize, usize)> {
        runs.map(|run| (run.start, run.end)).collect()
    }

    #[rstest]
    #[case("", &[])]
    #[case("123", &[])]
    #[case("1234", &[(0, 4)])]
    #[case("a1234567b", &[(1, 8)])]
    #[case("123 12345 1234", &[(4, 9), (10, 14)])]
    #[case("12 345 6789 0", &[(7, 11)])]
    fn long_runs_finds_runs_of_four_digits(#[case] text: &str, #[case] expected: &[(usize, usize)]) {
        assert_eq!(places(long_runs(text.as_bytes(), DIGIT, 4)), expected);
    }

    #[rstest]
    #[case::all(Reach::Whole, &[(0, 13)])]
    #[case::within(Reach::Across(&[1]), &[(0, 3)])]
    #[case::beside(Reach::Across(&[3, 5]), &[(0, 3), (5, 7)])]
    #[case::both_in_one(Reach::Across(&[8, 9, 11]), &[(8, 12)])]
    #[case::apart(Reach::Across(&[4]), &[])]
    fn parts_returns_runs_around_positions(#[case] reach: Reach<'_>, #[case] expected: &[(usize, usize)]) {
        assert_eq!(places(reach.parts(b"123aa12b1234c", DIGIT)), expected);
    }

    #[rstest]
    #[case("", false)]
    #[case("i", false)]
    #[case("i s", false)]
    #[case("it iS", true)]
    #[case("Is", true)]
    fn has_pair_ignores_case(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(has_pair(text.as_bytes(), *b"is"), expected);
    }

    proptest! {
        #[test]
        fn long_runs_equals_linear_search(text in "[1a]{0,60}", least in 1_usize..20) {
            let bytes = text.as_bytes();
            let mut expected = Vec::new();
            let mut at = 0;
            while let Some(start) = find(bytes, at, DIGIT) {
                at = end(bytes, start, DIGIT);
                if at - start >= least {
                    expected.push(start..at);
                }
            }
            prop_assert_eq!(long_runs(bytes, DIGIT, least).collect::<Vec<_>>(), expected);
            prop_assert_eq!(has_digit(bytes), text.contains('1'));
            prop_assert_eq!(has(bytes, b'a'), text.contains('a'));
        }
    }
}
