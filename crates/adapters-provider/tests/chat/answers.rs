//! Answers from distributions: complete, with a sum of exactly 1.

use std::sync::Arc;

use adapters_provider::chat_completions::answers::{Method, answer};
use domain::json::Json;
use domain::question::{AnswerRules, AnswerValue, Answers, ProviderInput, Questions};
use domain::routing::Wire;
use proptest::prelude::*;
use rstest::rstest;

use crate::support;

fn choice_of(options: usize) -> Arc<ProviderInput> {
    let options: Vec<String> = (0..options).map(|option| format!("\"{option}\":null")).collect();
    support::provider_input(&format!(
        r#"{{"model":"m","state":"s","questions":{{"q":{{"type":"choice","criteria":{{{}}}}}}}}}"#,
        options.join(",")
    ))
}

fn score_of(levels: usize) -> Arc<ProviderInput> {
    let levels = vec!["\"l\""; levels].join(",");
    support::provider_input(&format!(
        r#"{{"model":"m","state":"s","questions":{{"q":{{"type":"score","criteria":[{levels}]}}}}}}"#
    ))
}

fn build_answer(questions: &Questions, weights: &[f64], temperature_milli: u32) -> Json {
    let question = &questions.typed.as_ref().unwrap()[0];
    answer(question, weights, temperature_milli, Method::Logprobs { label_mass: 0.98765 }).unwrap()
}

/// The exact text of a number, in ten-thousandths.
fn units(json: &Json) -> u64 {
    let (whole, part) = json.text().split_once('.').unwrap_or((json.text(), ""));
    assert!(part.len() <= 4, "{}", json.text());
    format!("{whole}{part:0<4}").parse().unwrap()
}

fn member(json: &Json, name: &str) -> Option<Json> {
    json.members().unwrap().into_iter().find(|(member, _)| member == name).map(|(_, value)| value)
}

/// Checks as the domain does when probabilities must be exact to four decimals.
fn checked(questions: &Questions, answer: &Json) -> AnswerValue {
    let rules = AnswerRules { decimals: 15, ..AnswerRules::of(&support::endpoint_of(Wire::ChatCompletions)) };
    let answers = Json::object([("q", answer.text())]);
    let answers = Answers::check(questions, &answers, rules).unwrap();
    answers.typed().unwrap()[0].value.clone()
}

#[test]
fn answer_has_method_and_no_confidence() {
    let provider_input = choice_of(2);
    let made = build_answer(&provider_input.questions, &[1.0, 3.0], 1000);
    let expected = r#"{"type":"choice","choice":"1","probabilities":{"0":0.25,"1":0.75},"metadata":{"method":"logprobs","label_mass":0.9877,"calibrated":false}}"#;
    assert_eq!(made.text(), expected);
}

#[test]
fn score_is_expectation_of_rounded_distribution() {
    let provider_input = score_of(3);
    let made = build_answer(&provider_input.questions, &[1.0, 1.0, 1.0], 1000);
    assert_eq!(member(&made, "probabilities").unwrap().text(), r#"{"0":0.3334,"1":0.3333,"2":0.3333}"#);
    assert_eq!(member(&made, "score").unwrap().text(), "0.9999");
}

#[rstest]
#[case(&[])]
#[case(&[1.0])]
#[case(&[1.0, 1.0, 1.0])]
#[case(&[0.0, 0.0])]
#[case(&[f64::NAN, 1.0])]
fn answer_rejects_invalid_weights(#[case] weights: &[f64]) {
    let provider_input = choice_of(2);
    let question = &provider_input.questions.typed.as_ref().unwrap()[0];
    answer(question, weights, 1000, Method::Structured).unwrap_err();
}

proptest! {
    #[test]
    fn answer_distribution_sums_to_one(
        weights in prop::collection::vec(0.0_f64..1.0, 2..256),
        temperature_milli in 50_u32..20_000,
    ) {
        prop_assume!(weights.iter().any(|weight| *weight > 1e-9));
        let provider_input = choice_of(weights.len());
        let made = build_answer(&provider_input.questions, &weights, temperature_milli);
        let probabilities = member(&made, "probabilities").unwrap().members().unwrap();
        let probabilities: Vec<u64> = probabilities.iter().map(|(_, value)| units(value)).collect();
        prop_assert_eq!(probabilities.len(), weights.len());
        prop_assert_eq!(probabilities.iter().sum::<u64>(), 10_000);
        let AnswerValue::Choice { chosen, confidence, .. } = checked(&provider_input.questions, &made) else { panic!() };
        prop_assert_eq!(probabilities[chosen], *probabilities.iter().max().unwrap());
        prop_assert!(confidence.is_some(), "computed by the domain");
    }

    #[test]
    fn score_is_exact_for_any_weights(weights in prop::collection::vec(0.0_f64..1.0, 2..=10)) {
        prop_assume!(weights.iter().any(|weight| *weight > 1e-9));
        let provider_input = score_of(weights.len());
        let made = build_answer(&provider_input.questions, &weights, 1000);
        let probabilities = member(&made, "probabilities").unwrap().members().unwrap();
        let expected: u64 = (0..).zip(&probabilities).map(|(level, (_, value))| level * units(value)).sum();
        prop_assert_eq!(units(&member(&made, "score").unwrap()), expected);
        checked(&provider_input.questions, &made);
    }

    #[test]
    fn noul_probabilities_sum_to_one(yes in 0.0_f64..1.0, no in 0.0_f64..1.0) {
        prop_assume!(yes + no > 1e-9);
        let provider_input = support::provider_input(r#"{"model":"m","state":"s","questions":{"q":{"type":"noul","instructions":"?"}}}"#);
        let made = build_answer(&provider_input.questions, &[yes, no], 1000);
        let AnswerValue::Noul { probability } = checked(&provider_input.questions, &made) else { panic!() };
        prop_assert!((probability - yes / (yes + no)).abs() <= 0.0001);
    }
}
