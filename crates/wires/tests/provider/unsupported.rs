//! Features that a wire does not support are rejected and not dropped.

use std::sync::Arc;

use crate::support;
use domain::question::{QuestionKind, QuestionType};
use domain::routing::{AttemptFailure, AttemptFailureKind, UnsupportedQuestions};
use rstest::rstest;
use wires::formats::{GEMINI, OPENAI, SGLANG};
use wires::provider::{ModelLocation, UnsupportedByWire, WireCodec};
use wires::system_one::{ResponseWrapper, SystemOne};

fn codec(wire: &str) -> Box<dyn WireCodec> {
    match wire {
        "openai" => Box::new(OPENAI),
        "gemini" => Box::new(GEMINI),
        "sglang" => Box::new(SGLANG),
        "workers-ai" => {
            Box::new(SystemOne { model_location: ModelLocation::Body, response_wrapper: ResponseWrapper::WorkersAi })
        }
        other => {
            assert_eq!(other, "system-one");
            Box::new(SystemOne::default())
        }
    }
}

fn request_body(questions: &str, rest: &str) -> String {
    format!(r#"{{"model":"m","state":"s","questions":{questions}{rest}}}"#)
}

fn written(wire: &str, body: &str) -> Result<(), UnsupportedByWire> {
    codec(wire).write("m", &support::provider_input(body)).map(drop)
}

fn noul() -> &'static str {
    r#"{"a":{"type":"noul","instructions":"?"}}"#
}

fn choice(names: &[&str]) -> String {
    let options: Vec<String> = names.iter().map(|name| format!("{name:?}:null")).collect();
    format!(r#"{{"a":{{"type":"choice","instructions":"?","criteria":{{{}}}}}}}"#, options.join(","))
}

fn score(levels: &str) -> String {
    format!(r#"{{"a":{{"type":"score","instructions":"?","criteria":{levels}}}}}"#)
}

fn many_questions(count: usize) -> String {
    let questions: Vec<String> =
        (0..count).map(|n| format!(r#""q{n}":{{"type":"noul","instructions":"?"}}"#)).collect();
    format!("{{{}}}", questions.join(","))
}

fn many_options(count: usize) -> String {
    let names: Vec<String> = (0..count).map(|n| format!("o{n}")).collect();
    choice(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

#[rstest]
#[case("openai")]
#[case("gemini")]
#[case("sglang")]
fn write_rejects_opaque_questions_and_boxes(#[case] wire: &str) {
    assert_eq!(
        written(wire, r#"{"model":"m","state":"s","questions":["?"]}"#),
        Err(UnsupportedByWire::OpaqueQuestions)
    );
    let boxed = request_body(r#"{"a":{"type":"box","instructions":"?"}}"#, "");
    assert_eq!(written(wire, &boxed), Err(UnsupportedByWire::QuestionType(QuestionType::Box)));
}

#[rstest]
#[case("openai", &[(400, true), (401, false)], UnsupportedByWire::Questions(400))]
#[case("gemini", &[(1000, true), (1001, false)], UnsupportedByWire::Questions(1000))]
fn write_rejects_too_many_questions(
    #[case] wire: &str,
    #[case] counts: &[(usize, bool)],
    #[case] refusal: UnsupportedByWire,
) {
    for (count, fits) in counts {
        let expected = if *fits { Ok(()) } else { Err(refusal) };
        assert_eq!(written(wire, &request_body(&many_questions(*count), "")), expected, "{count}");
    }
}

#[rstest]
#[case("openai", 1, Err(UnsupportedByWire::Options(255)))]
#[case("openai", 255, Ok(()))]
#[case("gemini", 1, Err(UnsupportedByWire::Options(255)))]
#[case("gemini", 255, Ok(()))]
#[case("sglang", 1, Err(UnsupportedByWire::Options(26)))]
#[case("sglang", 26, Ok(()))]
#[case("sglang", 27, Err(UnsupportedByWire::Options(26)))]
#[case("workers-ai", 1, Err(UnsupportedByWire::Options(255)))]
#[case("workers-ai", 2, Ok(()))]
#[case("system-one", 1, Ok(()))]
fn write_rejects_option_count_out_of_range(
    #[case] wire: &str,
    #[case] count: usize,
    #[case] expected: Result<(), UnsupportedByWire>,
) {
    assert_eq!(written(wire, &request_body(&many_options(count), "")), expected);
}

#[rstest]
#[case("openai", Err(UnsupportedByWire::Levels(10)))]
#[case("gemini", Err(UnsupportedByWire::Levels(255)))]
#[case("sglang", Err(UnsupportedByWire::Levels(10)))]
#[case("workers-ai", Err(UnsupportedByWire::Levels(10)))]
#[case("system-one", Ok(()))]
fn write_rejects_single_level(#[case] wire: &str, #[case] expected: Result<(), UnsupportedByWire>) {
    assert_eq!(written(wire, &request_body(&score(r#"["l"]"#), "")), expected);
    assert_eq!(written(wire, &request_body(&score(r#"["1","2","3","4","5","6","7","8","9","10"]"#), "")), Ok(()));
}

#[rstest]
#[case("gemini", r#"["a"," "]"#, Err(UnsupportedQuestions::EmptyLevel.into()))]
#[case("sglang", r#"["a",""]"#, Err(UnsupportedQuestions::EmptyLevel.into()))]
#[case("sglang", r#"["a",{}]"#, Err(UnsupportedQuestions::EmptyLevel.into()))]
#[case("openai", r#"["a",""]"#, Ok(()))]
fn write_rejects_levels_without_text(
    #[case] wire: &str,
    #[case] levels: &str,
    #[case] expected: Result<(), UnsupportedByWire>,
) {
    assert_eq!(written(wire, &request_body(&score(levels), "")), expected);
}

#[rstest]
#[case("gemini", "", Err(UnsupportedQuestions::OptionName.into()))]
#[case("gemini", " a", Err(UnsupportedQuestions::OptionName.into()))]
#[case("gemini", "a ", Err(UnsupportedQuestions::OptionName.into()))]
#[case("gemini", "a\\tb", Err(UnsupportedQuestions::OptionName.into()))]
#[case("gemini", "a b", Ok(()))]
#[case("sglang", " ", Err(UnsupportedQuestions::OptionName.into()))]
#[case("sglang", "a\\nb", Err(UnsupportedQuestions::OptionName.into()))]
#[case("sglang", "a\\u2028b", Err(UnsupportedQuestions::OptionName.into()))]
#[case("sglang", "a\\u0085b", Err(UnsupportedQuestions::OptionName.into()))]
#[case("sglang", " a ", Ok(()))]
#[case("openai", "a\\nb", Ok(()))]
fn write_rejects_invalid_option_names(
    #[case] wire: &str,
    #[case] name: &str,
    #[case] expected: Result<(), UnsupportedByWire>,
) {
    let questions = format!(r#"{{"a":{{"type":"choice","criteria":{{"{name}":null,"other":null}}}}}}"#);
    assert_eq!(written(wire, &request_body(&questions, "")), expected);
}

#[rstest]
#[case(&["Yes", "yes"])]
#[case(&["yes", " yes "])]
#[case(&["STRASSE", "straße"])]
#[case(&["ΌΣΟΣ", "όσος"])]
fn write_rejects_option_names_equal_to_sglang(#[case] names: &[&str]) {
    assert_eq!(written("sglang", &request_body(&choice(names), "")), Err(UnsupportedQuestions::SameOptions.into()));
    assert_eq!(written("openai", &request_body(&choice(names), "")), Ok(()));
}

#[test]
fn write_rejects_duplicate_boolean_option() {
    let mut asked = support::provider_input(&request_body(&choice(&["a", "b"]), ""));
    let provider_input = Arc::make_mut(&mut asked);
    for question in provider_input.questions.typed.iter_mut().flat_map(Arc::make_mut) {
        let QuestionKind::Choice { options } = &mut question.kind else { panic!() };
        for option in options.iter_mut() {
            option.boolean = Some(false);
        }
    }
    assert_eq!(codec("openai").write("m", &asked).unwrap_err(), UnsupportedQuestions::SameOptions.into());
}

#[rstest]
#[case("sglang", " ", Err(UnsupportedQuestions::QuestionName.into()))]
#[case("workers-ai", "a b", Err(UnsupportedQuestions::QuestionName.into()))]
#[case("workers-ai", "", Err(UnsupportedQuestions::QuestionName.into()))]
#[case("workers-ai", "é", Err(UnsupportedQuestions::QuestionName.into()))]
#[case("workers-ai", "A_z.0-", Ok(()))]
#[case("openai", "a b", Ok(()))]
fn write_rejects_invalid_question_names(
    #[case] wire: &str,
    #[case] name: &str,
    #[case] expected: Result<(), UnsupportedByWire>,
) {
    let questions = format!(r#"{{"{name}":{{"type":"noul","instructions":"?"}}}}"#);
    assert_eq!(written(wire, &request_body(&questions, "")), expected);
}

#[test]
fn write_rejects_name_too_long_for_workers_ai() {
    for (length, expected) in [(100, Ok(())), (101, Err(UnsupportedQuestions::QuestionName.into()))] {
        let questions = format!(r#"{{"{}":{{"type":"noul","instructions":"?"}}}}"#, "n".repeat(length));
        assert_eq!(written("workers-ai", &request_body(&questions, "")), expected);
    }
}

#[rstest]
#[case("\" \"")]
#[case("{}")]
#[case("[]")]
fn write_rejects_state_without_text(#[case] state: &str) {
    let body = format!(r#"{{"model":"m","state":{state},"questions":{}}}"#, noul());
    assert_eq!(written("sglang", &body), Err(UnsupportedQuestions::EmptyState.into()));
    assert_eq!(written("openai", &body), Ok(()));
}

const ASSETS: &str = r#","assets":{"pic":{"type":"image","data_base64":"AA=="}}"#;
const IMAGES: &str = r#","images":["data:image/png;base64,AA=="]"#;
const ITEMS: &str = r#","state_form":"openai","media_in_state":true"#;
const PARTS: &str = r#","state_form":"gemini","media_in_state":true"#;

#[rstest]
#[case("system-one", [true, true, false, false])]
#[case("openai", [false, false, true, false])]
#[case("gemini", [false, false, false, true])]
#[case("sglang", [false, true, false, false])]
fn write_rejects_media_in_another_form(#[case] wire: &str, #[case] taken: [bool; 4]) {
    for (media, taken) in [ASSETS, IMAGES, ITEMS, PARTS].into_iter().zip(taken) {
        let expected = if taken { Ok(()) } else { Err(UnsupportedByWire::Attachments) };
        assert_eq!(written(wire, &request_body(noul(), media)), expected, "{wire} {media}");
    }
}

#[test]
fn unsupported_input_is_failure_without_sent_bytes() {
    let failure = AttemptFailure::from(UnsupportedByWire::Options(26));
    assert_eq!((failure.kind, failure.sent_bytes), (AttemptFailureKind::RejectedByProvider, 0));
    assert_eq!(failure.detail, "the provider was not asked: its wire takes 2 to 26 options");
}
