//! Provider answers.
//!
//! An input is a line with the questions in canonical form, then the body of the answer.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use domain::decision::DecisionDraft;
use domain::json::{Json, JsonKind};
use domain::question::{AnswerRules, Answers, ConfidenceSource, ProviderInput};
use wires::provider::WireCodec;

use crate::answers;

/// Reads a body by a wire. Accepted answers must hold for every inbound wire.
///
/// # Errors
/// The violated property.
pub fn check(codec: &dyn WireCodec, input: &[u8]) -> Result<()> {
    let Some((provider_input, body)) = split_input(input) else { return Ok(()) };
    let read = match codec.read(&provider_input.questions, body) {
        Ok(read) => read,
        Err(bad) => {
            ensure!(!bad.to_string().is_empty(), "a fault without a word");
            // Error members are read only if the body has no answer.
            let _ = codec.read_error().and_then(|read_error| read_error(200, body));
            return Ok(());
        }
    };
    for confidence in [ConfidenceSource::Native, ConfidenceSource::SystemOne, ConfidenceSource::Computed] {
        for decimals in [0, 2, 15] {
            let rules = AnswerRules { decimals, confidence };
            let Ok(believed) = Answers::check(&provider_input.questions, &read.answers, rules) else { continue };
            answers::check_every_wire(&provider_input, &believed, rules).with_context(|| format!("by {rules:?}"))?;
        }
    }
    Ok(())
}

/// Returns false if a string contains an unpaired surrogate: no inbound wire accepts such a body, and a score's legend
/// would repeat it.
fn is_text(json: &Json) -> bool {
    match json.kind() {
        JsonKind::String => json.as_string().is_some(),
        JsonKind::Array => json.elements().is_some_and(|elements| elements.iter().all(is_text)),
        JsonKind::Object => json.members().is_some_and(|members| members.iter().all(|(_, value)| is_text(value))),
        JsonKind::Null | JsonKind::Bool | JsonKind::Number => true,
    }
}

/// Splits an input into typed questions and the body.
pub(crate) fn split_input(input: &[u8]) -> Option<(Arc<ProviderInput>, &[u8])> {
    let end = input.iter().position(|byte| *byte == b'\n')?;
    let questions = Json::parse(std::str::from_utf8(&input[..end]).ok()?).ok().filter(is_text)?;
    let draft = DecisionDraft {
        model: Some(Json::string("fuzz/decider")),
        questions: Some(questions),
        state: Some(Json::string("state")),
        ..DecisionDraft::default()
    };
    let provider_input = draft.check().ok()?.provider_input;
    provider_input.questions.typed.as_ref()?;
    Some((provider_input, &input[end + 1..]))
}
