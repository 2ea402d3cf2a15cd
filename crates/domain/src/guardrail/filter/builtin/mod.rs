//! The filters that come with the service. Each finds its matches in the folded view of one text, in linear time.

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

use crate::guardrail::BuiltinFilter;

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

/// Gives every match of a filter in a text, in no certain order.
pub(super) fn each(filter: BuiltinFilter, text: &str, source: Source, hint: Hint, found: &mut dyn FnMut(Range<usize>)) {
    let is_tight = source != Source::Spaced;
    match filter {
        BuiltinFilter::Email if is_tight => email::each(text, found),
        BuiltinFilter::Phone if is_tight => phone::each(text, source, hint, found),
        BuiltinFilter::Ssn if is_tight => ssn::each(text, source, hint, found),
        BuiltinFilter::CreditCard => card::each(text, source, found),
        BuiltinFilter::IpAddress if is_tight => ip::each(text, found),
        BuiltinFilter::Secrets if is_tight => secrets::each(text, source, hint, found),
        BuiltinFilter::RegexPromptInjection => injection::each(text, found),
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
