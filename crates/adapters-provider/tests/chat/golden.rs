//! Comparison with golden files: the caller's request, the upstream request, the response and the parsed answer.

use adapters_provider::chat_completions::answers::{Method, answer};
use adapters_provider::chat_completions::labels::{self, Labels};
use adapters_provider::chat_completions::prompt::{self, Document, outcomes};
use adapters_provider::chat_completions::structured;
use domain::question::{AnswerRules, Answers, ProviderInput, Question};
use domain::routing::Wire;
use rstest::rstest;
use wires::chat::members::Members;
use wires::chat::{provider_request as request, provider_response as response};

use crate::support;

fn golden(case: &str, part: &str) -> String {
    let path = format!("{}/../wires/tests/golden/chat_completions/{case}.{part}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap().trim_end_matches('\n').to_owned()
}

fn typed_questions(provider_input: &ProviderInput) -> &[Question] {
    request::check(provider_input).unwrap()
}

fn tokens(reply: &response::Reply) -> String {
    let count = |tokens: Option<u64>| tokens.map_or("null".to_owned(), |tokens| tokens.to_string());
    let (input, output) = (reply.usage.map(|used| used.input_tokens), reply.usage.map(|used| used.output_tokens));
    format!(r#""input_tokens":{},"output_tokens":{}"#, count(input), count(output))
}

#[rstest]
#[case::noul("noul", 2000)]
#[case::choice("choice", 1000)]
#[case::score("score", 1000)]
fn label_request_and_answer_match_golden_files(#[case] case: &str, #[case] temperature_milli: u32) {
    let provider_input = support::provider_input(&golden(case, "caller"));
    let question = &typed_questions(&provider_input)[0];
    let offered: Vec<usize> = (0..outcomes(&question.kind)).collect();
    let told = prompt::label_prompt(&Document::of(&provider_input), question, &offered);
    let wanted = request::RequestedOutput::Label { top_logprobs: 20 };
    let body = request::body(Some("judge-1.0"), &told, &wanted, Members::default());
    assert_eq!(body, golden(case, "logprobs.request"));

    let reply = response::read(golden(case, "response").as_bytes()).unwrap();
    let labels = Labels::of(&question.kind).label(&offered);
    let reading = labels::read(reply.first_token.as_ref().unwrap(), &labels);
    let method = Method::Logprobs { label_mass: reading.mass };
    let made = answer(question, &reading.weights, temperature_milli, method).unwrap();
    let read = format!(r#"{{"answer":{},{}}}"#, made.text(), tokens(&reply));
    assert_eq!(read, golden(case, "logprobs.answer"));
}

#[rstest]
fn structured_request_matches_golden_file(#[values("noul", "choice", "score", "all")] case: &str) {
    let provider_input = support::provider_input(&golden(case, "caller"));
    let questions = typed_questions(&provider_input);
    let told = prompt::probabilities_prompt(&Document::of(&provider_input), questions);
    let body =
        request::body(Some("judge-1.0"), &told, &structured::probabilities_output(questions), Members::default());
    assert_eq!(body, golden(case, "structured.request"));
}

#[test]
fn structured_answer_matches_golden_file() {
    let provider_input = support::provider_input(&golden("all", "caller"));
    let reply = response::read(golden("all", "response").as_bytes()).unwrap();
    let stated = structured::read(&reply.content, typed_questions(&provider_input)).unwrap();
    let made: Vec<String> = typed_questions(&provider_input)
        .iter()
        .zip(&stated)
        .map(|(question, weights)| answer(question, weights, 1000, Method::Structured).unwrap().text().to_owned())
        .collect();
    let read = format!(r#"{{"answers":[{}],{}}}"#, made.join(","), tokens(&reply));
    assert_eq!(read, golden("all", "structured.answer"));
}

/// Answers pass the check of the domain, which adds the confidence.
#[test]
fn answers_pass_domain_check() {
    let provider_input = support::provider_input(&golden("all", "caller"));
    let reply = response::read(golden("all", "response").as_bytes()).unwrap();
    let stated = structured::read(&reply.content, typed_questions(&provider_input)).unwrap();
    let made: Vec<_> = typed_questions(&provider_input)
        .iter()
        .zip(&stated)
        .map(|(question, weights)| answer(question, weights, 1000, Method::Structured).unwrap())
        .collect();
    let answers = wires::canonical::in_order(
        typed_questions(&provider_input).iter().map(|question| question.name.as_str()).zip(&made),
    );
    let rules = AnswerRules { decimals: 4, ..AnswerRules::of(&support::endpoint_of(Wire::ChatCompletions)) };
    let checked = Answers::check(&provider_input.questions, &answers, rules).unwrap();
    let text = checked.json().text();
    assert!(text.contains(r#""metadata":{"method":"structured","calibrated":false},"confidence":0.5"#), "{text}");
    assert!(!text.contains("native_confidence"), "{text}");
}
