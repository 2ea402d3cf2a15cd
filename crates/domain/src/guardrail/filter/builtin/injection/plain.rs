//! Attempts in plain words.

use std::ops::Range;

use super::super::patterns::PATTERNS;

/// Reports every attempt in plain words.
pub(super) fn each(text: &str, found: &mut dyn FnMut(Range<usize>)) {
    let Ok(patterns) = &*PATTERNS else { return };
    for attempt in patterns.attempts.find_iter(text.as_bytes()) {
        if !is_negated(text, attempt.start()) && !is_everyday(text, attempt.range()) {
            found(attempt.range());
        }
    }
}

/// Reports every attempt without spaces.
pub(super) fn each_tight(text: &str, found: &mut dyn FnMut(Range<usize>)) {
    let Ok(patterns) = &*PATTERNS else { return };
    patterns.attempts_without_spaces.find_iter(text.as_bytes()).for_each(|attempt| found(attempt.range()));
}

/// Printed things with instructions or rules for people.
const PRINTED: &[&str] = &[
    "assembly",
    "booklet",
    "box",
    "brochure",
    "carton",
    "catalog",
    "catalogue",
    "cookbook",
    "edition",
    "handbook",
    "kit",
    "label",
    "leaflet",
    "letter",
    "manual",
    "manuals",
    "packaging",
    "packet",
    "parcel",
    "poster",
    "prescription",
    "recipe",
    "syllabus",
    "textbook",
    "warranty",
];
/// Things with a developer mode of their own.
const DEVICES: &[&str] = &[
    "android",
    "browser",
    "chromebook",
    "console",
    "device",
    "extension",
    "firmware",
    "headset",
    "iphone",
    "ipad",
    "laptop",
    "phone",
    "phones",
    "settings",
    "tablet",
    "television",
    "tv",
    "watch",
];
/// The number of words after a match in which its object is searched.
const MAX_OBJECT_DISTANCE: usize = 6;

/// Returns true if the text after a match says that it is about a printed thing or a device: "ignore the previous
/// instructions in the manual", "developer mode is on in my phone's settings".
fn is_everyday(text: &str, attempt: Range<usize>) -> bool {
    let is_one_of = |words: &[&str], word: &str| words.iter().any(|known| word.eq_ignore_ascii_case(known));
    let (matched, after) = (&text.as_bytes()[attempt.clone()], &text.as_bytes()[attempt.end..]);
    let last = matched.rsplit(|byte| !byte.is_ascii_alphabetic()).next().unwrap_or_default();
    let objects = match last.to_ascii_lowercase().as_slice() {
        b"instruction" | b"instructions" | b"guidelines" | b"rules" | b"directives" => PRINTED,
        b"on" | b"enabled" | b"activated" => DEVICES,
        _ => return false,
    };
    let sentence =
        &after[..after.iter().take(128).position(|byte| b".,;:!?\n\"".contains(byte)).unwrap_or(after.len().min(128))];
    let sentence = String::from_utf8_lossy(sentence);
    let mut words = sentence.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    words.next().is_some_and(|word| is_one_of(&["at", "from", "in", "inside", "of", "on", "under", "with"], word))
        && words.take(MAX_OBJECT_DISTANCE).any(|word| is_one_of(objects, word))
}

/// Returns true if the word before negates the attempt: "do not forget the rules" is harmless.
fn is_negated(text: &str, start: usize) -> bool {
    let before = text.as_bytes()[..start].trim_ascii_end();
    let starts = text.as_bytes()[start..].iter().take(6).map(u8::to_ascii_lowercase);
    let drops =
        matches!(&*starts.collect::<Vec<u8>>(), b"ignore" | b"disreg" | b"forget" | b"overri" | b"bypass" | b"neglec");
    let last = &before[before.iter().rposition(u8::is_ascii_whitespace).map_or(0, |space| space + 1)..];
    drops
        && [&b"not"[..], b"don't", b"dont", b"never", b"cannot", b"can't"]
            .iter()
            .any(|no| last.eq_ignore_ascii_case(no))
}
