//! Attempts to make a model disregard what it was told: in plain words, in letters set apart, in words with their
//! inner letters out of order, and in base64 or hexadecimal digits.

mod encoded;
mod patterns;
mod scrambled;
mod spaced;
mod words;

use std::borrow::Cow;
use std::ops::Range;

use super::bytes::{self, Reach};

/// How often what was decoded is looked through for something to decode.
const DEPTH: usize = 2;
/// Shorter texts hold no attempt.
const MIN_BYTES: usize = 8;

/// # Errors
/// A pattern of ours is no pattern.
pub(super) fn ready() -> Result<(), String> {
    patterns::ready()
}

/// Gives every attempt in a folded text.
pub(super) fn each(text: &str, reach: Reach<'_>, found: &mut dyn FnMut(Range<usize>)) {
    within(text, reach, DEPTH, found);
}

fn within(text: &str, reach: Reach<'_>, depth: usize, found: &mut dyn FnMut(Range<usize>)) {
    if text.len() < MIN_BYTES {
        return;
    }
    let plain = without_emphasis(text);
    patterns::each(&plain, found);
    let odd = words::odd(&plain);
    if odd.spaced
        && let Some(view) = spaced::joined(&plain)
    {
        view.each(found);
    }
    if odd.scrambled
        && let Some(ordered) = scrambled::in_order(&plain)
    {
        // Each word keeps its place and length.
        patterns::each(&ordered, found);
    }
    if depth > 0 {
        encoded::each(text, reach, &mut |place, decoded| {
            if can_hold_an_attempt(decoded) && attempts(decoded, depth - 1) {
                found(place);
            }
        });
    }
}

/// True where there is an attempt in what was decoded.
fn attempts(decoded: &[u8], depth: usize) -> bool {
    // Digits that merely stand before may have been taken along.
    let decoded = String::from_utf8_lossy(decoded);
    let folded = crate::guardrail::filter::text::Views::of_text(&decoded);
    let mut attempts = false;
    within(&folded.looks().text, Reach::Whole, depth, &mut |_| attempts = true);
    attempts
}

/// False where too little of a text is left when it is folded.
fn can_hold_an_attempt(decoded: &[u8]) -> bool {
    // No byte that is not ASCII becomes more than three.
    let most = |byte: &u8| match byte {
        b'\t' | b'\n' | b'\r' | b' '..=b'~' => 1,
        0x80.. => 3,
        _ => 0,
    };
    decoded.iter().map(most).sum::<usize>() >= MIN_BYTES
}

/// The text with spaces for underscores that are part of no word, so that each word begins and ends where a reader
/// sees it. Nothing moves.
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

/// Gives every attempt that is written in tag characters, which nobody sees but a model reads. They are in no folded
/// view, so this takes the text as it is.
pub(in crate::guardrail::filter) fn hidden(text: &str, found: &mut dyn FnMut(Range<usize>)) {
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
    within(&message, Reach::Whole, DEPTH, &mut |_| attempts = true);
    if attempts {
        found(place);
    }
}
