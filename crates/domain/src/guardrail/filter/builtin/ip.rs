//! Addresses of the internet protocol.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use super::groups::in_word;

/// Longest text of an address.
const MAX_BYTES: usize = 45;

pub(super) fn each(text: &str, found: &mut dyn FnMut(Range<usize>)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(start) = bytes[at..].iter().position(|byte| is_part(*byte)).map(|offset| at + offset) {
        let length = bytes[start..].iter().position(|byte| !is_part(*byte)).unwrap_or(bytes.len() - start);
        at = start + length;
        if in_word(text, &(start..at)) {
            continue;
        }
        // A sentence may end in a point, and a colon may come before a port or after a word.
        let trimmed = text[start..at].trim_end_matches(['.', ':']);
        let trimmed =
            if text[start..at].ends_with("::") && !trimmed.contains('.') { &text[start..at] } else { trimmed };
        let lead = trimmed.len() - trimmed.trim_start_matches('.').len();
        let (first, candidate) = (start + lead, &trimmed[lead..]);
        if candidate.len() <= MAX_BYTES
            && let Some(length) = address(candidate)
        {
            found(first..first + length);
        }
    }
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || matches!(byte, b'.' | b':')
}

/// Bytes of the address that a text begins with and, but for a port, consists of.
fn address(text: &str) -> Option<usize> {
    if text.contains("::") || text.bytes().filter(|byte| *byte == b':').count() >= 7 {
        // Without a digit it is more often a name in a program.
        let is_address = text.bytes().any(|byte| byte.is_ascii_digit()) && text.parse::<Ipv6Addr>().is_ok();
        return is_address.then_some(text.len());
    }
    let (host, port) = text.split_once(':').unwrap_or((text, ""));
    let is_port = port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    (is_port && is_version_four(host)).then_some(host.len())
}

/// Four numbers up to 255; zeros may lead.
fn is_version_four(text: &str) -> bool {
    let octets = text.split('.').map(|octet| {
        let has_form = (1..=3).contains(&octet.len()) && octet.bytes().all(|byte| byte.is_ascii_digit());
        has_form.then(|| octet.parse::<u8>().ok()).flatten()
    });
    let octets: Option<Vec<u8>> = octets.collect();
    octets.and_then(|octets| <[u8; 4]>::try_from(octets).ok()).map(Ipv4Addr::from).is_some()
}
