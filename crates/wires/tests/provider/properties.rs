//! Parsing never panics, and requests contain every question.

use std::sync::Arc;

use crate::support;
use crate::support::provider_inputs::{provider_input, text};
use domain::json::Json;
use domain::question::{AnswerRules, Answers, ConfidenceSource, ProviderInput};
use domain::routing::Wire;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use wires::canonical::{Division, compact, divide, has_single_outcome};
use wires::formats::Calls;
use wires::provider::{ModelLocation, WireCodec};
use wires::system_one::ResponseWrapper;
use wires::{gemini, system_one};

fn codecs() -> Vec<Box<dyn WireCodec>> {
    let of = |wire, wrapper| match Calls::of(wire, ModelLocation::Body, wrapper) {
        Calls::Single(codec) => Some(codec),
        Calls::Chat | Calls::Local => None,
    };
    let wires = Wire::ALL.map(|wire| of(wire, ResponseWrapper::None));
    let dialects =
        [ResponseWrapper::WorkersAi, ResponseWrapper::Databricks].map(|wrapper| of(Wire::SystemOne, wrapper));
    wires.into_iter().chain(dialects).flatten().collect()
}

fn golden(path: &str) -> String {
    std::fs::read_to_string(format!("{}/tests/golden/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Reads a body with every wire; accepted answers are JSON objects that the domain can check.
fn read_by_all(asked: &ProviderInput, body: &[u8]) {
    for codec in codecs() {
        let Ok(answer) = codec.read(&asked.questions, body) else { continue };
        assert!(Json::parse(answer.answers.text()).is_ok_and(|answers| answers.members().is_some()));
        let rules = AnswerRules { decimals: 2, confidence: codec.wire().confidence() };
        let _ = Answers::check(&asked.questions, &answer.answers, rules);
    }
    for status in [200, 400, 429, 529] {
        for read in [system_one::errors::workers_ai, gemini::errors::read] {
            let _ = read(status, body);
        }
    }
}

/// Returns the provider input of the golden case `all`, and a valid response in the format of each wire.
fn known() -> (Arc<ProviderInput>, Vec<String>) {
    let asked = support::provider_input(&golden("openai-decisions/all.caller.json"));
    let wires = ["openai-decisions", "gemini-decisions", "sglang-decisions"];
    let mut answers: Vec<String> = wires.iter().map(|wire| golden(&format!("{wire}/all.response.json"))).collect();
    answers.push(golden("system-one/workers_ai.response.json"));
    answers.push(golden("system-one/databricks.response.json"));
    (asked, answers)
}

fn odd_piece() -> impl Strategy<Value = Vec<u8>> {
    let odd = [
        "",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "null",
        "true",
        "-",
        "0",
        "1e999",
        "-1",
        "NaN",
        "{}",
        "[]",
        "\u{0}",
        "é",
        "\\ud800",
        "99999999999999999999",
        "0.5",
        "\"yes\"",
        "\"0\"",
        "\"type\":\"refusal\",",
    ];
    prop_oneof![
        prop::sample::select(odd.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..4)
    ]
}

/// Returns the names of the questions in a body, in order, with repetitions.
fn names(wire: &dyn WireCodec, body: &[u8]) -> Vec<String> {
    let members = |json: &Json| json.members().unwrap();
    let member = |json: &Json, name: &str| {
        let found: Vec<Json> =
            members(json).into_iter().filter(|(member, _)| member == name).map(|(_, value)| value).collect();
        assert_eq!(found.len(), 1, "{name}");
        found[0].clone()
    };
    let questions = member(&Json::parse(std::str::from_utf8(body).unwrap()).unwrap(), "questions");
    let named = |name: &str| {
        let questions = questions.elements().unwrap();
        questions.iter().map(|question| member(question, name).as_string().unwrap()).collect()
    };
    match wire.wire().as_str() {
        "openai-decisions" => named("name"),
        "sglang-decisions" => named("id"),
        _ => members(&questions).into_iter().map(|(name, _)| name).collect(),
    }
}

/// Returns a valid canonical answer to each question.
fn answered(provider_input: &ProviderInput) -> Json {
    let mut answers = Map::new();
    for question in provider_input.questions.typed.as_deref().unwrap() {
        answers.insert(question.name.clone(), json!({"type": "refusal"}));
    }
    Json::from(Value::Object(answers))
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
        read_by_all(&known().0, &body);
    }

    #[test]
    fn any_near_json_is_read_without_panic(
        body in r#"(\{|\}|\[|\]|"(answers|usage|refund|queue|heat|type|noul|choice|score|name|value|probability|probabilities|result|response|errors|code|error|prompt_feedback)"|"[a-z]{0,4}"|:|,|-?[0-9]{1,25}|1e[0-9]{1,4}|"|\\|null|true| ){0,60}"#,
    ) {
        read_by_all(&known().0, body.as_bytes());
    }

    #[test]
    fn any_answer_with_a_fault_is_read_without_panic(
        which in 0_usize..5,
        faults in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..8, odd_piece()), 1..4),
    ) {
        let (asked, answers) = known();
        let mut body = answers[which].clone().into_bytes();
        for (place, length, piece) in faults {
            let begin = place.index(body.len() + 1);
            let end = (begin + length).min(body.len());
            body.splice(begin..end, piece);
        }
        read_by_all(&asked, &body);
    }

    #[test]
    fn request_is_json_with_every_question_once(asked in provider_input()) {
        for codec in codecs() {
            let asked = if codec.refuses_single_outcomes() {
                let Some(asked) = divide(&asked).remaining else { continue };
                asked
            } else {
                Arc::clone(&asked)
            };
            let Ok(payload) = codec.write("a/\"m\"", &asked) else { continue };
            let body = payload.to_bytes();
            prop_assert_eq!(payload.len_bytes(), body.len() as u64);
            let typed = asked.questions.typed.as_deref().unwrap();
            let expected: Vec<String> = typed.iter().map(|question| question.name.clone()).collect();
            prop_assert_eq!(names(codec.as_ref(), &body), expected);
        }
    }

    /// The other tests would pass if no request were ever written.
    #[test]
    fn every_wire_writes_common_questions(
        names in prop::collection::btree_set("[a-z]{1,8}", 2..27),
        state in "[a-z]{1,9}",
    ) {
        let options: Map<String, Value> = names.iter().map(|name| (name.clone(), Value::Null)).collect();
        let questions = json!({
            "a": {"type": "choice", "criteria": options},
            "b": {"type": "noul", "instructions": "?"},
            "c": {"type": "score", "criteria": ["low", "high"]},
        });
        let asked = support::provider_input(&json!({"model": "m", "state": state, "questions": questions}).to_string());
        for codec in codecs() {
            prop_assert!(codec.write("m", &asked).is_ok());
        }
    }

    #[test]
    fn join_restores_order_of_divided_request(asked in provider_input()) {
        let division = divide(&asked);
        let typed = asked.questions.typed.as_deref().unwrap();
        prop_assert_eq!(division.has_local_answers, typed.iter().any(has_single_outcome));
        let given = division.remaining.as_deref().map(answered);
        let joined = Division::join(&asked, given.as_ref(), ConfidenceSource::Computed);
        let rules = AnswerRules { decimals: 2, confidence: ConfidenceSource::Computed };
        let checked = Answers::check(&asked.questions, &joined, rules).unwrap();
        let order: Vec<&str> = checked.typed().unwrap().iter().map(|answer| answer.name.as_str()).collect();
        let expected: Vec<&str> = typed.iter().map(|question| question.name.as_str()).collect();
        prop_assert_eq!(order, expected);
    }

    #[test]
    fn compact_keeps_json_value(value in text(), spaces in prop::collection::vec(0_usize..3, 1..9)) {
        let mut spaced = String::new();
        let (mut in_string, mut escaped) = (false, false);
        for (place, character) in value.to_string().chars().enumerate() {
            if !in_string && !character.is_ascii_alphanumeric() && !matches!(character, '.' | '-' | '+') {
                spaced.push_str(&" \n".repeat(spaces[place % spaces.len()]));
            }
            spaced.push(character);
            in_string = if in_string { escaped || character != '"' } else { character == '"' };
            escaped = in_string && !escaped && character == '\\';
        }
        prop_assert!(Json::parse(&spaced).is_ok());
        prop_assert_eq!(compact(&spaced), value.to_string());
    }
}
