//! Golden files for every wire, and every kind of malformed answer.
//!
//! `CASE.caller.json` is the canonical request, `CASE.request.json` the upstream request, `CASE.response.json` a
//! response and `CASE.answer.json` the parsed answer. `broken.txt` contains responses to the case `all`: a line with
//! the defect, the expected message, the token counts that are still known, and the body.

use crate::support;
use domain::pricing::ReportedUsage;
use domain::question::{AnswerRules, Answers};
use rstest::rstest;
use wires::formats::{GEMINI, OPENAI, SGLANG};
use wires::provider::{ModelLocation, WireCodec};
use wires::system_one::{ResponseWrapper, SystemOne};

fn file(wire: &str, name: &str) -> String {
    let path = format!("{}/tests/golden/{wire}/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap().trim_end_matches('\n').to_owned()
}

fn counts(usage: Option<ReportedUsage>) -> [String; 2] {
    let count = |tokens: Option<u64>| tokens.map_or("null".to_owned(), |tokens| tokens.to_string());
    [count(usage.map(|usage| usage.input_tokens)), count(usage.map(|usage| usage.output_tokens))]
}

/// Compares, or writes the file when `cargo xtask golden` asks for it. A run that writes compares nothing, so it never
/// counts as a test: `cargo xtask test` removes the variable.
fn same_as_file(wire: &str, name: &str, actual: &str) {
    #[expect(clippy::disallowed_methods, reason = "a test, not the service: it has no configuration")]
    if std::env::var_os("TOLLGATE_WRITE_GOLDEN").is_some() {
        let path = format!("{}/tests/golden/{wire}/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, format!("{actual}\n")).unwrap();
        return;
    }
    assert_eq!(actual, file(wire, name), "{wire}/{name}");
}

fn bytes_are_as_on_file(codec: &impl WireCodec, model: &str, case: &str) {
    let wire = codec.wire().as_str();
    let asked = support::provider_input(&file(wire, &format!("{case}.caller.json")));
    let body = codec.write(model, &asked).unwrap();
    assert_eq!(body.media_type(), "application/json");
    let body = body.to_bytes();
    same_as_file(wire, &format!("{case}.request.json"), std::str::from_utf8(&body).unwrap());

    let answer = codec.read(&asked.questions, file(wire, &format!("{case}.response.json")).as_bytes()).unwrap();
    let [input, output] = counts(answer.usage);
    let read = format!(r#"{{"answers":{},"input_tokens":{input},"output_tokens":{output}}}"#, answer.answers.text());
    same_as_file(wire, &format!("{case}.answer.json"), &read);
    let rules = AnswerRules { decimals: 2, confidence: codec.wire().confidence() };
    Answers::check(&asked.questions, &answer.answers, rules).unwrap();
}

#[rstest]
fn system_one(#[values("noul", "choice", "score", "opaque_string", "opaque_array", "assets", "images")] case: &str) {
    bytes_are_as_on_file(&SystemOne::default(), "judge-1.0", case);
}

#[rstest]
#[case("workers_ai", ModelLocation::Both, ResponseWrapper::WorkersAi)]
#[case("databricks", ModelLocation::Body, ResponseWrapper::Databricks)]
#[case("model_in_path", ModelLocation::Path, ResponseWrapper::None)]
fn system_one_dialects(
    #[case] case: &str,
    #[case] model_location: ModelLocation,
    #[case] response_wrapper: ResponseWrapper,
) {
    bytes_are_as_on_file(&SystemOne { model_location, response_wrapper }, "@cf/cloudflare/clef", case);
}

#[rstest]
fn openai_decisions(
    #[values("all", "sentences", "booleans", "items", "gemini_parts", "paragraphs", "unnamed")] case: &str,
) {
    bytes_are_as_on_file(&OPENAI, "gpt-6-luna", case);
}

#[rstest]
fn gemini_decisions(
    #[values("all", "sentences", "parts", "blocked", "blocked_with_empty_answers", "paragraphs", "conversation")]
    case: &str,
) {
    bytes_are_as_on_file(&GEMINI, "gemini-decision-1", case);
}

/// An empty object without a block reason has no answers; answers beside a block reason are read normally.
#[test]
fn gemini_empty_answers_are_a_refusal_only_when_the_input_was_blocked() {
    let asked = support::provider_input(&file("gemini-decisions", "blocked.caller.json"));
    let read = |body: &str| GEMINI.read(&asked.questions, body.as_bytes());
    for body in [
        r#"{"answers":{}}"#,
        r#"{"answers":{},"prompt_feedback":{}}"#,
        r#"{"answers":{},"prompt_feedback":{"block_reason":""}}"#,
        r#"{"answers":[],"prompt_feedback":{"block_reason":"safety"}}"#,
        r#"{"answers":{"a":{"type":"noul","noul":0.5}},"prompt_feedback":{"block_reason":"safety"}}"#,
    ] {
        assert!(read(body).is_err(), "{body}");
    }
    let blocked = read(r#"{"answers":{},"prompt_feedback":{"block_reason":"safety"}}"#).unwrap();
    assert_eq!(blocked.answers.text().matches("refusal").count(), 2, "{}", blocked.answers.text());
}

#[rstest]
fn sglang_decisions(#[values("all", "sentences", "images")] case: &str) {
    bytes_are_as_on_file(&SGLANG, "qwen", case);
}

fn broken_answers_have_distinct_errors(codec: &impl WireCodec, at_least: usize) {
    let wire = codec.wire().as_str();
    let asked = support::provider_input(&file(wire, "all.caller.json"));
    let broken = file(wire, "broken.txt");
    let blocks: Vec<Vec<&str>> = broken.split("\n\n").map(|block| block.lines().collect()).collect();
    assert!(blocks.len() >= at_least, "{wire}: {}", blocks.len());
    for block in blocks {
        let [what, sentence, used, body] = block.try_into().unwrap();
        let read = codec.read(&asked.questions, body.as_bytes());
        assert!(read.is_err(), "{wire}: {what}");
        let bad = read.unwrap_err();
        assert_eq!(bad.to_string(), sentence, "{wire}: {what}");
        assert_eq!(counts(bad.usage).join(" "), used, "{wire}: {what}");
    }
}

#[test]
fn broken_answers() {
    broken_answers_have_distinct_errors(&OPENAI, 30);
    broken_answers_have_distinct_errors(&GEMINI, 30);
    broken_answers_have_distinct_errors(&SGLANG, 30);
}

/// `true` and `"true"` are different options; a string does not select the boolean of the same name.
#[test]
fn openai_distinguishes_boolean_from_string() {
    let question = r#"{"queue":{"type":"choice","instructions":"Which?","criteria":{"true":null,"x":null}}}"#;
    let asked =
        |rest: &str| support::provider_input(&format!(r#"{{"model":"m","state":"s","questions":{question}{rest}}}"#));
    let answer = |value: &str| {
        format!(
            r#"{{"answers":[{{"type":"choice","name":"queue","choice":{value},"probabilities":[{{"value":{value},"probability":1}},{{"value":"x","probability":0}}]}}]}}"#
        )
    };
    for (rest, boolean, word) in [(r#","booleans":["true"]"#, true, false), ("", false, true)] {
        let asked = asked(rest);
        let taken = |value| OPENAI.read(&asked.questions, answer(value).as_bytes()).is_ok();
        assert_eq!((taken("true"), taken("\"true\"")), (boolean, word), "{rest}");
    }
}

#[test]
fn model_name_is_escaped() {
    let asked = support::provider_input(r#"{"model":"m","questions":"?"}"#);
    let body = SystemOne::default().write("a\"b\n", &asked).unwrap().to_bytes();
    assert_eq!(&body[..], br#"{"model":"a\"b\n","questions":"?"}"#);
}
