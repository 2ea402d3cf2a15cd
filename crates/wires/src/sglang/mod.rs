//! SGLang's format: `input` and an array of `choice | score | yes_no` questions, answered by scoring label tokens.

pub mod client_request;
pub mod client_response;
pub mod provider_request;
pub mod provider_response;

use domain::routing::Wire;

use crate::provider::{Limits, UsageNames};

/// A choice has one option per letter, a score one level per digit.
const LIMITS: Limits = Limits::of(Wire::SglangDecisions);

/// The names of the token counts. The model generates no tokens, so all are input.
const USAGE: UsageNames = UsageNames { input: "prompt_tokens", output: "completion_tokens" };

const YES_NO: &str = "yes_no";
const YES: &str = "yes";
const NO: &str = "no";
const ID: &str = "id";
const QUESTION: &str = "question";
const OPTIONS: &str = "options";
const LEVELS: &str = "levels";
const NAME: &str = "name";
const DESCRIPTION: &str = "description";
const LABEL_MASS: &str = "label_mass";

/// Returns true for a sum of probabilities, which float errors may put slightly above 1.
fn is_label_mass(number: f64) -> bool {
    (0.0..=1.0 + 1e-3).contains(&number)
}
