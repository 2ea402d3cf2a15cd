//! Text in base64 or in hexadecimal digits.

use std::ops::Range;

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::super::bytes::{self, BASE64, BASE64_END, PAIRS, Reach, long_runs};

/// Fewer characters cannot hold an attempt.
const MIN_BASE64: usize = 16;
/// Fewer pairs of hexadecimal digits cannot hold an attempt.
const MIN_PAIRS: usize = 8;

const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const PLUS_AND_SLASH: GeneralPurpose = GeneralPurpose::new(&STANDARD, CONFIG);
const DASH_AND_LINE: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, CONFIG);

/// Reports every encoded text with its position and its decoded bytes.
pub(super) fn each(text: &str, reach: Reach<'_>, found: &mut dyn FnMut(Range<usize>, &[u8])) {
    let bytes = text.as_bytes();
    for part in reach.parts(bytes, BASE64 | BASE64_END) {
        let mut at = part.start;
        for run in long_runs(&bytes[part.clone()], BASE64, MIN_BASE64) {
            let (start, end) = (part.start + run.start, part.start + run.end);
            // This run is the continuation of an earlier one after a line break.
            if start >= at {
                at = end_of_base64(bytes, start, end);
                base64(text, start..at, found);
            }
        }
    }
    for part in reach.parts(bytes, PAIRS) {
        for run in long_runs(&bytes[part.clone()], PAIRS, 2 * MIN_PAIRS) {
            hexadecimal(bytes, part.start + run.start..part.start + run.end, found);
        }
    }
}

fn is_base64(byte: u8) -> bool {
    bytes::is(byte, BASE64)
}

/// Returns the end of base64 that begins with a line up to `first`. A run continues after a line break if the line
/// before it is full.
fn end_of_base64(bytes: &[u8], start: usize, first: usize) -> usize {
    let mut line = start;
    let mut end = first;
    while end - line >= 60 {
        let rest = &bytes[end..];
        let next = if rest.starts_with(b"\r\n") { end + 2 } else { end + 1 };
        if !matches!(rest.first(), Some(b'\r' | b'\n')) || !bytes.get(next).is_some_and(|byte| is_base64(*byte)) {
            break;
        }
        line = next;
        end = bytes::end(bytes, next, BASE64);
    }
    end
}

/// Decodes a whole run. If that is not text, it decodes the parts between characters that also separate words.
fn base64(text: &str, run: Range<usize>, found: &mut dyn FnMut(Range<usize>, &[u8])) {
    if let Some(decoded) = decode_base64(&text.as_bytes()[run.clone()]) {
        let padding = text.as_bytes()[run.end..].iter().take(2).take_while(|byte| **byte == b'=').count();
        found(run.start..run.end + padding, &decoded);
        return;
    }
    let (mut start, whole) = (run.start, text.as_bytes());
    for part in text[run].split(['-', '_', '/', '+']) {
        let place = start..start + part.len();
        start = place.end + 1;
        if part.len() >= MIN_BASE64
            && let Some(decoded) = decode_base64(part.as_bytes())
        {
            let padding = whole[place.end..].iter().take(2).take_while(|byte| **byte == b'=').count();
            found(place.start..place.end + padding, &decoded);
        }
    }
}

fn decode_base64(run: &[u8]) -> Option<Vec<u8>> {
    let without_breaks: Vec<u8>;
    let run = if run.contains(&b'\n') || run.contains(&b'\r') {
        without_breaks = run.iter().copied().filter(|byte| is_base64(*byte)).collect();
        &without_breaks
    } else {
        run
    };
    // Most long words are not base64, which their first letters already show.
    let head = &run[..run.len().min(MIN_BASE64)];
    let engine = if run.contains(&b'-') || run.contains(&b'_') { &DASH_AND_LINE } else { &PLUS_AND_SLASH };
    if !is_readable(&engine.decode(head).ok()?) {
        return None;
    }
    // A group of one character encodes no byte.
    let whole = if run.len() % 4 == 1 { &run[..run.len() - 1] } else { run };
    let decoded = engine.decode(whole).ok()?;
    std::str::from_utf8(&decoded).is_ok().then_some(decoded)
}

/// Returns true if the bytes can be the beginning of a text.
fn is_readable(bytes: &[u8]) -> bool {
    let valid = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(fault) => fault.error_len().is_none(),
    };
    valid && !bytes.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace())
}

/// Finds consecutive pairs of digits, with or without a separator: `69676e`, `69 67 6e`, `\x69\x67`, `0x69,0x67`,
/// `%69%67`. `run` consists of the bytes of such pairs.
fn hexadecimal(bytes: &[u8], run: Range<usize>, found: &mut dyn FnMut(Range<usize>, &[u8])) {
    let bytes = &bytes[..run.end];
    let (mut decoded, mut start, mut at) = (Vec::new(), 0, run.start);
    let mut end = run.start;
    while at < bytes.len() {
        let lead = if decoded.is_empty() { prefix(&bytes[at..]) } else { gap(&bytes[at..]) };
        let pair = bytes.get(at + lead..at + lead + 2).and_then(pair);
        if let Some(byte) = pair {
            if decoded.is_empty() {
                start = at;
            }
            decoded.push(byte);
            at += lead + 2;
            end = at;
            continue;
        }
        if decoded.is_empty() {
            at += 1;
        } else {
            report(&decoded, start..end, found);
            decoded.clear();
            at = at.max(end);
        }
    }
    report(&decoded, start..end, found);
}

fn report(bytes: &[u8], place: Range<usize>, found: &mut dyn FnMut(Range<usize>, &[u8])) {
    if bytes.len() >= MIN_PAIRS {
        found(place, bytes);
    }
}

fn prefix(bytes: &[u8]) -> usize {
    match bytes {
        [b'\\' | b'0', b'x' | b'X', ..] => 2,
        [b'%', ..] => 1,
        _ => 0,
    }
}

/// Returns the length of the separator between two pairs.
fn gap(bytes: &[u8]) -> usize {
    let mark = match bytes {
        [b',', b' ', ..] => 2,
        [b' ' | b':' | b',' | b'-' | b'\n', ..] => 1,
        _ => 0,
    };
    mark + prefix(&bytes[mark..])
}

fn pair(digits: &[u8]) -> Option<u8> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    match digits {
        [high, low] => u8::try_from(value(*high)? * 16 + value(*low)?).ok(),
        _ => None,
    }
}
