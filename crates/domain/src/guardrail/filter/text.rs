//! A string of a request as it is read, and as it looks, each with the way back to the bytes it came from.

use std::borrow::Cow;
use std::ops::Range;

use super::fold::{Folded, fold};

/// The way from places in a view to places in the source.
#[derive(Debug, Clone, Default)]
pub(super) struct Map {
    /// Where the source of the view begins.
    base: usize,
    /// In order of both places. Before the first, and within one that is no atom, bytes go one to one.
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    view: usize,
    source: usize,
    /// Bytes in the source of the one character that stands here as something else; 0 where bytes go one to one.
    atom: usize,
}

impl Map {
    fn segment(&self, view: usize) -> Option<Segment> {
        let after = self.segments.partition_point(|segment| segment.view <= view);
        self.segments.get(after.checked_sub(1)?).copied()
    }

    /// The bytes of the source that a range of the view, which is not empty, stands for.
    pub(super) fn source(&self, view: Range<usize>) -> Range<usize> {
        let start = match self.segment(view.start) {
            None => self.base + view.start,
            Some(segment) if segment.atom > 0 => segment.source,
            Some(segment) => segment.source + (view.start - segment.view),
        };
        let end = match self.segment(view.end.saturating_sub(1)) {
            None => self.base + view.end,
            Some(segment) if segment.atom > 0 => segment.source + segment.atom,
            Some(segment) => segment.source + (view.end - segment.view),
        };
        start..end.max(start)
    }
}

/// A text to look through.
#[derive(Debug, Clone, Default)]
pub(super) struct View<'t> {
    pub(super) text: Cow<'t, str>,
    pub(super) map: Map,
    /// True while the last segment is an atom, so that what follows one to one begins another.
    after_atom: bool,
}

impl<'t> View<'t> {
    fn whole(text: &'t str, base: usize) -> Self {
        Self { text: Cow::Borrowed(text), map: Map { base, segments: Vec::new() }, after_atom: false }
    }

    fn empty(base: usize) -> Self {
        Self { text: Cow::Owned(String::new()), map: Map { base, segments: Vec::new() }, after_atom: false }
    }

    /// Text that stands in the source as it is.
    pub(super) fn same(&mut self, text: &str, source: usize) {
        if self.after_atom {
            self.map.segments.push(Segment { view: self.text.len(), source, atom: 0 });
            self.after_atom = false;
        }
        self.text.to_mut().push_str(text);
    }

    /// Text that stands for one character of the source.
    pub(super) fn instead(&mut self, text: &str, source: Range<usize>) {
        self.map.segments.push(Segment { view: self.text.len(), source: source.start, atom: source.len() });
        self.after_atom = true;
        self.text.to_mut().push_str(text);
    }
}

impl View<'_> {
    /// What a character of the source looks like.
    fn looks_like(&mut self, c: char, source: Range<usize>) {
        let mut buffer = [0; 4];
        let text = match fold(c) {
            Folded::Same => &*c.encode_utf8(&mut buffer),
            Folded::Ascii(byte) => &*char::from(byte).encode_utf8(&mut buffer),
            Folded::Several(text) => text,
            Folded::Nothing => "",
        };
        self.instead(text, source);
    }
}

/// A string in both views.
#[derive(Debug, Clone, Default)]
pub(super) struct Views<'t> {
    /// As it is read.
    pub(super) plain: View<'t>,
    /// As it looks; `None` where that is the same.
    pub(super) folded: Option<View<'t>>,
}

impl<'t> Views<'t> {
    /// The content of a JSON string, which begins at `base` in its source.
    pub(super) fn of_json(content: &'t str, base: usize) -> Self {
        Self::of(content, base, true)
    }

    /// A text that is no JSON.
    pub(super) fn of_text(text: &'t str) -> Self {
        Self::of(text, 0, false)
    }

    /// A text that has been put together from views, and is one itself.
    pub(super) fn verbatim(text: &'t str) -> Self {
        Self { plain: View::whole(text, 0), folded: None }
    }

    fn of(content: &'t str, base: usize, escapes: bool) -> Self {
        if !has_special(content.as_bytes(), escapes) {
            return Self { plain: View::whole(content, base), folded: None };
        }
        let (mut plain, mut folded) = (View::empty(base), View::empty(base));
        let mut differs = false;
        let bytes = content.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let run = bytes[at..].iter().position(|byte| is_special(*byte, escapes)).unwrap_or(bytes.len() - at);
            if run > 0 {
                plain.same(&content[at..at + run], base + at);
                folded.same(&content[at..at + run], base + at);
                at += run;
                continue;
            }
            if let Some(inner) = escaped_twice(&content[at..]).filter(|_| escapes) {
                // JSON within a string, as arguments of calls are: the escape is text here and a character in there.
                plain.instead("\\", base + at..base + at + 2);
                plain.same(&content[at + 2..at + 7], base + at + 2);
                let source = base + at..base + at + 7;
                folded.looks_like(inner, source);
                differs = true;
                at += 7;
                continue;
            }
            let (read, length) = one(content, at, escapes);
            let source = base + at..base + at + length;
            let mut buffer = [0; 4];
            let encoded = &*read.encode_utf8(&mut buffer);
            let as_is = encoded == &content[at..at + length];
            if as_is {
                plain.same(encoded, source.start);
            } else {
                plain.instead(encoded, source.clone());
            }
            at += length;
            if fold(read) != Folded::Same {
                differs = true;
                folded.looks_like(read, source);
            } else if as_is {
                folded.same(encoded, source.start);
            } else {
                folded.instead(encoded, source);
            }
        }
        Self { plain, folded: differs.then_some(folded) }
    }

    /// The view in which disguises are off.
    pub(super) fn looks(&self) -> &View<'t> {
        self.folded.as_ref().unwrap_or(&self.plain)
    }
}

/// True where a byte is not simply itself. Looks at many bytes at once.
fn has_special(bytes: &[u8], escapes: bool) -> bool {
    bytes.chunks(64).any(|chunk| chunk.iter().fold(false, |any, byte| any | is_special(*byte, escapes)))
}

/// True where a byte is not simply itself in both views.
fn is_special(byte: u8, escapes: bool) -> bool {
    byte >= 0x7f || (byte == b'\\' && escapes) || (byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r'))
}

/// The character that begins at a place, and how many bytes it takes there.
fn one(content: &str, at: usize, escapes: bool) -> (char, usize) {
    let rest = &content[at..];
    let first = rest.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER);
    if first != '\\' || !escapes {
        return (first, first.len_utf8());
    }
    let escape = rest.as_bytes().get(1).copied().unwrap_or(b'\\');
    let simple = |c: char| (c, 2);
    match escape {
        b'n' => simple('\n'),
        b't' => simple('\t'),
        b'r' => simple('\r'),
        b'b' => simple('\u{8}'),
        b'f' => simple('\u{c}'),
        b'u' => unicode(rest),
        b'"' | b'\\' | b'/' => simple(char::from(escape)),
        // No JSON has another.
        _ => (first, 1),
    }
}

/// The character of an escape of four digits whose backslash is escaped itself.
fn escaped_twice(rest: &str) -> Option<char> {
    let digits = rest.strip_prefix(r"\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten().and_then(char::from_u32)
}

/// An escape of four hexadecimal digits, or two that make one character.
fn unicode(rest: &str) -> (char, usize) {
    let unit = |at: usize| rest.get(at..at + 4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let high = unit(2).unwrap_or(0xfffd);
    if (0xd800..0xdc00).contains(&high)
        && rest.get(6..8) == Some("\\u")
        && let Some(low @ 0xdc00..=0xdfff) = unit(8)
    {
        let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
    }
    (char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER), rest.len().min(6))
}

/// The longest beginning of the content of a JSON string that has at most `most` bytes, and the longest end, both cut
/// between characters and not within an escape.
pub(super) fn ends(content: &str, most: usize, escapes: bool) -> (usize, usize) {
    let wanted = content.len().saturating_sub(most);
    if !escapes || !content.contains('\\') {
        return (content.floor_char_boundary(most), content.ceil_char_boundary(wanted));
    }
    let (mut at, mut head, mut tail) = (0, 0, content.len());
    while at < content.len() {
        if at <= most {
            head = at;
        }
        if at >= wanted {
            tail = at;
            break;
        }
        at += one(content, at, true).1;
    }
    (head, tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// What a part of a view stands for.
    fn source<'a>(json: &'a str, view: &View<'_>, part: &str) -> &'a str {
        let start = view.text.find(part).unwrap();
        &json[view.map.source(start..start + part.len())]
    }

    #[rstest]
    #[case::plain("a b", "b", "b")]
    #[case::escape(r"a\u0040b.c", "@b", r"\u0040b")]
    #[case::short_escape(r#"a\n\"b\" c"#, "b\" c", r#"b\" c"#)]
    #[case::two_halves(r"x\ud83d\ude00y", "😀y", r"\ud83d\ude00y")]
    #[case::slash(r"a\/b", "/", r"\/")]
    #[case::after_an_escape(r"\u0061bcd", "cd", "cd")]
    fn a_view_leads_back(#[case] json: &str, #[case] part: &str, #[case] expected: &str) {
        assert_eq!(source(json, &Views::of_json(json, 0).plain, part), expected);
    }

    #[rstest]
    #[case::full_width("x ａ＠ｂ y", "a@b", "ａ＠ｂ")]
    #[case::invisible("x i\u{200b}g\u{200b} y", "ig", "i\u{200b}g")]
    #[case::several("x oﬃce y", "ffi", "ﬃ")]
    #[case::within_several("x oﬃce y", "of", "oﬃ")]
    #[case::json_in_json(r"x a\\u0040b y", "a@b", r"a\\u0040b")]
    #[case::no_escape_in_there(r"c:\\users", "\\users", r"\\users")]
    #[case::escaped_disguise(r"x \u0456g y", "ig", r"\u0456g")]
    #[case::after("ｘ yz", "yz", "yz")]
    fn the_folded_view_leads_back(#[case] json: &str, #[case] part: &str, #[case] expected: &str) {
        let views = Views::of_json(json, 0);
        assert_eq!(source(json, views.looks(), part), expected);
    }

    #[test]
    fn places_count_from_where_the_source_begins() {
        assert_eq!(Views::of_json("abc", 10).plain.map.source(1..2), 11..12);
        assert_eq!(Views::of_json(r"\nbc", 10).plain.map.source(1..2), 12..13);
    }

    #[test]
    fn ends_are_cut_between_characters() {
        assert_eq!(ends("aéb", 2, true), (1, 3));
        assert_eq!(ends(r"ab\u0041cd", 4, true), (2, 8));
        assert_eq!(ends(r"\\\\\\", 3, true), (2, 4));
        assert_eq!(ends("abc", 8, true), (3, 0));
    }

    #[test]
    fn half_a_pair_does_no_harm() {
        assert_eq!(Views::of_json(r"\ud83dx", 0).plain.text, "\u{fffd}x");
        assert_eq!(Views::of_json(r"\ud83d\u0041", 0).plain.text, "\u{fffd}A");
    }
}
