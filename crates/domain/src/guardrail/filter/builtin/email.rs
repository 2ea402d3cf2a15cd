//! E-mail addresses.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use super::bytes::{self, AT, DOMAIN, LOCAL, Reach};

const MAX_LOCAL: usize = 64;
const MAX_DOMAIN: usize = 255;
/// Extensions of file names such as `icon@2x.png`.
const FILE_EXTENSIONS: &[&str] = &["png", "jpg", "jpeg", "gif", "svg", "webp"];
/// Users of version control hosts. Before a path they are part of a repository's location: `git@github.com:a/b.git`.
const REPOSITORY_USERS: &[&[u8]] = &[b"git", b"hg", b"svn"];

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
    let start = find_quoted_local(bytes, from, sign).or_else(|| find_local(bytes, from, sign))?;
    let rest = &bytes[sign + 1..bytes.len().min(sign + 1 + MAX_DOMAIN)];
    let domain = domain_literal_len(rest).or_else(|| domain_len(&rest[..bytes::end(rest, 0, DOMAIN)]))?;
    let address = start..sign + 1 + domain;
    (!is_repository_location(bytes, &address, sign)).then_some(address)
}

/// Returns the start of an unquoted local part before an at sign.
fn find_local(bytes: &[u8], from: usize, sign: usize) -> Option<usize> {
    let before = bytes[from..sign].iter().rev().take_while(|byte| bytes::is(**byte, LOCAL)).count();
    let mut start = sign - before;
    while start < sign && (bytes[start].is_ascii_punctuation() && !matches!(bytes[start], b'_' | b'+')) {
        start += 1;
    }
    (start < sign && bytes[sign - 1] != b'.').then_some(start)
}

/// Returns the start of a local part in quotes (RFC 5321, section 4.1.2) before an at sign.
fn find_quoted_local(bytes: &[u8], from: usize, sign: usize) -> Option<usize> {
    let content = bytes[from..sign].strip_suffix(b"\"")?;
    let line = content.iter().rposition(|byte| matches!(byte, b'\r' | b'\n')).map_or(0, |line| line + 1);
    let is_quote = |place: &usize| content[*place] == b'"';
    let is_escaped = |place: usize| place.checked_sub(1).is_some_and(|before| content[before] == b'\\');
    let quotes = || (line..content.len()).rev().filter(is_quote);
    let open = quotes().find(|place| !is_escaped(*place)).or_else(|| quotes().next())?;
    (open + 1 < content.len()).then_some(from + open)
}

/// Returns the length of an address in brackets (RFC 5321, section 4.1.3) at the beginning of a text: `[192.0.2.1]`,
/// `[IPv6:2001:db8::1]`.
fn domain_literal_len(text: &[u8]) -> Option<usize> {
    let close = text.iter().take("[IPv6:]".len() + 45).position(|byte| *byte == b']')?;
    let address = std::str::from_utf8(text[..close].strip_prefix(b"[")?).ok()?;
    let is_v6 = |prefix: &str| prefix.eq_ignore_ascii_case("IPv6:");
    let is_literal = match address.split_at_checked("IPv6:".len()) {
        Some((prefix, rest)) if is_v6(prefix) => rest.parse::<Ipv6Addr>().is_ok(),
        _ => address.parse::<Ipv4Addr>().is_ok(),
    };
    is_literal.then_some(close + 1)
}

/// Returns true if an address is the user and host of a repository: in a URL, or before a colon and a path.
fn is_repository_location(bytes: &[u8], address: &Range<usize>, sign: usize) -> bool {
    let is_user = REPOSITORY_USERS.iter().any(|user| bytes[address.start..sign].eq_ignore_ascii_case(user));
    let path = &bytes[address.end..];
    let has_path = matches!(path, [b':' | b'/', next, ..] if !next.is_ascii_whitespace());
    is_user && (has_path || bytes[..address.start].ends_with(b"://"))
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
