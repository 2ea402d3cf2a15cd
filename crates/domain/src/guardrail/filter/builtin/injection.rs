//! Prompt injection: attempts to make a model disregard its instructions. They are found in plain words, spaced-out
//! letters, words with scrambled inner letters, base64 and hexadecimal digits.

mod encoded;
mod plain;
mod scrambled;

use std::borrow::Cow;
use std::ops::Range;

use super::Subject;
use super::bytes::{self, Reach};

/// The highest depth of nested encodings.
const DEPTH: usize = 2;
/// Shorter texts cannot hold an attempt.
const MIN_BYTES: usize = 8;

/// Reports every attempt in a normalised text.
pub(super) fn each(subject: Subject<'_>, found: &mut dyn FnMut(Range<usize>)) {
    search(subject.text, subject.reach(), DEPTH, found);
}

/// Reports every attempt in a normalised text that is not in plain words.
pub(super) fn each_disguised(subject: Subject<'_>, found: &mut dyn FnMut(Range<usize>)) {
    search_disguised(subject.text, subject.reach(), DEPTH, found);
}

fn search(text: &str, reach: Reach<'_>, depth: usize, found: &mut dyn FnMut(Range<usize>)) {
    if text.len() >= MIN_BYTES {
        plain::each(&without_emphasis(text), found);
        search_disguised(text, reach, depth, found);
    }
}

fn search_disguised(text: &str, reach: Reach<'_>, depth: usize, found: &mut dyn FnMut(Range<usize>)) {
    let plain = without_emphasis(text);
    let suspicious = scrambled::find_suspicious_words(&plain);
    if suspicious.spaced {
        scrambled::each_spaced(&plain, found);
    }
    if suspicious.scrambled
        && let Some(ordered) = scrambled::unscramble(&plain)
    {
        // Unscrambling keeps the position and the length of each word.
        plain::each(&ordered, found);
    }
    if depth > 0 {
        encoded::each(text, reach, &mut |place, decoded| {
            if can_hold_an_attempt(decoded) && holds_attempt(decoded, depth - 1) {
                found(place);
            }
        });
    }
}

/// Returns true if decoded bytes hold an attempt.
fn holds_attempt(decoded: &[u8], depth: usize) -> bool {
    // The run may have begun with digits before the encoded text, so the first bytes may be invalid.
    let decoded = String::from_utf8_lossy(decoded);
    let decoded_views = crate::guardrail::filter::text::Views::of_text(&decoded);
    let mut attempts = false;
    search(&decoded_views.normalized_or_plain().text, Reach::Whole, depth, &mut |_| attempts = true);
    attempts
}

/// Returns false if too few bytes are left after normalisation.
fn can_hold_an_attempt(decoded: &[u8]) -> bool {
    // A byte of a character beyond ASCII is normalised to at most three bytes.
    let most = |byte: &u8| match byte {
        b'\t' | b'\n' | b'\r' | b' '..=b'~' => 1,
        0x80.. => 3,
        _ => 0,
    };
    decoded.iter().map(most).sum::<usize>() >= MIN_BYTES
}

/// Replaces underscores at word boundaries with spaces, so that each word begins and ends where a reader sees it. All
/// positions stay valid.
pub(super) fn without_emphasis(text: &str) -> Cow<'_, str> {
    if !bytes::has(text.as_bytes(), b'_') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('_') {
        let (before, after) = rest.split_at(start);
        let length = after.bytes().take_while(|byte| *byte == b'_').count();
        let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let is_within = is_word(before.chars().next_back()) && is_word(after[length..].chars().next());
        plain.push_str(before);
        plain.extend(std::iter::repeat_n(if is_within { '_' } else { ' ' }, length));
        rest = &after[length..];
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// Reports every attempt in Unicode tag characters, which are invisible to people but readable by models. The
/// normalised view drops them, so this takes the original text.
pub(in crate::guardrail::filter) fn each_invisible(text: &str, found: &mut dyn FnMut(Range<usize>)) {
    const TAGS: Range<u32> = 0xe0020..0xe007f;
    if !text.contains(['\u{e0020}', '\u{e0061}', '\u{e0065}', '\u{e006f}', '\u{e0069}']) {
        return;
    }
    let (mut message, mut place) = (String::new(), 0..0);
    for (at, c) in text.char_indices() {
        if TAGS.contains(&u32::from(c)) {
            if message.is_empty() {
                place.start = at;
            }
            place.end = at + c.len_utf8();
            message.extend(char::from_u32(u32::from(c) - 0xe0000));
        }
    }
    let mut attempts = false;
    search(&message, Reach::Whole, DEPTH, &mut |_| attempts = true);
    if attempts {
        found(place);
    }
}
