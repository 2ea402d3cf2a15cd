//! IP addresses.

use std::net::Ipv6Addr;
use std::ops::Range;

use super::bytes::{self, IP, Reach};
use super::subject::{Digits, in_word};

/// The length in bytes of the longest address.
const MAX_BYTES: usize = 45;

/// Reports every address. An address has at least one digit.
pub(super) fn each(text: &str, digits: &Digits, found: &mut dyn FnMut(Range<usize>)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    for group in digits.groups() {
        if group.start() < at {
            continue;
        }
        let run = bytes::begin(bytes, group.start(), IP)..bytes::end(bytes, group.end(), IP);
        at = run.end;
        // An address has more than digits.
        if run.len() > group.len() {
            find_address(text, run, found);
        }
    }
}

/// Reports the addresses that span one of the positions in `reach`.
pub(super) fn each_across(text: &str, reach: Reach<'_>, found: &mut dyn FnMut(Range<usize>)) {
    for run in reach.parts(text.as_bytes(), IP) {
        find_address(text, run, found);
    }
}

/// Reports the address in a run of address bytes.
fn find_address(text: &str, run: Range<usize>, found: &mut dyn FnMut(Range<usize>)) {
    if in_word(text, &run) {
        return;
    }
    // A sentence may end with a point, and a colon may precede a port or follow a word.
    let (start, whole) = (run.start, &text[run]);
    let trimmed = whole.trim_end_matches(['.', ':']);
    let trimmed = if whole.ends_with("::") && !trimmed.contains('.') { whole } else { trimmed };
    let lead = trimmed.len() - trimmed.trim_start_matches('.').len();
    let (first, candidate) = (start + lead, &trimmed[lead..]);
    if candidate.len() <= MAX_BYTES
        && let Some(length) = address(candidate)
    {
        found(first..first + length);
    }
}

/// Returns the length in bytes of the address at the beginning of a text that consists of it and an optional port.
fn address(text: &str) -> Option<usize> {
    if text.contains("::") || text.bytes().filter(|byte| *byte == b':').count() >= 7 {
        // Without a digit it is more often an identifier in source code.
        let is_address = text.bytes().any(|byte| byte.is_ascii_digit()) && text.parse::<Ipv6Addr>().is_ok();
        return is_address.then_some(text.len());
    }
    let (host, port) = text.split_once(':').unwrap_or((text, ""));
    let is_port = port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    (is_port && is_version_four(host)).then_some(host.len())
}

/// Returns true for four numbers up to 255, with optional leading zeros.
fn is_version_four(text: &str) -> bool {
    let octets = text.split('.').map(|octet| {
        let has_form = (1..=3).contains(&octet.len()) && octet.bytes().all(|byte| byte.is_ascii_digit());
        has_form.then(|| octet.parse::<u8>().ok()).flatten()
    });
    let mut count = 0;
    for octet in octets {
        if octet.is_none() || count == 4 {
            return false;
        }
        count += 1;
    }
    count == 4
}
