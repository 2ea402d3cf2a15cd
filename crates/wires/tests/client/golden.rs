//! Golden files: the canonical form of fixture requests, and their responses.

use std::fmt::Write as _;
use std::path::Path;

use domain::decision::{Decision, DecisionRequest};
use domain::error::ErrorKind;
use domain::json::Json;
use domain::question::{Answers, Asset, Attachments, ChoiceOption, ProviderInput, Question, QuestionKind, Questions};
use domain::statistics::Probability;
use domain::usage::{QuestionOutcome, QuestionOutcomes, QuestionVerdict};
use wires::client::{BodyError, DecisionResponse};
use wires::formats::{ParsedRequest, ResponseFormat, Shape, read_bytes, write};

use super::support::{body, decision};

/// Returns a fixture member, byte for byte: `entry`, `body` and, for a valid request, `answers` in canonical form.
fn member(fixture: &Json, name: &str) -> Option<Json> {
    fixture.members().unwrap().into_iter().find(|(member, _)| member == name).map(|(_, json)| json)
}

/// Returns the format of a fixture by the beginning of its name.
fn shape(name: &str) -> Shape {
    let shapes = [
        ("system-one-", Shape::SystemOne),
        ("openai-", Shape::OpenAi),
        ("gemini-", Shape::Gemini),
        ("sglang-", Shape::Sglang),
    ];
    shapes.into_iter().find(|(prefix, _)| name.starts_with(prefix)).unwrap().1
}

/// Parses the body of a fixture; a request to the contract's path is answered in the contract's format.
fn parsed(name: &str, fixture: &Json) -> Result<ParsedRequest, BodyError> {
    let mut asked = read_bytes(shape(name), member(fixture, "body").unwrap().text().as_bytes())?;
    if member(fixture, "entry").unwrap().as_string().unwrap() == "contract" {
        asked.response_format = ResponseFormat::Contract;
    }
    Ok(asked)
}

fn rendered(name: &str, fixture: &Json) -> String {
    let asked = match parsed(name, fixture) {
        Ok(asked) => asked,
        Err(fault) => return format!("{:?}: {fault}\n", Some(shape(name))),
    };
    match asked.draft.clone().check() {
        Ok(request) => {
            let body = body(&asked, &request, &member(fixture, "answers").unwrap());
            format!("{}\nanswer {body}\n", canonical(&asked, &request))
        }
        Err(fault) => format!("{:?}: {fault}\n", asked.response_format.shape()),
    }
}

fn canonical(asked: &ParsedRequest, request: &DecisionRequest) -> String {
    let provider_input = &request.provider_input;
    let mut text =
        format!("{:?}\nmodel {} {:?}\n", asked.response_format.shape(), request.model, request.fallback_models);
    writeln!(
        text,
        "state {:?} {}",
        provider_input.state_form,
        provider_input.state.as_ref().map_or("none", Json::text)
    )
    .unwrap();
    writeln!(text, "attachments {}", attachments(&provider_input.attachments)).unwrap();
    writeln!(text, "user {:?}, session {:?}, partial {}", request.user, request.session_id, request.partial).unwrap();
    for question in provider_input.questions.typed.as_deref().into_iter().flatten() {
        writeln!(text, "question {:?} {}", question.name, question.json.text()).unwrap();
        if let QuestionKind::Choice { options } = &question.kind {
            let booleans = |option: &&ChoiceOption| option.boolean.is_some();
            for option in options.iter().filter(booleans) {
                writeln!(text, "  option {:?} is {:?}", option.name, option.boolean).unwrap();
            }
        }
    }
    text
}

fn attachments(attachments: &Attachments) -> String {
    match attachments {
        Attachments::None => "none".to_owned(),
        Attachments::InState => "in the state".to_owned(),
        Attachments::Images(images) => format!("images {}", images.text()),
        Attachments::Assets(assets) => {
            let one = |asset: &Asset| format!("{:?} {} and {} bytes", asset.name, asset.entry.text(), asset.data.len());
            format!("assets {}", assets.iter().map(one).collect::<Vec<_>>().join(", "))
        }
    }
}

#[test]
fn fixtures_match_snapshots() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/client/golden");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 20, "{}", files.len());
    for file in files {
        let fixture = Json::parse(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = rendered(&name, &fixture);
        insta::assert_snapshot!(name, text);
    }
}

/// A request of each wire with two questions.
const BODIES: [(Shape, &str); 4] = [
    (
        Shape::SystemOne,
        r#"{"model":"m","state":"s","questions":{"a":{"type":"noul","instructions":"?"},"b":{"type":"noul","instructions":"?"}}}"#,
    ),
    (
        Shape::OpenAi,
        r#"{"model":"m","input":"s","questions":[{"type":"predicate","name":"a","instructions":"?"},{"type":"predicate","instructions":"?"}]}"#,
    ),
    (
        Shape::Gemini,
        r#"{"model":"m","input":"s","questions":{"a":{"type":"noul","instructions":"?"},"b":{"type":"noul","instructions":"?"}}}"#,
    ),
    (
        Shape::Sglang,
        r#"{"model":"m","input":"s","questions":[{"id":"a","type":"yes_no","question":"?"},{"id":"b","type":"yes_no","question":"?"}]}"#,
    ),
];

/// Checks a partial response with an unanswered question on every wire.
#[test]
fn unanswered_question_has_error_on_every_wire() {
    let rendered: Vec<String> = BODIES
        .iter()
        .map(|(shape, body)| {
            let asked = read_bytes(*shape, body.as_bytes()).unwrap();
            let request = asked.draft.clone().check().unwrap();
            let questions = request.provider_input.questions.typed.clone().unwrap();
            let first = ProviderInput::new(Questions::from_typed(vec![questions[0].clone()]), None);
            let first = DecisionRequest { provider_input: first.into(), ..request.clone() };
            let part = decision(&first, &Json::parse(r#"{"a":{"type":"noul","noul":0.25}}"#).unwrap());
            let answers = Answers::merge(&questions, vec![part.answers.clone()], ErrorKind::TimedOut);
            let decision = Decision { answers, ..part };
            write(
                &asked.response_format,
                &DecisionResponse { decision: &decision, questions: &questions, service_metadata: None },
            )
        })
        .collect();
    insta::assert_snapshot!("unanswered", rendered.join("\n"));
}

#[test]
fn outcomes_of_stages_stand_beside_the_answers_on_every_wire() {
    let outcome = |question: &str, verdict, threshold| QuestionOutcome {
        question: question.to_owned(),
        verdict,
        stage: 2,
        model: "acme/large".parse().unwrap(),
        threshold,
    };
    let threshold = Probability::new(0.9).unwrap();
    let rendered = BODIES.iter().map(|(shape, body)| {
        let asked = read_bytes(*shape, body.as_bytes()).unwrap();
        let request = asked.draft.clone().check().unwrap();
        let questions = request.provider_input.questions.typed.as_deref().unwrap();
        let answer = |question: &Question| format!(r#""{}":{{"type":"noul","noul":0.25}}"#, question.name);
        let answers = format!("{{{}}}", questions.iter().map(answer).collect::<Vec<_>>().join(","));
        let plain = decision(&request, &Json::parse(&answers).unwrap());
        let outcomes = QuestionOutcomes::new(vec![
            outcome("a", QuestionVerdict::Accepted, Some(threshold)),
            outcome("b", QuestionVerdict::Abstained, None),
        ]);
        let staged = Decision { outcomes, ..plain.clone() };
        let response =
            |decision| write(&asked.response_format, &DecisionResponse { decision, questions, service_metadata: None });
        let (without, with) = (response(&plain), response(&staged));
        // Published clients read the other members, which are those of a request without stages.
        let mut rest: serde_json::Value = serde_json::from_str(&with).unwrap();
        rest.as_object_mut().unwrap().remove("outcomes").unwrap();
        assert_eq!(rest, serde_json::from_str::<serde_json::Value>(&without).unwrap(), "{shape:?}");
        with
    });
    insta::assert_snapshot!("outcomes", rendered.collect::<Vec<_>>().join("\n"));
}
