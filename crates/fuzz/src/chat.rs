//! The wire to chat models: answers from stated values and from label probabilities.

use std::sync::Arc;

use adapters_provider::chat_completions::answers::{Method, answer};
use adapters_provider::chat_completions::labels::{self, Labels, capacity};
use adapters_provider::chat_completions::prompt::{self, Document, outcomes};
use adapters_provider::chat_completions::structured;
use adapters_provider::chat_completions::tournament::Tournament;
use anyhow::{Context as _, Result, ensure};
use domain::json::Json;
use domain::question::{AnswerRules, Answers, ConfidenceSource, ProviderInput, Question};
use wires::canonical;
use wires::chat::members::Members;
use wires::chat::provider_request::{self, Prompt, RequestedOutput};
use wires::chat::provider_response::{self, Reply, TokenProbability};
use wires::provider::BadAnswer;

use crate::answers::{check_every_wire, check_unique_members};
use crate::readers::split_input;

/// Tokens whose probabilities a server returns.
const TOP_LOGPROBS: usize = 20;
/// Temperatures in thousandths: minimum, neutral, maximum.
const TEMPERATURES: [u32; 3] = [50, 1000, 20_000];
/// The rounding and the confidence of answers from chat models.
const RULES: AnswerRules = AnswerRules { decimals: 4, confidence: ConfidenceSource::Computed };

/// Reads a body by each method. The answers that we build from it must pass our own check.
///
/// # Errors
/// The violated property.
pub fn check(input: &[u8]) -> Result<()> {
    let Some((provider_input, body)) = split_input(input) else { return Ok(()) };
    let Ok(questions) = provider_request::check(&provider_input) else { return Ok(()) };
    let reply: Reply = match provider_response::read(body) {
        Ok(reply) => reply,
        Err(BadAnswer { error, .. }) => {
            ensure!(!error.to_string().is_empty(), "a fault without a word");
            return Ok(());
        }
    };
    if let Ok(stated) = structured::read(&reply.content, questions) {
        check_weights(&provider_input, questions, &stated, Method::Structured).context("stated")?;
    }
    if let Some(tokens) = &reply.first_token {
        let rounds: Result<Option<Vec<_>>> = questions.iter().map(|question| play_rounds(question, tokens)).collect();
        if let Some(weights) = rounds? {
            check_weights(&provider_input, questions, &weights, Method::Logprobs { label_mass: 0.5 })
                .context("by labels")?;
        }
    }
    Ok(())
}

/// Plays all label rounds of a question with the same tokens. Returns `None` if they contain no label.
fn play_rounds(question: &Question, tokens: &[TokenProbability]) -> Result<Option<Vec<f64>>> {
    let mut tournament = Tournament::new(outcomes(&question.kind), capacity(TOP_LOGPROBS));
    loop {
        let contests = tournament.contests();
        if contests.is_empty() {
            return Ok(Some(tournament.weights().context("the rounds are over without weights")?));
        }
        let mut told = Vec::with_capacity(contests.len());
        for offered in &contests {
            if offered.len() < 2 {
                told.push(vec![1.0; offered.len()]);
                continue;
            }
            let reading = labels::read(tokens, &Labels::of(&question.kind).label(offered));
            ensure!((0.0..=1.0).contains(&reading.mass), "a mass that is none");
            ensure!(reading.weights.iter().all(|weight| (0.0..=1.1).contains(weight)), "a weight that is none");
            if reading.mass < 0.05 {
                return Ok(None);
            }
            told.push(reading.weights);
        }
        tournament.record_results(&told).context("the outcome of a contest is not taken")?;
    }
}

fn check_weights(
    provider_input: &Arc<ProviderInput>,
    questions: &[Question],
    weights: &[Vec<f64>],
    method: Method,
) -> Result<()> {
    for temperature in TEMPERATURES {
        let pairs = questions.iter().zip(weights);
        let made = pairs.map(|(question, weights)| answer(question, weights, temperature, method));
        let made: Vec<Json> = made.collect::<Result<_, _>>().context("weights are no distribution")?;
        let made = canonical::in_order(questions.iter().map(|question| question.name.as_str()).zip(&made));
        let believed = Answers::check(&provider_input.questions, &made, RULES);
        let believed = believed.map_err(anyhow::Error::msg).context("our own answers are not believed")?;
        check_every_wire(provider_input, &believed, RULES)?;
    }
    Ok(())
}

/// Checks that every prompt is valid JSON and that its document ends at our delimiter.
///
/// # Errors
/// The violated property.
pub fn check_outbound(provider_input: &ProviderInput) -> Result<()> {
    let Ok(questions) = provider_request::check(provider_input) else { return Ok(()) };
    let document = Document::of(provider_input);
    check_prompt(&prompt::probabilities_prompt(&document, questions), &structured::probabilities_output(questions))?;
    for question in questions {
        let offered: Vec<usize> = (0..outcomes(&question.kind).min(capacity(TOP_LOGPROBS))).collect();
        check_prompt(
            &prompt::label_prompt(&document, question, &offered),
            &RequestedOutput::Label { top_logprobs: TOP_LOGPROBS },
        )?;
    }
    Ok(())
}

fn check_prompt(prompt: &Prompt, wanted: &RequestedOutput) -> Result<()> {
    let body =
        Json::parse(&provider_request::body(Some("m"), prompt, wanted, Members::default())).context("it is no JSON")?;
    check_unique_members(&body)?;
    ensure!(prompt.user.matches("</document>").count() == 1, "the document ends where it should not");
    Ok(())
}
