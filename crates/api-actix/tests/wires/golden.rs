//! The golden files of the crate `wires`: their bodies are detected, and what is written matches the served document.

use std::fs;
use std::path::PathBuf;

use api_actix::detection::{Entry, read_bytes};
use domain::json::Json;
use wires::formats::{ResponseFormat, Shape};

use super::answers::body;
use super::support::{assert_valid, response_schema};

fn folder(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../wires/tests/client").join(path)
}

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

#[test]
fn fixtures_are_detected_and_their_responses_match_schema() {
    let mut answered = 0;
    for file in fs::read_dir(folder("golden")).unwrap() {
        let file = file.unwrap().path();
        let name = file.file_stem().unwrap().to_str().unwrap();
        let fixture = Json::parse(&fs::read_to_string(&file).unwrap()).unwrap();
        let entry = entry(&member(&fixture, "entry").unwrap().as_string().unwrap());
        let asked = match read_bytes(entry, member(&fixture, "body").unwrap().text().as_bytes()) {
            Ok(asked) => asked,
            Err((found, _)) => {
                assert_eq!(found, Some(shape(name)), "{name}");
                continue;
            }
        };
        assert_eq!(asked.response_format.shape(), shape(name), "{name}");
        assert_eq!(asked.response_format == ResponseFormat::Contract, entry == Entry::Contract, "{name}");
        if let Ok(request) = asked.draft.clone().check() {
            let body = body(&asked, &request, &member(&fixture, "answers").unwrap());
            assert_valid(response_schema(asked.response_format.shape()), &body);
            answered += 1;
        }
    }
    assert!(answered >= 15, "{answered}");
}

/// Returns the lines of a golden file behind its header.
fn snapshot(name: &str) -> String {
    let text = fs::read_to_string(folder("snapshots").join(name)).unwrap();
    text.splitn(3, "---\n").nth(2).unwrap().to_owned()
}

#[test]
fn partial_responses_match_schema() {
    let bodies = snapshot("client__golden__unanswered.snap");
    let shapes = [Shape::SystemOne, Shape::OpenAi, Shape::Gemini, Shape::Sglang];
    assert_eq!(bodies.lines().count(), shapes.len());
    for (shape, body) in shapes.into_iter().zip(bodies.lines()) {
        assert_valid(response_schema(shape), body);
    }
}

#[test]
fn errors_match_schema() {
    let errors = snapshot("client__errors__failures.snap");
    let schemas = [
        ("system-one", "SystemOneError"),
        ("openai", "OpenAiError"),
        ("gemini", "GeminiError"),
        ("sglang", "SglangError"),
    ];
    let mut count = 0;
    for (name, body) in errors.lines().filter_map(|line| line.strip_prefix("  ")?.split_once('{')) {
        let (_, schema) = schemas.into_iter().find(|(wire, _)| *wire == name.trim()).unwrap();
        assert_valid(schema, &format!("{{{body}"));
        count += 1;
    }
    assert_eq!(count, 7 * schemas.len());
}

#[test]
fn unknown_shape_is_rejected() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/wires/golden/unknown-shape.json");
    let fixture = Json::parse(&fs::read_to_string(file).unwrap()).unwrap();
    let body = member(&fixture, "body").unwrap();
    let (shape, fault) = read_bytes(Entry::AnyShape, body.text().as_bytes()).unwrap_err();
    insta::assert_snapshot!("unknown-shape", format!("{shape:?}: {fault}\n"));
}
