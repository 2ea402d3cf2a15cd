//! Gemini's format: `input` and a map of `noul | choice | score` questions whose texts are strings.

pub mod client_request;
pub mod client_response;
pub mod errors;
pub mod provider_request;
pub mod provider_response;

use domain::routing::Wire;

use crate::provider::{Limits, UsageNames};

/// A choice and a score may have 255 outcomes.
const LIMITS: Limits = Limits { options: 255, levels: 255, ..Limits::of(Wire::GeminiDecisions) };

/// The names of the token counts.
const USAGE: UsageNames = UsageNames { input: "total_input_tokens", output: "total_output_tokens" };

const TRUE_DESCRIPTION: &str = "true_description";
const FALSE_DESCRIPTION: &str = "false_description";
const PROMPT_FEEDBACK: &str = "prompt_feedback";
const BLOCK_REASON: &str = "block_reason";
