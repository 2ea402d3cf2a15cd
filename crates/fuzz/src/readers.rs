//! Answers of providers.
//!
//! An input is a line with the questions in canonical form, then the body of the answer.

use std::sync::Arc;

use adapters_provider::wire::WireCodec;
use anyhow::{Context as _, Result, ensure};
use domain::decision::{AnswerRules, Answers, DecisionDraft, ProviderInput};
use domain::json::{Json, JsonKind};
use domain::routing::ConfidenceSource;

use crate::answers;

/// Reads a body by a wire; what is believed of it holds by every inbound wire.
///
/// # Errors
/// What does not hold.
pub fn check(codec: &dyn WireCodec, input: &[u8]) -> Result<()> {
    let Some((provider_input, body)) = parted(input) else { return Ok(()) };
    let read = match codec.read(&provider_input.questions, body) {
        Ok(read) => read,
        Err(bad) => {
            ensure!(!bad.to_string().is_empty(), "a fault without a word");
            // An error in the guise of an answer is looked for only where there is no answer.
            let _ = codec.read_error().and_then(|read_error| read_error(200, body));
            return Ok(());
        }
    };
    for confidence in [ConfidenceSource::Native, ConfidenceSource::SystemOne, ConfidenceSource::Computed] {
        for decimals in [0, 2, 15] {
            let rules = AnswerRules { decimals, confidence };
            let Ok(believed) = Answers::check(&provider_input.questions, &read.answers, rules) else { continue };
            answers::hold(&provider_input, &believed, rules).with_context(|| format!("by {rules:?}"))?;
        }
    }
    Ok(())
}

/// False where a string holds half of a surrogate pair: no surface lets such a body in, and a score's legend would
/// repeat it.
fn is_text(json: &Json) -> bool {
    match json.kind() {
        JsonKind::String => json.as_string().is_some(),
        JsonKind::Array => json.elements().is_some_and(|elements| elements.iter().all(is_text)),
        JsonKind::Object => json.members().is_some_and(|members| members.iter().all(|(_, value)| is_text(value))),
        JsonKind::Null | JsonKind::Bool | JsonKind::Number => true,
    }
}

/// The questions, where they are typed, and the body.
pub(crate) fn parted(input: &[u8]) -> Option<(Arc<ProviderInput>, &[u8])> {
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
