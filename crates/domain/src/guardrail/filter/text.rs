//! Views of a string: plain (escapes decoded) and normalised, each with a map to the bytes of its source.

use std::borrow::Cow;
use std::iter::repeat_n;
use std::ops::Range;

use super::builtin::any;
use super::map::{Atom, Map};
use super::normalize::{Normalized, normalize_char};

/// A text to scan, with its source map.
#[derive(Debug, Clone, Default)]
pub(super) struct View<'t> {
    pub(super) text: Cow<'t, str>,
    pub(super) map: Map,
}

impl<'t> View<'t> {
    fn whole(text: &'t str, base: usize) -> Self {
        Self { text: Cow::Borrowed(text), map: Map::new(base) }
    }

    pub(super) fn empty(base: usize) -> Self {
        Self { text: Cow::Owned(String::new()), map: Map::new(base) }
    }

    /// Appends text that is the same in the source.
    pub(super) fn push_same(&mut self, text: &str) {
        self.text.to_mut().push_str(text);
    }

    /// Appends text that replaces the next bytes of the source, such as an escape.
    pub(super) fn push_replacement(&mut self, text: &str, source: Range<usize>) {
        let start = self.text.len();
        self.map.push(&Atom { view: start..start + text.len(), source });
        self.text.to_mut().push_str(text);
    }
}

impl View<'_> {
    /// Appends a range of another view, mapped to that view's source.
    fn push_view(&mut self, other: &View<'_>, place: Range<usize>) {
        let mut at = place.start;
        if place.is_empty() {
            return;
        }
        let atoms = other.map.atoms_from(at).skip_while(|atom| atom.view.end <= place.start);
        for Atom { view, source } in atoms.take_while(|atom| atom.view.start < place.end) {
            self.push_same(&other.text[at..view.start.max(at)]);
            self.push_replacement(&other.text[view.start.max(at)..view.end.min(place.end)], source);
            at = view.end.min(place.end);
        }
        self.push_same(&other.text[at..place.end]);
    }
}

/// The highest nesting of JSON within JSON for which escapes are decoded.
const MAX_NESTING: usize = 4;

/// A string in both views.
#[derive(Debug, Clone, Default)]
pub(super) struct Views<'t> {
    /// The plain view: the string with its escapes decoded.
    pub(super) plain: View<'t>,
    /// The plain view with nested escapes decoded, such as those of JSON within a string; `None` if there are none.
    inner: Option<View<'t>>,
    /// The normalised view; `None` if it equals the plain one.
    pub(super) normalized: Option<View<'t>>,
}

impl<'t> Views<'t> {
    /// Creates the views of a JSON string's content, which begins at `base` in its source.
    pub(super) fn of_json(content: &'t str, base: usize) -> Self {
        let plain = View::whole(content, base);
        // Most strings are the same in every view.
        if !any(content.as_bytes(), is_special) {
            return Self { plain, ..Self::default() };
        }
        Self::of(if content.contains('\\') { decode_escapes(content, base) } else { plain })
    }

    /// Creates the views of a text that is not JSON.
    pub(super) fn of_text(text: &'t str) -> Self {
        Self::of(View::whole(text, 0))
    }

    /// Creates the views of a text that was assembled from views, without decoding it again.
    pub(super) fn verbatim(text: &'t str) -> Self {
        Self { plain: View::whole(text, 0), ..Self::default() }
    }

    fn of(plain: View<'t>) -> Self {
        if !any(plain.text.as_bytes(), is_special) {
            return Self { plain, ..Self::default() };
        }
        let mut inner: Option<View<'t>> = None;
        for _ in 0..MAX_NESTING {
            match decode_nested_escapes(inner.as_ref().unwrap_or(&plain)) {
                Some(read) => inner = Some(read),
                None => break,
            }
        }
        let normalized = normalize_view(inner.as_ref().unwrap_or(&plain));
        // A nested escape makes a difference even if nothing is normalised.
        let normalized = normalized.or_else(|| inner.clone());
        Self { plain, inner, normalized }
    }

    /// Returns the view with every escape decoded and nothing normalised.
    pub(super) fn unescaped(&self) -> &View<'t> {
        self.inner.as_ref().unwrap_or(&self.plain)
    }

    /// Returns the normalised view.
    pub(super) fn normalized_or_plain(&self) -> &View<'t> {
        self.normalized.as_ref().unwrap_or(&self.plain)
    }
}

/// Decodes the escapes in the content of a JSON string.
fn decode_escapes<'t>(content: &str, base: usize) -> View<'t> {
    let mut view = View::empty(base);
    let mut at = 0;
    while let Some(offset) = content.as_bytes()[at..].iter().position(|byte| *byte == b'\\') {
        if offset > 0 {
            view.push_same(&content[at..at + offset]);
            at += offset;
        }
        let (read, length) = next_char(content, at, true);
        view.push_replacement(read.encode_utf8(&mut [0; 4]), base + at..base + at + length);
        at += length;
    }
    if at < content.len() {
        view.push_same(&content[at..]);
    }
    view
}

/// Decodes the four-digit escapes in the text of a view, for any number of backslashes: nested JSON doubles them.
/// Returns `None` if there are none.
fn decode_nested_escapes<'t>(view: &View<'_>) -> Option<View<'t>> {
    let text = &*view.text;
    let mut read: Option<View<'t>> = None;
    let (mut copied, mut at) = (0, 0);
    while let Some(offset) = text.as_bytes()[at..].iter().position(|byte| *byte == b'\\') {
        let start = at + offset;
        let Some((c, end)) = nested_escape(text, start) else {
            at = end_of_backslashes(text, start);
            continue;
        };
        let read = read.get_or_insert_with(|| View::empty(view.map.base()));
        read.push_view(view, copied..start);
        read.push_replacement(c.encode_utf8(&mut [0; 4]), view.map.source(start..end));
        (copied, at) = (end, end);
    }
    let mut read = read?;
    read.push_view(view, copied..text.len());
    Some(read)
}

/// Returns the character of an escape whose backslashes begin at `start`, and its end.
fn nested_escape(text: &str, start: usize) -> Option<(char, usize)> {
    let unit = |start: usize| {
        let digits = end_of_backslashes(text, start);
        let digits = text.get(digits..).filter(|_| digits > start)?.strip_prefix('u')?.get(..4)?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
        Some((code, end_of_backslashes(text, start) + 5))
    };
    let (code, end) = unit(start)?;
    match code {
        0xd800..0xdc00 => {
            let (low @ 0xdc00..=0xdfff, end) = unit(end)? else { return None };
            char::from_u32(0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00)).map(|c| (c, end))
        }
        _ => char::from_u32(code).map(|c| (c, end)),
    }
}

fn end_of_backslashes(text: &str, start: usize) -> usize {
    start + text.as_bytes()[start..].iter().take_while(|byte| **byte == b'\\').count()
}

/// Normalises a view; returns `None` if nothing changes.
fn normalize_view<'t>(view: &View<'_>) -> Option<View<'t>> {
    let text = &*view.text;
    let mut normalized: Option<View<'t>> = None;
    let (mut copied, mut at) = (0, 0);
    while at < text.len() {
        let Some(offset) = text.as_bytes()[at..].iter().position(|byte| may_normalize(*byte)) else { break };
        at += offset;
        let Some(c) = text[at..].chars().next() else { break };
        let (start, mut buffer) = (at, [0; 4]);
        at += c.len_utf8();
        let replacement = match normalize_char(c) {
            Normalized::Same => continue,
            Normalized::Ascii(byte) => &*char::from(byte).encode_utf8(&mut buffer),
            Normalized::Text(text) => text,
            Normalized::Removed => "",
        };
        let normalized = normalized.get_or_insert_with(|| View::empty(view.map.base()));
        normalized.push_view(view, copied..start);
        normalized.push_replacement(replacement, view.map.source(start..at));
        copied = at;
    }
    let mut normalized = normalized?;
    normalized.push_view(view, copied..text.len());
    Some(normalized)
}

/// Returns true if a byte may begin an escape or a character that is normalised.
fn is_special(byte: u8) -> bool {
    may_normalize(byte) || byte == b'\\'
}

/// Returns true if a byte may belong to a character that is normalised.
fn may_normalize(byte: u8) -> bool {
    byte >= 0x7f || (byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r'))
}

/// Returns the character at a position and its length in bytes.
fn next_char(content: &str, at: usize, escapes: bool) -> (char, usize) {
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
        b'u' => decode_unicode_escape(rest),
        b'"' | b'\\' | b'/' => simple(char::from(escape)),
        // Valid JSON has no other escape.
        _ => (first, 1),
    }
}

/// Decodes an escape of four hexadecimal digits, or a surrogate pair of two.
fn decode_unicode_escape(rest: &str) -> (char, usize) {
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

/// Returns the end of the longest prefix of a JSON string's content with at most `most` bytes, and the start of the
/// longest such suffix. Neither cuts a character or an escape.
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
        at += next_char(content, at, true).1;
    }
    (head, tail)
}

/// The highest number of zeros that an exponent adds. More zeros add no information.
const MAX_ZEROS: usize = 40;

/// Returns a JSON number without its exponent; `None` if it has no exponent or its absolute value is below one. The
/// result is exact except for zeros beyond [`MAX_ZEROS`]. Memory is linear in the length of the text.
pub(super) fn expand_exponent(number: &str) -> Option<String> {
    let (mantissa, exponent) = number.trim_start_matches('-').split_once(['e', 'E'])?;
    // Exponents beyond `i64` make the number zero or infinite.
    let exponent: i64 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    let leading = i64::try_from(digits.len() - significant.len()).ok()?;
    let significant = significant.trim_end_matches('0');
    let places = i64::try_from(whole.len()).ok()?.checked_add(exponent)?.checked_sub(leading)?;
    let places = usize::try_from(places).ok().filter(|places| *places > 0 && !significant.is_empty())?;
    Some(match significant.split_at_checked(places) {
        Some((whole, "")) => whole.to_owned(),
        Some((whole, fraction)) => format!("{whole}.{fraction}"),
        None => {
            let zeros = (places - significant.len()).min(MAX_ZEROS);
            significant.chars().chain(repeat_n('0', zeros)).collect()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// Returns the source of a part of a view.
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
    fn plain_view_maps_to_source(#[case] json: &str, #[case] part: &str, #[case] expected: &str) {
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
    #[case::escaped_backslash(r"x a\u005cu0040b y", "a@b", r"a\u005cu0040b")]
    #[case::escaped_letter_u(r"x a\\\u0075\u0030040b y", "a@b", r"a\\\u0075\u0030040b")]
    #[case::escaped_thrice(r"x a\\\\u0040b y", "a@b", r"a\\\\u0040b")]
    #[case::escaped_escape(r"x a\\u005cu0040b y", "a@b", r"a\\u005cu0040b")]
    #[case::pair_escaped_twice(r"x \\ud835\\udfd9g y", "1g", r"\\ud835\\udfd9g")]
    #[case::disguise_escaped_twice(r"x \\u0456g y", "ig", r"\\u0456g")]
    #[case::between_disguises(r"ｘ\\u0040ｙz w", "x@yz", r"ｘ\\u0040ｙz")]
    #[case::after("ｘ yz", "yz", "yz")]
    fn normalized_view_maps_to_source(#[case] json: &str, #[case] part: &str, #[case] expected: &str) {
        let views = Views::of_json(json, 0);
        assert_eq!(source(json, views.normalized_or_plain(), part), expected);
    }

    #[test]
    fn of_text_decodes_escapes() {
        let text = r"a\u0040b c:\users\u00 \ud835x";
        assert_eq!(Views::of_text(text).plain.text, text);
        assert_eq!(Views::of_text(text).normalized_or_plain().text, r"a@b c:\users\u00 \ud835x");
        assert_eq!(source(text, Views::of_text(text).normalized_or_plain(), "a@b c"), r"a\u0040b c");
    }

    #[test]
    fn repeated_backslashes_take_linear_time() {
        let text = r"\".repeat(400_000);
        assert_eq!(Views::of_json(&text, 0).normalized_or_plain().text.len(), 200_000);
        assert_eq!(Views::of_text(&text).normalized_or_plain().text.len(), 400_000);
        let nested = format!("{}u0040", r"\ud800".repeat(50_000));
        assert!(Views::of_text(&nested).normalized_or_plain().text.len() > 100_000);
    }

    #[test]
    fn source_positions_start_at_base() {
        assert_eq!(Views::of_json("abc", 10).plain.map.source(1..2), 11..12);
        assert_eq!(Views::of_json(r"\nbc", 10).plain.map.source(1..2), 12..13);
    }

    #[test]
    fn ends_cuts_between_characters() {
        assert_eq!(ends("aéb", 2, true), (1, 3));
        assert_eq!(ends(r"ab\u0041cd", 4, true), (2, 8));
        assert_eq!(ends(r"\\\\\\", 3, true), (2, 4));
        assert_eq!(ends("abc", 8, true), (3, 0));
    }

    #[test]
    fn lone_surrogates_are_replaced() {
        assert_eq!(Views::of_json(r"\ud83dx", 0).plain.text, "\u{fffd}x");
        assert_eq!(Views::of_json(r"\ud83d\u0041", 0).plain.text, "\u{fffd}A");
    }
}

#[cfg(test)]
mod number_tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("4.111e3", Some("4111"))]
    #[case("-4.1115E+3", Some("4111.5"))]
    #[case("41110e-1", Some("4111"))]
    #[case("0.4111e4", Some("4111"))]
    #[case("0.0004111e7", Some("4111"))]
    #[case("4e3", Some("4000"))]
    #[case("4111e00000000000000000000000000000", Some("4111"))]
    #[case("4111", None)]
    #[case("4111e-4", None)]
    #[case("0e9", None)]
    #[case("0.000e9", None)]
    #[case("1e-99999999999999999999", None)]
    #[case("1e9223372036854775807", None)]
    fn expand_exponent_moves_the_point(#[case] number: &str, #[case] expected: Option<&str>) {
        assert_eq!(expand_exponent(number).as_deref(), expected);
    }

    #[test]
    fn expand_exponent_is_exact_when_the_number_is_long() {
        for length in [1, 39, 40, 41, 100, 100_000] {
            let (zeros, ones) = ("0".repeat(length), "1".repeat(length));
            assert_eq!(expand_exponent(&format!("4111{zeros}e-{length}")).unwrap(), "4111");
            assert_eq!(expand_exponent(&format!("0.{zeros}4111e{}", length + 4)).unwrap(), "4111");
            assert_eq!(expand_exponent(&format!("4.111{zeros}e3")).unwrap(), "4111");
            assert_eq!(expand_exponent(&format!("4111{ones}e-{length}")).unwrap(), format!("4111.{ones}"));
        }
    }

    #[test]
    fn expand_exponent_limits_added_zeros() {
        assert_eq!(expand_exponent("4.111e43").unwrap(), format!("4111{}", "0".repeat(40)));
        assert_eq!(expand_exponent("4.111e999999999").unwrap(), format!("4111{}", "0".repeat(40)));
    }
}
