//! The built-in filters. Each finds its matches in the normalised view of one text, in linear time.

mod bytes;
mod card;
mod email;
mod injection;
mod ip;
mod phone;
mod secrets;
mod ssn;
mod subject;

use std::ops::Range;

use crate::guardrail::BuiltinFilter;

pub(super) use subject::{Digits, Hint, Source, Subject};

/// The built-in filters of a set, each with its index in the set.
#[derive(Debug, Clone, Default)]
pub(super) struct Builtins {
    all: Vec<(BuiltinFilter, usize)>,
    /// True if one of them searches digits.
    wants_digits: bool,
    /// True if one of them uses hints from names.
    wants_hints: bool,
}

impl Builtins {
    /// Returns the index of a filter.
    pub(super) fn place(&self, wanted: BuiltinFilter) -> Option<usize> {
        self.all.iter().find(|(filter, _)| *filter == wanted).map(|(_, place)| *place)
    }

    /// Adds a filter.
    pub(super) fn add(&mut self, filter: BuiltinFilter, place: usize) {
        use BuiltinFilter::{CreditCard, IpAddress, Phone, Secrets, Ssn};
        self.wants_digits |= matches!(filter, CreditCard | IpAddress | Phone | Ssn);
        self.wants_hints |= matches!(filter, Secrets | Ssn | Phone);
        self.all.push((filter, place));
    }

    /// Returns true if one of them uses hints from names.
    pub(super) fn wants_hints(&self) -> bool {
        self.wants_hints
    }

    /// Collects the digits of a text, if one of the filters needs them.
    pub(super) fn digits(&self, subject: Subject<'_>) -> Digits {
        if self.wants_digits { Digits::collect(subject.text, subject.reach()) } else { Digits::default() }
    }
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
        BuiltinFilter::RegexPromptInjection => injection::each(text, subject.reach(), found),
        _ => {}
    }
}

/// Compiles the patterns of a filter, once per process.
///
/// # Errors
/// Fails if a built-in pattern does not compile. No request may pass then.
pub(super) fn ready(filter: BuiltinFilter) -> Result<(), String> {
    match filter {
        BuiltinFilter::Secrets => secrets::ready(),
        BuiltinFilter::RegexPromptInjection => injection::ready(),
        _ => Ok(()),
    }
}

/// Reports every invisible attempt at prompt injection in an original text.
pub(super) fn each_invisible(text: &str, found: &mut dyn FnMut(Range<usize>)) {
    injection::each_invisible(text, found);
}
