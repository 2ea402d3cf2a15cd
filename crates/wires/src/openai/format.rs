//! The limits and the words of the format, for both halves.

use domain::routing::Wire;

use crate::provider::{Limits, UsageNames};

pub(super) const LIMITS: Limits = Limits::of(Wire::OpenAiDecisions);

/// The names of the token counts.
pub(super) const USAGE: UsageNames = UsageNames { input: "input_tokens", output: "output_tokens" };

pub(super) const PREDICATE: &str = "predicate";
pub(super) const CHOICES: &str = "choices";
pub(super) const LEVELS: &str = "levels";
pub(super) const VALUE: &str = "value";
pub(super) const LABEL: &str = "label";
pub(super) const DESCRIPTION: &str = "description";
pub(super) const PROBABILITY: &str = "probability";
pub(super) const INPUT_TEXT: &str = "input_text";
pub(super) const INPUT_JSON: &str = "input_json";
pub(super) const INPUT_IMAGE: &str = "input_image";
