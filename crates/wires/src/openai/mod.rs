//! OpenAI's format: `input` and an array of `predicate | choice | score` questions. Azure speaks it too, with another
//! header and path.

pub mod client_request;
pub mod client_response;
mod content;
pub mod provider_request;
pub mod provider_response;

use domain::routing::Wire;

use crate::provider::{Limits, UsageNames};

const LIMITS: Limits = Limits::of(Wire::OpenAiDecisions);

/// The names of the token counts.
const USAGE: UsageNames = UsageNames { input: "input_tokens", output: "output_tokens" };

const PREDICATE: &str = "predicate";
const CHOICES: &str = "choices";
const LEVELS: &str = "levels";
const VALUE: &str = "value";
const LABEL: &str = "label";
const DESCRIPTION: &str = "description";
const PROBABILITY: &str = "probability";
const INPUT_TEXT: &str = "input_text";
const INPUT_JSON: &str = "input_json";
const INPUT_IMAGE: &str = "input_image";
