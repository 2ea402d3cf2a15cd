//! The wire to chat models, whose answers are made here: from what a model states, and from the probabilities of
//! labels.

use std::sync::Arc;

use adapters_provider::chat_completions::answers::{Method, answer};
use adapters_provider::chat_completions::labels::{Labels, capacity};
use adapters_provider::chat_completions::logprobs::{self, TokenProbability};
use adapters_provider::chat_completions::members::Members;
use adapters_provider::chat_completions::prompt::{self, Document, Prompt, outcomes};
use adapters_provider::chat_completions::request::{self, Wanted};
use adapters_provider::chat_completions::tournament::Tournament;
use adapters_provider::chat_completions::{response, structured};
use adapters_provider::wire::BadAnswer;
use adapters_provider::{canonical, chat_completions::response::Reply};
use anyhow::{Context as _, Result, ensure};
use domain::decision::{AnswerRules, Answers, ProviderInput, Question};
use domain::json::Json;
use domain::routing::ConfidenceSource;

use crate::answers::{hold, unique};
use crate::readers::parted;

/// Tokens whose probabilities a server tells.
const TOP_LOGPROBS: usize = 20;
/// Temperatures, in thousandths: the least, none, the most.
const TEMPERATURES: [u32; 3] = [50, 1000, 20_000];
/// Our own rounding, and our own confidence.
const RULES: AnswerRules = AnswerRules { decimals: 4, confidence: ConfidenceSource::Computed };

/// Reads a body as each method does. What is made of it is always believed: it is our own.
///
/// # Errors
/// What does not hold.
pub fn check(input: &[u8]) -> Result<()> {
    let Some((provider_input, body)) = parted(input) else { return Ok(()) };
    let Ok(questions) = request::check(&provider_input) else { return Ok(()) };
    let reply: Reply = match response::read(body) {
        Ok(reply) => reply,
        Err(BadAnswer { fault, .. }) => {
            ensure!(!fault.to_string().is_empty(), "a fault without a word");
            return Ok(());
        }
    };
    if let Ok(stated) = structured::read(&reply.content, questions) {
        believed(&provider_input, questions, &stated, Method::Structured).context("stated")?;
    }
    if let Some(tokens) = &reply.first_token {
        let contested: Result<Option<Vec<_>>> = questions.iter().map(|question| contested(question, tokens)).collect();
        if let Some(weights) = contested? {
            believed(&provider_input, questions, &weights, Method::Logprobs { label_mass: 0.5 })
                .context("by labels")?;
        }
    }
    Ok(())
}

/// All contests of a question, each ended by the same tokens; `None` where no label is among them.
fn contested(question: &Question, tokens: &[TokenProbability]) -> Result<Option<Vec<f64>>> {
    let mut tournament = Tournament::new(outcomes(&question.kind), capacity(TOP_LOGPROBS));
    loop {
        let contests = tournament.contests();
        if contests.is_empty() {
            return Ok(Some(tournament.weights().context("a contest is over and nobody has won")?));
        }
        let mut told = Vec::with_capacity(contests.len());
        for offered in &contests {
            if offered.len() < 2 {
                told.push(vec![1.0; offered.len()]);
                continue;
            }
            let reading = logprobs::read(tokens, &Labels::of(&question.kind).label(offered));
            ensure!((0.0..=1.0).contains(&reading.mass), "a mass that is none");
            ensure!(reading.weights.iter().all(|weight| (0.0..=1.1).contains(weight)), "a weight that is none");
            if reading.mass < 0.05 {
                return Ok(None);
            }
            told.push(reading.weights);
        }
        tournament.tell(&told).context("the outcome of a contest is not taken")?;
    }
}

fn believed(
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
        hold(provider_input, &believed, RULES)?;
    }
    Ok(())
}

/// Every prompt is written as JSON, and its document ends where we end it.
///
/// # Errors
/// What does not hold.
pub fn goes_out(provider_input: &ProviderInput) -> Result<()> {
    let Ok(questions) = request::check(provider_input) else { return Ok(()) };
    let document = Document::of(provider_input);
    written(&prompt::stated(&document, questions), &request::stated(questions))?;
    for question in questions {
        let offered: Vec<usize> = (0..outcomes(&question.kind).min(capacity(TOP_LOGPROBS))).collect();
        written(&prompt::one_label(&document, question, &offered), &Wanted::Label { top_logprobs: TOP_LOGPROBS })?;
    }
    Ok(())
}

fn written(prompt: &Prompt, wanted: &Wanted) -> Result<()> {
    let body = Json::parse(&request::body(Some("m"), prompt, wanted, Members::default())).context("it is no JSON")?;
    unique(&body)?;
    ensure!(prompt.user.matches("</document>").count() == 1, "the document ends where it should not");
    Ok(())
}
