//! The text that built-in filters scan.

use std::ops::Range;

use super::bytes::{self, DIGIT, GAP, Reach};

/// The origin of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::guardrail::filter) enum Source {
    /// A name or a string value.
    String,
    /// A number as written.
    Number,
    /// Neighbouring strings, concatenated.
    Concatenated,
    /// Neighbouring strings, joined with spaces. Telephone and social security numbers are not searched here: they may
    /// contain spaces, so unrelated neighbouring numbers would match.
    SpaceSeparated,
}

impl Source {
    /// Returns true if the text is made of neighbouring strings.
    pub(in crate::guardrail::filter) fn is_joined(self) -> bool {
        matches!(self, Self::Concatenated | Self::SpaceSeparated)
    }
}

/// A text to scan.
#[derive(Debug, Clone, Copy)]
pub(in crate::guardrail::filter) struct Subject<'t> {
    /// The normalised text.
    pub(in crate::guardrail::filter) text: &'t str,
    pub(in crate::guardrail::filter) source: Source,
    pub(in crate::guardrail::filter) hint: Hint,
    /// The start positions of the second and each further string in a text made of neighbours. Matches within one
    /// string may be left out, because the scan of that string reports them.
    pub(in crate::guardrail::filter) joints: &'t [usize],
}

impl Subject<'_> {
    pub(super) fn reach(&self) -> Reach<'_> {
        if self.source.is_joined() { Reach::Across(self.joints) } else { Reach::Whole }
    }
}

/// The kind of a value according to its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::guardrail::filter) enum Hint {
    /// No relevant kind.
    #[default]
    None,
    /// A secret.
    Secret,
    /// A social security number.
    Ssn,
    /// A telephone number.
    Phone,
    /// The number of an order, a product or another thing.
    Identifier,
}

/// Endings of names of secrets, without case and punctuation.
const SECRETS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "apikey",
    "secretkey",
    "accesskey",
    "privatekey",
    "signingkey",
    "encryptionkey",
    "clientsecret",
    "appsecret",
    "sharedsecret",
    "webhooksecret",
    "secretaccesskey",
    "authtoken",
    "accesstoken",
    "refreshtoken",
    "bearertoken",
    "sessiontoken",
    "apitoken",
];
const SSN: &[&str] = &["ssn", "socialsecurity", "socialsecuritynumber"];
const PHONE: &[&str] =
    &["phone", "phonenumber", "telephone", "tel", "mobile", "mobilenumber", "cell", "cellphone", "fax", "msisdn"];
/// Endings of names of identifiers that consist of digits.
const IDENTIFIERS: &[&str] = &[
    "articlenumber",
    "articleno",
    "barcode",
    "caseid",
    "casenumber",
    "customernumber",
    "ean",
    "gtin",
    "imei",
    "invoiceid",
    "invoiceno",
    "invoicenumber",
    "itemid",
    "itemnumber",
    "orderid",
    "orderno",
    "ordernumber",
    "partnumber",
    "paymentid",
    "productid",
    "referencenumber",
    "serialnumber",
    "shipmentid",
    "sku",
    "ticketid",
    "ticketnumber",
    "trackingid",
    "trackingnumber",
    "transactionid",
    "upc",
];
/// Longer names are sentences and give no hint.
const MAX_BYTES: usize = 64;

impl Hint {
    /// Returns the hint of a name in its normalised view.
    pub(in crate::guardrail::filter) fn from_name(name: &str) -> Self {
        if name.len() > MAX_BYTES {
            return Self::None;
        }
        let mut buffer = [0; MAX_BYTES];
        let mut length = 0;
        for byte in name.bytes().filter(u8::is_ascii_alphanumeric) {
            buffer[length] = byte.to_ascii_lowercase();
            length += 1;
        }
        let plain = std::str::from_utf8(&buffer[..length]).unwrap_or_default();
        if SECRETS.iter().any(|end| plain.ends_with(end)) {
            Self::Secret
        } else if SSN.iter().any(|end| plain.ends_with(end)) {
            Self::Ssn
        } else if PHONE.contains(&plain) || PHONE[..4].iter().any(|end| plain.ends_with(end) && *end != "tel") {
            Self::Phone
        } else if plain == "id" || IDENTIFIERS.iter().any(|end| plain.ends_with(end)) {
            Self::Identifier
        } else {
            Self::None
        }
    }
}

/// A run of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    // A text may consist of groups of one digit.
    start: u32,
    end: u32,
}

impl Group {
    /// Returns the start in the text.
    pub(super) fn start(self) -> usize {
        self.start as usize
    }

    /// Returns the end in the text.
    pub(super) fn end(self) -> usize {
        self.end as usize
    }

    pub(super) fn len(self) -> usize {
        self.end() - self.start()
    }
}

/// The highest number of bytes between two groups of one number.
const MAX_GAP: usize = 3;

/// The length in bytes of the shortest text whose groups are counted before they are listed.
const COUNTED_BYTES: usize = 64 << 10;

/// Counts the groups of digits in a part of a text.
fn count(bytes: &[u8], part: Range<usize>) -> usize {
    let (bytes, mut at, mut groups) = (&bytes[..part.end], part.start, 0);
    while let Some(start) = bytes::find(bytes, at, DIGIT) {
        at = bytes::end(bytes, start, DIGIT);
        groups += 1;
    }
    groups
}

/// The groups of digits of a text.
#[derive(Debug, Default)]
pub(in crate::guardrail::filter) struct Digits {
    groups: Vec<Group>,
    /// The end index of each cluster.
    ends: Vec<usize>,
}

impl Digits {
    /// Collects the digit groups within reach.
    pub(in crate::guardrail::filter) fn collect(subject: Subject<'_>) -> Self {
        let (bytes, reach) = (subject.text.as_bytes(), subject.reach());
        let mut digits = Self::default();
        if bytes::has_digit(bytes) {
            if bytes.len() > COUNTED_BYTES {
                // A list that grows would take as much again while it is copied.
                digits.groups.reserve_exact(reach.parts(bytes, DIGIT | GAP).map(|part| count(bytes, part)).sum());
            }
            for part in reach.parts(bytes, DIGIT | GAP) {
                digits.add(bytes, part);
            }
        }
        digits
    }

    fn add(&mut self, bytes: &[u8], part: Range<usize>) {
        let bytes = &bytes[..part.end];
        let (first, mut at) = (self.groups.len(), part.start);
        while let Some(start) = bytes::find(bytes, at, DIGIT) {
            let goes_on = self.groups[first..].last().is_some_and(|last| {
                let gap = &bytes[last.end()..start];
                gap.len() <= MAX_GAP && gap.iter().all(|byte| bytes::is(*byte, GAP))
            });
            if !goes_on && self.groups.len() > first {
                self.ends.push(self.groups.len());
            }
            at = bytes::end(bytes, start, DIGIT);
            if self.groups.len() == self.groups.capacity() {
                // Half as much again, not twice.
                self.groups.reserve_exact(self.groups.len() / 2 + 8);
            }
            // Longer texts are not scanned.
            let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
            self.groups.push(Group { start: place(start), end: place(at) });
        }
        if self.groups.len() > first {
            self.ends.push(self.groups.len());
        }
    }

    /// Returns all groups, in order.
    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Returns the clusters with at least `least` digits. A cluster is a sequence of groups separated by short
    /// punctuation.
    pub(super) fn clusters(&self, least: usize) -> impl Iterator<Item = &[Group]> {
        let mut start = 0;
        let clusters = self.ends.iter().map(move |end| &self.groups[std::mem::replace(&mut start, *end)..*end]);
        clusters.filter(move |cluster| digits(cluster) >= least)
    }
}

/// Returns the bytes between two groups.
pub(super) fn gap(text: &str, left: Group, right: Group) -> &[u8] {
    &text.as_bytes()[left.end()..right.start()]
}

/// Returns the number of digits in all groups.
pub(super) fn digits(groups: &[Group]) -> usize {
    groups.iter().map(|group| group.len()).sum()
}

/// Returns the range from the first group to the last.
pub(super) fn span(groups: &[Group]) -> Range<usize> {
    match (groups.first(), groups.last()) {
        (Some(first), Some(last)) => first.start()..last.end(),
        _ => 0..0,
    }
}

/// The highest number of underscores that count as emphasis.
const MAX_EMPHASIS: usize = 8;

/// Returns true if a letter or digit is directly before or after the span, or behind underscores there. Underscores
/// without a letter or digit behind them are emphasis.
pub(super) fn in_word(text: &str, span: &Range<usize>) -> bool {
    let (before, after) = (&text.as_bytes()[..span.start], &text.as_bytes()[span.end..]);
    let is_line = |byte: &&u8| **byte == b'_';
    let mut before = before.iter().rev().take(MAX_EMPHASIS).skip_while(is_line);
    let mut after = after.iter().take(MAX_EMPHASIS).skip_while(is_line);
    [before.next(), after.next()].into_iter().flatten().any(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("password", Hint::Secret)]
    #[case("DB_PASSWORD", Hint::Secret)]
    #[case("x-api-key", Hint::Secret)]
    #[case("clientSecret", Hint::Secret)]
    #[case("aws_secret_access_key", Hint::Secret)]
    #[case("password_hint_text", Hint::None)]
    #[case("key", Hint::None)]
    #[case("token", Hint::None)]
    #[case("secret", Hint::None)]
    #[case("customer_ssn", Hint::Ssn)]
    #[case("social security number", Hint::Ssn)]
    #[case("phone", Hint::Phone)]
    #[case("home_phone", Hint::Phone)]
    #[case("tel", Hint::Phone)]
    #[case("hotel", Hint::None)]
    #[case("order_id", Hint::Identifier)]
    #[case("SKU", Hint::Identifier)]
    #[case("id", Hint::Identifier)]
    #[case("paid", Hint::None)]
    #[case("user_id", Hint::None)]
    #[case("cancel", Hint::None)]
    fn hint_follows_name(#[case] name: &str, #[case] expected: Hint) {
        assert_eq!(Hint::from_name(name), expected);
    }
}
