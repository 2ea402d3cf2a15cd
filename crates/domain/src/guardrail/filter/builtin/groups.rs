//! Groups of digits and what parts them: what cards, telephone and social security numbers are made of.

use std::ops::Range;

/// A run of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Group {
    pub(super) fn len(self) -> usize {
        self.end - self.start
    }
}

/// Most bytes between two groups of one number.
const MAX_GAP: usize = 3;

fn is_gap(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'-' | b'.' | b'/' | b'(' | b')')
}

/// Gives groups that stand together, as long as nothing but a little punctuation parts them.
pub(super) fn clusters(text: &str, mut found: impl FnMut(&[Group])) {
    let bytes = text.as_bytes();
    let mut groups: Vec<Group> = Vec::new();
    let mut at = 0;
    while let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|offset| at + offset) {
        let length = bytes[start..].iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len() - start);
        let goes_on = groups.last().is_some_and(|last| {
            let gap = &bytes[last.end..start];
            gap.len() <= MAX_GAP && gap.iter().all(|byte| is_gap(*byte))
        });
        if !goes_on && !groups.is_empty() {
            found(&groups);
            groups.clear();
        }
        at = start + length;
        groups.push(Group { start, end: at });
    }
    if !groups.is_empty() {
        found(&groups);
    }
}

/// What stands between two groups.
pub(super) fn gap(text: &str, left: Group, right: Group) -> &[u8] {
    &text.as_bytes()[left.end..right.start]
}

/// Digits of all groups.
pub(super) fn digits(groups: &[Group]) -> usize {
    groups.iter().map(|group| group.len()).sum()
}

/// From the first to the last.
pub(super) fn span(groups: &[Group]) -> Range<usize> {
    match (groups.first(), groups.last()) {
        (Some(first), Some(last)) => first.start..last.end,
        _ => 0..0,
    }
}

/// Most underscores by which a text sets something off.
const MAX_EMPHASIS: usize = 8;

/// True where a letter or digit stands directly before or after, or beyond underscores there. Underscores that nothing
/// stands beyond are emphasis.
pub(super) fn in_word(text: &str, span: &Range<usize>) -> bool {
    let (before, after) = (&text.as_bytes()[..span.start], &text.as_bytes()[span.end..]);
    let is_line = |byte: &&u8| **byte == b'_';
    let mut before = before.iter().rev().take(MAX_EMPHASIS).skip_while(is_line);
    let mut after = after.iter().take(MAX_EMPHASIS).skip_while(is_line);
    [before.next(), after.next()].into_iter().flatten().any(u8::is_ascii_alphanumeric)
}
