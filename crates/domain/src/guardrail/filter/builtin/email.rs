//! E-mail addresses.

use std::ops::Range;

use super::bytes::{self, AT, DOMAIN, LOCAL, Reach};

const MAX_LOCAL: usize = 64;
const MAX_DOMAIN: usize = 255;
/// Extensions of file names such as `icon@2x.png`.
const FILE_EXTENSIONS: &[&str] = &["png", "jpg", "jpeg", "gif", "svg", "webp"];

pub(super) fn each(text: &str, reach: Reach<'_>, found: &mut dyn FnMut(Range<usize>)) {
    let bytes = text.as_bytes();
    if !bytes::has(bytes, b'@') {
        return;
    }
    for part in reach.parts(bytes, LOCAL | DOMAIN | AT) {
        let mut at = part.start;
        while let Some(sign) = bytes::find(&bytes[..part.end], at, AT) {
            match find_address(bytes, at, sign) {
                Some(span) => {
                    at = span.end;
                    found(span);
                }
                None => at = sign + 1,
            }
        }
    }
}

/// Returns the address around an at sign, not reaching before `from`.
fn find_address(bytes: &[u8], from: usize, sign: usize) -> Option<Range<usize>> {
    let from = from.max(sign.saturating_sub(MAX_LOCAL));
    let before = bytes[from..sign].iter().rev().take_while(|byte| bytes::is(**byte, LOCAL)).count();
    let mut start = sign - before;
    while start < sign && (bytes[start].is_ascii_punctuation() && !matches!(bytes[start], b'_' | b'+')) {
        start += 1;
    }
    if start == sign || bytes[sign - 1] == b'.' {
        return None;
    }
    let rest = &bytes[sign + 1..bytes.len().min(sign + 1 + MAX_DOMAIN)];
    let domain = domain_len(&rest[..bytes::end(rest, 0, DOMAIN)])?;
    Some(start..sign + 1 + domain)
}

/// Returns the length in bytes of the domain at the beginning of a text: labels separated by points, the last of
/// letters only.
fn domain_len(text: &[u8]) -> Option<usize> {
    let (mut end, mut labels, mut at) = (None, 0, 0);
    for label in text.split(|byte| *byte == b'.') {
        let trimmed = label.len() - label.iter().rev().take_while(|byte| **byte == b'-').count();
        if trimmed == 0 || label[0] == b'-' {
            break;
        }
        labels += 1;
        // Text after a hyphen may not belong to the address if the label before has two or more letters.
        let letters = label.iter().take_while(|byte| byte.is_ascii_alphabetic() || **byte >= 0x80).count();
        let is_top = letters >= 2 && matches!(label.get(letters), None | Some(b'-')) || label.starts_with(b"xn--");
        let name = if label.starts_with(b"xn--") { trimmed } else { letters };
        if labels >= 2 && is_top && !FILE_EXTENSIONS.iter().any(|no| no.as_bytes().eq_ignore_ascii_case(&label[..name]))
        {
            end = Some(at + name);
        }
        if trimmed < label.len() {
            break;
        }
        at += label.len() + 1;
    }
    end
}
