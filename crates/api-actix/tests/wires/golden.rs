//! Golden files: the canonical form of fixture requests, and their responses.

use std::fmt::Write as _;
use std::path::Path;

use api_actix::wires::DecisionResponse;
use api_actix::wires::dispatch::{Entry, ParsedRequest, read_bytes, write};
use domain::decision::{
    Answers, Asset, Attachments, ChoiceOption, Decision, DecisionRequest, ProviderInput, QuestionKind, Questions,
};
use domain::error::ErrorKind;
use domain::json::Json;

use super::support::{assert_valid, body, decision, response_schema};

/// Returns a fixture member, byte for byte: `entry`, `body` and, for a valid request, `answers` in canonical form.
fn member(fixture: &Json, name: &str) -> Option<Json> {
    fixture.members().unwrap().into_iter().find(|(member, _)| member == name).map(|(_, json)| json)
}

fn entry(name: &str) -> Entry {
    match name {
        "contract" => Entry::Contract,
        "system-one" => Entry::SystemOne,
        "any" => Entry::AnyShape,
        "gemini" => Entry::Gemini,
        other => panic!("{other}"),
    }
}

fn rendered(fixture: &Json) -> String {
    let asked = read_bytes(
        entry(&member(fixture, "entry").unwrap().as_string().unwrap()),
        member(fixture, "body").unwrap().text().as_bytes(),
    );
    let asked = match asked {
        Ok(asked) => asked,
        Err((shape, fault)) => return format!("{shape:?}: {fault}\n"),
    };
    match asked.draft.clone().check() {
        Ok(request) => {
            let body = body(&asked, &request, &member(fixture, "answers").unwrap());
            assert_valid(response_schema(asked.response_format.shape()), &body);
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
    for question in provider_input.questions.typed.iter().flatten() {
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wires/golden");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 20, "{}", files.len());
    for file in files {
        let fixture = Json::parse(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        insta::assert_snapshot!(name, rendered(&fixture));
    }
}

/// Checks a partial response with an unanswered question on every wire.
#[test]
fn unanswered_question_has_error_on_every_wire() {
    let bodies = [
        r#"{"model":"m","state":"s","questions":{"a":{"type":"noul","instructions":"?"},"b":{"type":"noul","instructions":"?"}}}"#,
        r#"{"model":"m","input":"s","questions":[{"type":"predicate","name":"a","instructions":"?"},{"type":"predicate","instructions":"?"}]}"#,
        r#"{"model":"m","input":"s","questions":{"a":{"type":"noul","instructions":"?"},"b":{"type":"noul","instructions":"?"}}}"#,
        r#"{"model":"m","input":"s","questions":[{"id":"a","type":"yes_no","question":"?"},{"id":"b","type":"yes_no","question":"?"}]}"#,
    ];
    let rendered: Vec<String> = bodies
        .iter()
        .map(|body| {
            let asked = read_bytes(Entry::AnyShape, body.as_bytes()).unwrap();
            let request = asked.draft.clone().check().unwrap();
            let questions = request.provider_input.questions.typed.clone().unwrap();
            let first = ProviderInput::new(Questions::from_typed(vec![questions[0].clone()]), None);
            let first = DecisionRequest { provider_input: first.into(), ..request.clone() };
            let part = decision(&first, &Json::parse(r#"{"a":{"type":"noul","noul":0.25}}"#).unwrap());
            let answers = Answers::merge(&questions, vec![part.answers.clone()], ErrorKind::TimedOut);
            let decision = Decision { answers, ..part };
            let body = write(
                &asked.response_format,
                &DecisionResponse { decision: &decision, questions: &questions, service_metadata: None },
            );
            assert_valid(response_schema(asked.response_format.shape()), &body);
            body
        })
        .collect();
    insta::assert_snapshot!("unanswered", rendered.join("\n"));
}
