//! The limits and the words of the format, for both halves.

use domain::routing::Wire;

use crate::provider::{Limits, UsageNames};

/// A choice has one option per letter, a score one level per digit.
pub(super) const LIMITS: Limits = Limits::of(Wire::SglangDecisions);

/// The names of the token counts. The model generates no tokens, so all are input.
pub(super) const USAGE: UsageNames = UsageNames { input: "prompt_tokens", output: "completion_tokens" };

pub(super) const YES_NO: &str = "yes_no";
pub(super) const YES: &str = "yes";
pub(super) const NO: &str = "no";
pub(super) const ID: &str = "id";
pub(super) const QUESTION: &str = "question";
pub(super) const OPTIONS: &str = "options";
pub(super) const LEVELS: &str = "levels";
pub(super) const NAME: &str = "name";
pub(super) const DESCRIPTION: &str = "description";
pub(super) const LABEL_MASS: &str = "label_mass";

/// Returns true for a name of an option that the format allows: visible, on one line.
pub(super) fn is_option_name(name: &str) -> bool {
    let breaks_lines = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    !name.trim().is_empty() && !name.chars().any(breaks_lines)
}

/// Returns true for a sum of probabilities, which float errors may put slightly above 1.
pub(super) fn is_label_mass(number: f64) -> bool {
    (0.0..=1.0 + 1e-3).contains(&number)
}
