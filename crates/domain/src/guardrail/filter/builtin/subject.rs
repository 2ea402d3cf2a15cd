//! The text that built-in filters scan.

use super::bytes::Reach;
use super::hint::Hint;

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
