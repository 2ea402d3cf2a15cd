//! The filters that come with the service. Each finds its matches in the folded view of one text, in linear time.

mod bytes;
mod card;
mod email;
mod groups;
mod hint;
mod injection;
mod ip;
mod phone;
mod secrets;
mod ssn;

use std::ops::Range;

use self::bytes::Reach;
use crate::guardrail::BuiltinFilter;

pub(super) use groups::Digits;
pub(super) use hint::Hint;

/// What a text is, beside what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// A name, or a string that is a value.
    String,
    /// A number as it is written.
    Number,
    /// Neighbouring strings with nothing between them.
    Joined,
    /// Neighbouring strings with a space between them. The space is ours, so what is made of parts that spaces may part
    /// in ordinary data (telephone and social security numbers) is not looked for.
    Spaced,
}

impl Source {
    /// True where the text is put together from neighbours.
    pub(super) fn is_joined(self) -> bool {
        matches!(self, Self::Joined | Self::Spaced)
    }
}

/// A text to look through.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'t> {
    /// As it looks.
    pub(super) text: &'t str,
    pub(super) source: Source,
    pub(super) hint: Hint,
    /// Where in a text that is put together from neighbours the second and each further one begins. What lies within
    /// one of them may be left out: it was found there.
    pub(super) joints: &'t [usize],
}

impl Subject<'_> {
    fn reach(&self) -> Reach<'_> {
        if self.source.is_joined() { Reach::Across(self.joints) } else { Reach::Whole }
    }
}

/// The filters of a set, each with its place in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Builtins {
    all: Vec<(BuiltinFilter, usize)>,
    /// True where one of them is about numbers.
    wants_digits: bool,
    /// True where one of them goes by what a value is called.
    wants_hints: bool,
}

impl Builtins {
    /// The place of a filter.
    pub(super) fn place(&self, wanted: BuiltinFilter) -> Option<usize> {
        self.all.iter().find(|(filter, _)| *filter == wanted).map(|(_, place)| *place)
    }

    /// One more.
    pub(super) fn add(&mut self, filter: BuiltinFilter, place: usize) {
        use BuiltinFilter::{CreditCard, IpAddress, Phone, Secrets, Ssn};
        self.wants_digits |= matches!(filter, CreditCard | IpAddress | Phone | Ssn);
        self.wants_hints |= matches!(filter, Secrets | Ssn | Phone);
        self.all.push((filter, place));
    }

    /// True where names of members matter to one of them.
    pub(super) fn wants_hints(&self) -> bool {
        self.wants_hints
    }

    /// Each with its place.
    pub(super) fn all(&self) -> &[(BuiltinFilter, usize)] {
        &self.all
    }

    /// The digits of a text, as far as one of them wants to know.
    pub(super) fn digits(&self, subject: Subject<'_>) -> Digits {
        if self.wants_digits { Digits::of(subject.text, subject.reach()) } else { Digits::default() }
    }
}

/// Gives every match of a filter in a text, of which the digits are known, in no certain order.
pub(super) fn each(filter: BuiltinFilter, subject: Subject<'_>, digits: &Digits, found: &mut dyn FnMut(Range<usize>)) {
    let Subject { text, source, hint, .. } = subject;
    let is_tight = source != Source::Spaced;
    match filter {
        BuiltinFilter::Email if is_tight => email::each(text, subject.reach(), found),
        BuiltinFilter::Phone if is_tight => phone::each(text, digits, source, hint, found),
        BuiltinFilter::Ssn if is_tight => ssn::each(text, digits, source, hint, found),
        BuiltinFilter::CreditCard => card::each(text, digits, source, found),
        BuiltinFilter::IpAddress if source == Source::Joined => ip::each_across(text, subject.reach(), found),
        BuiltinFilter::IpAddress if is_tight => ip::each(text, digits, found),
        BuiltinFilter::Secrets if is_tight => secrets::each(text, source, hint, found),
        BuiltinFilter::RegexPromptInjection => injection::each(text, subject.reach(), found),
        _ => {}
    }
}

/// Compiles what the filters are made of, once for the whole process.
///
/// # Errors
/// A pattern of ours is no pattern; nothing may be let through then.
pub(super) fn ready(filter: BuiltinFilter) -> Result<(), String> {
    match filter {
        BuiltinFilter::Secrets => secrets::ready(),
        BuiltinFilter::RegexPromptInjection => injection::ready(),
        _ => Ok(()),
    }
}

/// Gives every attempt at prompt injection that nobody sees, in a text as it is.
pub(super) fn hidden(text: &str, found: &mut dyn FnMut(Range<usize>)) {
    injection::hidden(text, found);
}
