//! The built-in filters. Each finds its matches in the normalised view of one text, in linear time.

mod bytes;
mod card;
mod email;
mod injection;
mod ip;
mod patterns;
mod phone;
mod secrets;
mod ssn;
mod subject;

use std::ops::Range;

use crate::guardrail::BuiltinFilter;

pub(super) use self::bytes::any;
pub(super) use self::injection::each_invisible;
use self::injection::without_emphasis;
use self::patterns::PATTERNS;
pub(super) use self::subject::{Digits, Hint, Source, Subject};

/// Returns true if a filter searches digits.
pub(super) fn wants_digits(filter: BuiltinFilter) -> bool {
    use BuiltinFilter::{CreditCard, IpAddress, Phone, Ssn};
    matches!(filter, CreditCard | IpAddress | Phone | Ssn)
}

/// Returns true if a filter searches a text of this source for patterns.
pub(super) fn wants_patterns(filter: BuiltinFilter, text: &str, source: Source) -> bool {
    match filter {
        BuiltinFilter::Secrets => source != Source::SpaceSeparated && secrets::may_match_a_pattern(text, source),
        filter => filter == BuiltinFilter::RegexPromptInjection,
    }
}

/// Returns false if no pattern of a built-in filter matches a text.
pub(super) fn may_match_patterns(text: &str) -> bool {
    let Ok(patterns) = &*PATTERNS else { return true };
    let is_match = |text: &str| patterns.any.is_match(text);
    is_match(text) || bytes::has(text.as_bytes(), b'_') && is_match(&without_emphasis(text))
}

/// Returns false if a filter has no match in any of several texts, without regard to the hints of their names. The texts
/// are one text with separators that no match spans. `has_patterns` is the result of [`may_match_patterns`].
pub(super) fn may_match(filter: BuiltinFilter, subject: Subject<'_>, digits: &Digits, has_patterns: bool) -> bool {
    let mut is_found = false;
    let found = &mut |_: Range<usize>| is_found = true;
    match filter {
        // Their matches depend on hints and on text far before them.
        BuiltinFilter::Phone => return digits.clusters(phone::SHORTEST).next().is_some(),
        BuiltinFilter::Ssn => return digits.clusters(ssn::DIGITS).next().is_some(),
        BuiltinFilter::Secrets if !has_patterns => {}
        BuiltinFilter::RegexPromptInjection if !has_patterns => injection::each_disguised(subject, found),
        filter => each(filter, subject, digits, found),
    }
    is_found
}

/// Reports every match of a filter in a text with these digits, in no particular order.
pub(super) fn each(filter: BuiltinFilter, subject: Subject<'_>, digits: &Digits, found: &mut dyn FnMut(Range<usize>)) {
    let Subject { text, source, hint, .. } = subject;
    let is_tight = source != Source::SpaceSeparated;
    match filter {
        BuiltinFilter::Email if is_tight => email::each(text, subject.reach(), found),
        BuiltinFilter::Phone if is_tight => phone::each(text, digits, source, hint, found),
        BuiltinFilter::Ssn if is_tight => ssn::each(text, digits, source, hint, found),
        BuiltinFilter::CreditCard => card::each(text, digits, source, found),
        BuiltinFilter::IpAddress if source == Source::Concatenated => ip::each_across(text, subject.reach(), found),
        BuiltinFilter::IpAddress if is_tight => ip::each(text, digits, found),
        BuiltinFilter::Secrets if is_tight => secrets::each(text, source, hint, found),
        BuiltinFilter::RegexPromptInjection => injection::each(subject, found),
        _ => {}
    }
}

/// Compiles the patterns that a filter needs, once per process.
///
/// # Errors
/// Fails if a built-in pattern does not compile. No request may pass then.
pub(super) fn ready(filter: BuiltinFilter) -> Result<(), String> {
    match filter {
        BuiltinFilter::Secrets | BuiltinFilter::RegexPromptInjection => {
            PATTERNS.as_ref().map(drop).map_err(Clone::clone)
        }
        _ => Ok(()),
    }
}
