//! Telephone numbers: international, North American, and with a trunk prefix.

use std::ops::Range;

use super::subject::{Digits, Group, digits, gap, in_word, span};
use super::{Hint, Source};

/// The number of digits of a number with its country code.
const INTERNATIONAL: Range<usize> = 8..16;

/// The number of digits of the shortest number. Such a number needs a hint from its name.
pub(super) const SHORTEST: usize = 7;

pub(super) fn each(text: &str, digits: &Digits, source: Source, hint: Hint, found: &mut dyn FnMut(Range<usize>)) {
    for groups in digits.clusters(SHORTEST) {
        let mut first = 0;
        while first < groups.len() {
            let rest = &groups[first..];
            let count = match_international(text, rest)
                .or_else(|| match_north_american(text, groups, first))
                .or_else(|| (first == 0 && has_trunk_prefix(text, groups, hint)).then_some(groups.len()))
                .or_else(|| is_bare_north_american(text, groups, first, source, hint).then_some(1))
                .or_else(|| (first == 0 && is_named(text, groups, source, hint)).then_some(groups.len()));
            match count {
                Some(count) => {
                    found(with_marks(text, span(&rest[..count])));
                    first += count;
                }
                None => first += 1,
            }
        }
    }
}

/// Extends the span to the plus sign and the bracket before it.
fn with_marks(text: &str, span: Range<usize>) -> Range<usize> {
    let before = text.as_bytes()[..span.start].iter().rev();
    span.start - before.take(2).take_while(|byte| matches!(byte, b'+' | b'(')).count()..span.end
}

/// Matches a number after a plus sign that is not an addition.
fn match_international(text: &str, groups: &[Group]) -> Option<usize> {
    let first = groups.first()?;
    let before = text.as_bytes()[..first.start()].strip_suffix(b"(").unwrap_or(&text.as_bytes()[..first.start()]);
    let before = before.strip_suffix(b"+")?;
    if before.last().is_some_and(u8::is_ascii_alphanumeric) || text.as_bytes()[first.start()] == b'0' {
        return None;
    }
    let (mut count, mut total) = (0, 0);
    for group in groups {
        if total + group.len() >= INTERNATIONAL.end {
            break;
        }
        total += group.len();
        count += 1;
    }
    (total >= INTERNATIONAL.start).then_some(count)
}

/// Matches three, three and four digits with an optional 1 before them, if they are not part of a longer number.
fn match_north_american(text: &str, groups: &[Group], first: usize) -> Option<usize> {
    let starts_with_one = text.as_bytes()[groups[first].start()] == b'1';
    let size = |place: usize| groups.get(first + place).map_or(0, |group| group.len());
    let (count, area) = match (size(0), size(1)) {
        (1, 3) if starts_with_one && (size(2), size(3)) == (3, 4) => (4, first + 1),
        (3, 3) if size(2) == 4 => (3, first),
        (3, 7) | (6, 4) => (2, first),
        _ => return None,
    };
    let window = &groups[first..first + count];
    let before = first.checked_sub(1).map(|before| gap(text, groups[before], groups[first]));
    let after = groups.get(first + count).map(|after| gap(text, groups[first + count - 1], *after));
    let is_apart = |gap: Option<&[u8]>| gap.is_none_or(|gap| gap.iter().any(u8::is_ascii_whitespace));
    if !is_apart(before) || !is_apart(after) || in_word(text, &span(window)) {
        return None;
    }
    let only_spaces = window.windows(2).all(|pair| gap(text, pair[0], pair[1]).iter().all(u8::is_ascii_whitespace));
    // Columns of numbers look the same.
    let is_column = count == 2 || before.is_some() || after.is_some() || !is_area(text, groups[area].start());
    (!only_spaces || !is_column).then_some(count)
}

fn is_area(text: &str, start: usize) -> bool {
    matches!(text.as_bytes().get(start), Some(b'2'..=b'9'))
}

/// Matches several groups that begin with one or two zeros: the national or international trunk prefix.
fn has_trunk_prefix(text: &str, groups: &[Group], hint: Hint) -> bool {
    let [first, rest @ ..] = groups else { return false };
    let begin = &text.as_bytes()[first.start()..first.end()];
    let total = digits(groups);
    let gaps = || groups.windows(2).map(|pair| gap(text, pair[0], pair[1]));
    if rest.is_empty() || in_word(text, &span(groups)) || gaps().any(|gap| gap.contains(&b'.')) {
        return false;
    }
    if is_identifier(text, first.start(), hint) {
        return false;
    }
    match begin {
        [b'0', b'0', b'1'..=b'9', ..] => (10..18).contains(&total),
        [b'0', b'1'..=b'9', ..] => {
            let is_date = rest.first().is_some_and(|second| first.len() == 2 && second.len() == 2) && groups.len() < 5
                || rest.iter().any(|group| group.len() == 1);
            (9..13).contains(&total) && groups.len() <= 5 && !is_date
        }
        _ => false,
    }
}

/// Matches ten North American digits without separators in a string. A JSON number of ten digits is more often a count.
fn is_bare_north_american(text: &str, groups: &[Group], first: usize, source: Source, hint: Hint) -> bool {
    let group = groups[first];
    let begin = &text.as_bytes()[group.start()..group.end()];
    let has_form = match begin {
        [b'2'..=b'9', ..] => begin.len() == 10,
        [b'1', b'2'..=b'9', ..] => begin.len() == 11,
        _ => false,
    };
    let is_alone = groups.len() == 1 || {
        let before = first.checked_sub(1).map(|before| gap(text, groups[before], group));
        let after = groups.get(first + 1).map(|after| gap(text, group, *after));
        [before, after].into_iter().flatten().all(|gap| gap.iter().any(u8::is_ascii_whitespace))
    };
    has_form
        && is_alone
        && !in_word(text, &(group.start()..group.end()))
        && (source == Source::String || source == Source::Number && hint == Hint::Phone)
        && !is_identifier(text, group.start(), hint)
}

/// Nouns whose number identifies something other than a telephone.
const IDENTIFIED: &[&str] = &[
    "account",
    "aktenzeichen",
    "article",
    "artikel",
    "artikelnummer",
    "asin",
    "auftrag",
    "auftragsnummer",
    "barcode",
    "batch",
    "bestellnummer",
    "bestellung",
    "booking",
    "case",
    "claim",
    "commande",
    "contract",
    "customer",
    "ean",
    "facture",
    "factura",
    "gtin",
    "iban",
    "id",
    "imei",
    "invoice",
    "isbn",
    "item",
    "kundennummer",
    "lot",
    "model",
    "order",
    "orders",
    "parcel",
    "part",
    "pedido",
    "policy",
    "product",
    "rechnung",
    "rechnungsnummer",
    "receipt",
    "record",
    "ref",
    "reference",
    "reservation",
    "sendungsnummer",
    "serial",
    "seriennummer",
    "shipment",
    "sku",
    "ticket",
    "tracking",
    "transaction",
    "upc",
    "vin",
    "voucher",
];
/// Words between the noun and its number.
const LINKING: &[&str] =
    &["and", "code", "is", "no", "nos", "nr", "num", "number", "numbers", "nummer", "of", "or", "the", "und", "was"];
/// The length of the text in bytes in which the noun is searched.
const MAX_NOUN_DISTANCE: usize = 64;

/// Returns true if digits identify something other than a telephone, by the name of their member or by the noun
/// before them: `order number 3074185296`. Only digits without the form of a telephone number need this test.
fn is_identifier(text: &str, start: usize, hint: Hint) -> bool {
    if hint == Hint::Identifier {
        return true;
    }
    let before = &text.as_bytes()[start.saturating_sub(MAX_NOUN_DISTANCE)..start];
    let is_known = |words: &[&str], word: &[u8]| words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
    let words = before.rsplit(|byte| !byte.is_ascii_alphanumeric() && *byte < 0x80).filter(|word| !word.is_empty());
    let mut nouns = words.skip_while(|word| is_known(LINKING, word) || word.iter().all(u8::is_ascii_digit));
    hint != Hint::Phone && nouns.next().is_some_and(|word| is_known(IDENTIFIED, word))
}

/// Matches a value that consists of digits and whose name is that of a telephone number.
fn is_named(text: &str, groups: &[Group], source: Source, hint: Hint) -> bool {
    let whole = span(groups);
    let around = [&text[..whole.start], &text[whole.end..]];
    hint == Hint::Phone
        && !source.is_joined()
        && (7..16).contains(&digits(groups))
        && around.iter().all(|text| !text.bytes().any(|byte| byte.is_ascii_alphanumeric()))
}
