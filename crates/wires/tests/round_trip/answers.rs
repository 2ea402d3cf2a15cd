//! Answers: canonical form, inbound writer, outbound reader.

use std::sync::Arc;

use domain::decision::Decision;
use domain::json::Json;
use domain::question::{
    Answer, AnswerRules, AnswerValue, Answers, ConfidenceSource, ProviderInput, Question, QuestionKind,
    choice_confidence, score_confidence,
};
use domain::usage::{QuestionOutcomes, UsageSource};
use proptest::prelude::*;
use proptest::sample::subsequence;
use wires::canonical::{self, Extras};
use wires::client::DecisionResponse;
use wires::formats::{Shape, write};

use crate::form::{codec, response_format};
use crate::provider_inputs::provider_input;

/// Returns hundredths that sum to 1, one per outcome.
fn hundredths(outcomes: usize) -> impl Strategy<Value = Vec<usize>> {
    subsequence((1..=99).collect::<Vec<usize>>(), outcomes.saturating_sub(1)).prop_map(|mut cuts| {
        cuts.push(100);
        let mut before = 0;
        cuts.into_iter().map(|cut| cut - std::mem::replace(&mut before, cut)).collect()
    })
}

/// The answer to a question: probabilities in hundredths, a confidence in hundredths, or a refusal.
#[derive(Debug, Clone)]
pub struct Given {
    spread: Vec<usize>,
    confidence: Option<usize>,
    refuses: bool,
}

fn given(outcomes: usize) -> impl Strategy<Value = Given> {
    (hundredths(outcomes), prop::option::of(0..=100_usize), prop::bool::weighted(0.2))
        .prop_map(|(spread, confidence, refuses)| Given { spread, confidence, refuses })
}

fn outcomes(question: &Question) -> usize {
    match &question.kind {
        QuestionKind::Noul { .. } | QuestionKind::Box => 2,
        QuestionKind::Choice { options } => options.len(),
        QuestionKind::Score { levels } => levels.len(),
    }
}

/// Returns a provider input with answers.
pub fn input_and_answers(form: Shape) -> impl Strategy<Value = (ProviderInput, Vec<Given>)> {
    provider_input(form).prop_flat_map(|provider_input| {
        let questions = provider_input.questions.typed.as_deref().unwrap();
        let all: Vec<_> = questions.iter().map(|question| given(outcomes(question))).collect();
        (Just(provider_input), all)
    })
}

fn decimal(hundredths: usize) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

fn answer(question: &Question, given: &Given) -> Json {
    if given.refuses {
        return canonical::refusal();
    }
    let confidence = given.confidence.map(decimal);
    let extras = Extras { confidence: confidence.as_deref(), metadata: None };
    let spread: Vec<String> = given.spread.iter().map(|part| decimal(*part)).collect();
    let spread: Vec<&str> = spread.iter().map(String::as_str).collect();
    match &question.kind {
        QuestionKind::Choice { options } => {
            let most = given.spread.iter().max().unwrap();
            let chosen = given.spread.iter().position(|part| part == most).unwrap();
            canonical::choice(options, &options[chosen].name, &spread, extras)
        }
        QuestionKind::Score { levels } => {
            let score: usize = given.spread.iter().enumerate().map(|(level, part)| level * part).sum();
            canonical::score(levels, &decimal(score), &spread, extras)
        }
        QuestionKind::Noul { .. } | QuestionKind::Box => canonical::noul(spread[0], Extras::default()),
    }
}

const RULES: AnswerRules = AnswerRules { decimals: 2, confidence: ConfidenceSource::Native };

fn checked(provider_input: &ProviderInput, answers: &Json) -> Result<Answers, TestCaseError> {
    Answers::check(&provider_input.questions, answers, RULES).map_err(TestCaseError::fail)
}

/// Returns the expected value after a round trip. A missing confidence is computed from the distribution, to four
/// decimals; [`Shape::Sglang`] has none, and the contract's is kept.
fn expected_value(form: Shape, value: &AnswerValue) -> AnswerValue {
    let four = |confidence: f64| (confidence * 1e4).round() / 1e4;
    let of = |confidence: Option<f64>, computed: Option<f64>| match form {
        Shape::SystemOne => confidence,
        Shape::Sglang => None,
        Shape::OpenAi | Shape::Gemini => confidence.or(computed.map(four)),
    };
    match value.clone() {
        AnswerValue::Choice { chosen, probabilities, confidence } => {
            let confidence = of(confidence, probabilities.as_deref().map(choice_confidence));
            AnswerValue::Choice { chosen, probabilities, confidence }
        }
        AnswerValue::Score { score, probabilities, confidence } => {
            let confidence = of(confidence, probabilities.as_deref().map(score_confidence));
            AnswerValue::Score { score, probabilities, confidence }
        }
        other => other,
    }
}

/// Writes the answer by the inbound wire and reads it by the outbound wire.
pub fn answer_round_trip(form: Shape, provider_input: &ProviderInput, given: &[Given]) -> Result<(), TestCaseError> {
    let questions = provider_input.questions.typed.clone().unwrap();
    let answers: Vec<Json> = questions.iter().zip(given).map(|(question, given)| answer(question, given)).collect();
    let answers = canonical::in_order(questions.iter().map(|question| question.name.as_str()).zip(&answers));
    let answers = checked(provider_input, &answers)?;
    let decision = Decision {
        id: "gen-dec-round-trip".parse().unwrap(),
        provider_input: Arc::new(provider_input.clone()),
        answers: answers.clone(),
        model: "acme/judge".parse().unwrap(),
        provider: "Acme".to_owned(),
        input_tokens: 140,
        output_tokens: 7,
        usage_source: UsageSource::Reported,
        cost: "0.000018".parse().unwrap(),
        attempts: std::sync::Arc::default(),
        funnel: Vec::new(),
        outcomes: QuestionOutcomes::default(),
        findings: Vec::new(),
    };
    let body = write(
        &response_format(form),
        &DecisionResponse { decision: &decision, questions: &questions, service_metadata: None },
    );
    let read = codec(form).read(&provider_input.questions, body.as_bytes());
    let read = read.map_err(|bad| TestCaseError::fail(format!("{bad}: {body}")))?;
    let usage = read.usage.unwrap();
    prop_assert_eq!((usage.input_tokens, usage.output_tokens), (140, 7), "{}", body);
    let again = checked(provider_input, &read.answers)?;
    let all = |answers: &[Answer]| answers.iter().map(|answer| answer.name.clone()).collect::<Vec<_>>();
    let (first, again) = (answers.typed().unwrap(), again.typed().unwrap());
    prop_assert_eq!(all(again), all(first), "{}", &body);
    for (first, again) in first.iter().zip(again) {
        prop_assert_eq!(&again.value, &expected_value(form, &first.value), "{}", &body);
    }
    Ok(())
}
