//! Properties that hold for every body.

use api_actix::detection::{Entry, read_bytes};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use wires::client::BodyError;
use wires::formats::Shape;

use super::answers::body;
use super::support::{answers_to, assert_valid, response_schema};

const ENTRIES: [Entry; 4] = [Entry::Contract, Entry::SystemOne, Entry::AnyShape, Entry::Gemini];

/// Keywords of the wires, so that generated input reaches deep into the parsers.
const WORDS: [&str; 40] = [
    "model",
    "models",
    "questions",
    "state",
    "input",
    "assets",
    "images",
    "provider",
    "session_id",
    "trace",
    "user",
    "partial",
    "type",
    "name",
    "instructions",
    "choices",
    "levels",
    "value",
    "label",
    "description",
    "criteria",
    "true_description",
    "id",
    "question",
    "options",
    "yes",
    "no",
    "role",
    "content",
    "text",
    "data",
    "call_id",
    "predicate",
    "noul",
    "choice",
    "score",
    "yes_no",
    "input_text",
    "user",
    "message",
];

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..3).prop_map(Value::from),
        prop::sample::select(WORDS.to_vec()).prop_map(Value::from),
        ".{0,5}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 5, |inner| {
        let name = prop_oneof![9 => prop::sample::select(WORDS.to_vec()).prop_map(str::to_owned), 1 => ".{0,4}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..6).prop_map(|members| Map::from_iter(members).into()),
        ]
    })
}

/// Generates mostly valid questions of a wire.
fn any_questions(shape: Shape) -> BoxedStrategy<Value> {
    let text = || prop_oneof![8 => "[a-z]{1,6}".prop_map(Value::from), 1 => any_json()];
    let names =
        || prop::collection::hash_set("[a-z\"é]{1,5}", 2..5).prop_map(|names| names.into_iter().collect::<Vec<_>>());
    let one = (0..3_u8, text(), names(), prop::option::of(text()), any::<bool>());
    let question = one.prop_map(move |(kind, asked, names, described, boolean)| match (shape, kind) {
        (Shape::OpenAi, 0) => json!({"type": "predicate", "instructions": asked}),
        (Shape::OpenAi, 1) => {
            let mut choices: Vec<Value> =
                names.iter().map(|name| json!({"value": name, "description": described})).collect();
            if boolean {
                choices.extend([json!({"value": true}), json!({"value": "true"})]);
            }
            json!({"type": "choice", "instructions": asked, "choices": choices})
        }
        (Shape::OpenAi, _) => {
            let levels: Vec<Value> =
                names.iter().map(|name| json!({"label": name, "description": described})).collect();
            json!({"type": "score", "instructions": asked, "levels": levels})
        }
        (Shape::Sglang, 0) => json!({"type": "yes_no", "question": asked, "yes": described}),
        (Shape::Sglang, 1) => {
            let options: Vec<Value> =
                names.iter().map(|name| json!({"name": name, "description": described})).collect();
            json!({"type": "choice", "question": asked, "options": options})
        }
        (Shape::Sglang, _) => json!({"type": "score", "question": asked, "levels": names}),
        (Shape::Gemini, 0) => {
            json!({"type": "noul", "instructions": asked, "criteria": {"true_description": described}})
        }
        (Shape::SystemOne, 0) => json!({"type": "noul", "instructions": asked, "criteria": {"true": described}}),
        (_, 1) => json!({"type": "choice", "instructions": asked,
            "criteria": names.iter().map(|name| (name.clone(), described.clone().into())).collect::<Map<_, _>>()}),
        (_, _) => json!({"type": "score", "instructions": asked, "criteria": names}),
    });
    prop::collection::vec(question, 1..5).prop_map(move |questions| named(shape, questions)).boxed()
}

/// Names each question as the wire requires; on the wire with optional names, every other question has none.
fn named(shape: Shape, questions: Vec<Value>) -> Value {
    let named = questions.into_iter().enumerate().map(|(index, question)| (format!("q{index}"), question));
    match shape {
        Shape::SystemOne | Shape::Gemini => Value::Object(named.collect()),
        Shape::OpenAi | Shape::Sglang => {
            let with_name = |(name, mut question): (String, Value)| {
                let member = if shape == Shape::OpenAi { "name" } else { "id" };
                if shape == Shape::Sglang || !name.ends_with(['1', '3']) {
                    question[member] = Value::from(name);
                }
                question
            };
            Value::Array(named.map(with_name).collect())
        }
    }
}

fn any_request() -> impl Strategy<Value = (Shape, Value)> {
    prop::sample::select(vec![Shape::SystemOne, Shape::OpenAi, Shape::Gemini, Shape::Sglang]).prop_flat_map(|shape| {
        (any_questions(shape), "[a-z]{1,5}").prop_map(move |(questions, about)| {
            let member = if shape == Shape::SystemOne { "state" } else { "input" };
            let mut body = json!({"model": "m", "questions": questions});
            body[member] = Value::from(about);
            (shape, body)
        })
    })
}

/// Parses, validates and answers a body. No step may panic, and a response matches its schema.
fn go_through(entry: Entry, bytes: &[u8]) {
    let Ok(asked) = read_bytes(entry, bytes) else { return };
    let Ok(request) = asked.draft.clone().check() else { return };
    let Some(questions) = &request.provider_input.questions.typed else { return };
    let body = body(&asked, &request, &answers_to(questions, bytes.len()));
    assert_valid(response_schema(asked.response_format.shape()), &body);
}

fn go_through_all(bytes: &[u8]) {
    for entry in ENTRIES {
        go_through(entry, bytes);
    }
}

proptest! {
    #[test]
    fn read_bytes_never_panics_on_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        go_through_all(&bytes);
    }

    #[test]
    fn read_bytes_never_panics_on_json_characters(text in r#"[\[\]{}",:a-z0-9\\ ]{0,120}"#) {
        go_through_all(text.as_bytes());
    }

    #[test]
    fn read_bytes_never_panics_on_json(json in any_json()) {
        go_through_all(json.to_string().as_bytes());
    }

    #[test]
    fn read_bytes_never_panics_on_known_members(
        questions in any_json(), input in any_json(), state in any_json(), extra in any_json(), which in 0..3_u8,
    ) {
        let mut body = json!({"model": "m", "questions": questions, "provider": extra, "temperature": extra});
        if which != 0 { body["input"] = input; }
        if which != 1 { body["state"] = state; }
        go_through_all(body.to_string().as_bytes());
    }

    #[test]
    fn each_wire_is_detected_and_answered_in_order(
        (shape, request) in any_request(), seed in 0..6_usize,
    ) {
        let read = read_bytes(Entry::AnyShape, request.to_string().as_bytes());
        let asked = match read {
            Ok(asked) => asked,
            Err((found, fault)) => {
                prop_assert_eq!(found, Some(shape));
                prop_assert!(matches!(fault, BodyError::Invalid(_)));
                return Ok(());
            }
        };
        prop_assert_eq!(asked.response_format.shape(), shape);
        let Ok(checked) = asked.draft.clone().check() else { return Ok(()) };
        let questions = checked.provider_input.questions.typed.as_deref().unwrap();
        let body = body(&asked, &checked, &answers_to(questions, seed));
        assert_valid(response_schema(shape), &body);
        let expected: Vec<Option<String>> = match &request["questions"] {
            Value::Array(asked) if shape == Shape::OpenAi => {
                asked.iter().map(|question| question["name"].as_str().map(str::to_owned)).collect()
            }
            _ => (0..questions.len()).map(|index| Some(format!("q{index}"))).collect(),
        };
        prop_assert_eq!(names(&body), expected);
    }
}

/// Returns the names of the answers in order; `None` for a null name.
fn names(body: &str) -> Vec<Option<String>> {
    let body = domain::json::Json::parse(body).unwrap();
    let answers = body.members().unwrap().into_iter().find(|(name, _)| name == "answers").unwrap().1;
    match answers.members() {
        Some(members) => members.into_iter().map(|(name, _)| Some(name)).collect(),
        None => answers
            .elements()
            .unwrap()
            .iter()
            .map(|answer| answer.members().unwrap().into_iter().find(|(name, _)| name == "name").unwrap().1.as_string())
            .collect(),
    }
}
