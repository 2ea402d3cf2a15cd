//! The limits and the words of the format, for both halves.

use domain::routing::Wire;

use crate::provider::{Limits, UsageNames};

/// A choice and a score may have 255 outcomes.
pub(super) const LIMITS: Limits = Limits { options: 255, levels: 255, ..Limits::of(Wire::GeminiDecisions) };

/// The names of the token counts.
pub(super) const USAGE: UsageNames = UsageNames { input: "total_input_tokens", output: "total_output_tokens" };

pub(super) const TRUE_DESCRIPTION: &str = "true_description";
pub(super) const FALSE_DESCRIPTION: &str = "false_description";
pub(super) const PROMPT_FEEDBACK: &str = "prompt_feedback";
pub(super) const BLOCK_REASON: &str = "block_reason";

/// Returns true for a name of an option that the format allows.
pub(super) fn is_option_name(name: &str) -> bool {
    !name.is_empty() && name.trim() == name && !name.chars().any(char::is_control)
}
