//! Tests of requests that name a preset.

use super::*;
use crate::decision::{DecisionDraft, InvalidDecision};
use crate::error::ErrorKind;
use crate::ids::WorkspaceId;
use crate::json::Json;
use crate::preset::fixtures::preset;
use crate::preset::{DesignatedPreset, MockPresets, Preset, PresetConfig, PresetVersion};
use crate::testing::SequentialIds;

fn draft(text: &str) -> Result<DecisionRequest, InvalidDecision> {
    let mut draft = DecisionDraft::default();
    for (name, value) in Json::parse(text).unwrap().members().unwrap() {
        match name.as_str() {
            "model" => draft.model = Some(value),
            "models" => draft.models = Some(value),
            "questions" => draft.questions = Some(value),
            _ => draft.state = Some(value),
        }
    }
    draft.check()
}

fn config(text: &str) -> Result<PresetConfig, String> {
    PresetConfig::read(&Json::parse(text).unwrap()).map_err(|error| error.to_string())
}

async fn resolve(text: &str, status: Option<PresetStatus>) -> Result<DecisionRequest, SubmitDecisionError> {
    let mut presets = MockPresets::new();
    presets.expect_find_designated().returning(move |_, _| {
        let text = r#"{"models":["a/b","a/c"],"questions":{"q":{"type":"noul","instructions":"?"}}}"#;
        let found = status.map(|status| DesignatedPreset {
            preset: Preset { status, designated_version: 3, ..preset(7) },
            version: PresetVersion {
                number: 3,
                config: config(text).unwrap(),
                created_by: "system".to_owned(),
                created_at: preset(7).created_at,
            },
        });
        Ok(found.map(Arc::new))
    });
    let key = InferenceKey::for_tests(SequentialIds::key(1), WorkspaceId::from_uuid(SequentialIds::uuid(1)));
    ResolvePreset::new(Arc::new(presets)).execute(&key, draft(text).unwrap()).await
}

#[tokio::test]
async fn preset_gives_models_and_questions_to_the_request() {
    for questions in [r#","questions":{}"#, r#","questions":{ }"#, r#","questions":null"#, ""] {
        let text = format!(r#"{{"model":"@preset/triage","state":"s"{questions}}}"#);
        let request = resolve(&text, Some(PresetStatus::Active)).await.unwrap();
        assert_eq!(
            (request.model.as_str(), request.fallback_models.as_slice()),
            ("a/b", ["a/c".to_owned()].as_slice())
        );
        let input = &request.provider_input;
        assert_eq!(input.questions.json.text(), r#"{"q":{"type":"noul","instructions":"?"}}"#);
        assert_eq!((input.questions.count(), input.state.as_ref().unwrap().text()), (1, "\"s\""));
        let reference = request.preset.unwrap();
        assert_eq!((reference.id, reference.version), (preset(7).id, 3));
    }
    let plain = r#"{"model":"a/b","state":"s","questions":{"q":{"type":"noul","instructions":"?"}}}"#;
    let request = resolve(plain, None).await.unwrap();
    assert_eq!((request.model.as_str(), request.preset), ("a/b", None));
}

#[tokio::test]
async fn preset_that_is_not_active_is_not_found_with_a_sentence() {
    let text = r#"{"model":"@preset/triage","state":"s","questions":{}}"#;
    for (status, sentence) in [
        (None, "The workspace of this key has no preset \"triage\""),
        (Some(PresetStatus::Disabled), "The preset \"triage\" is disabled"),
        (Some(PresetStatus::Archived), "The preset \"triage\" is archived"),
    ] {
        let error = resolve(text, status).await.unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::NotFound, sentence));
    }
    let hostile = format!(r#"{{"model":"@preset/{}\u0007","state":"s"}}"#, "x".repeat(10_000));
    assert!(resolve(&hostile, None).await.unwrap_err().to_string().len() < 150);
}

#[test]
fn preset_excludes_questions_and_further_models() {
    let fault = |text: &str| draft(text).unwrap_err().to_string();
    let own = "questions: must be {} with a preset, which has its own questions";
    for questions in [r#"{"q":{"type":"noul","instructions":"?"}}"#, "[]", "1", r#"{"a":1}"#] {
        assert_eq!(fault(&format!(r#"{{"model":"@preset/a","state":"s","questions":{questions}}}"#)), own);
    }
    let models = "models: must be absent with a preset, which has its own models";
    for names in [r#""model":"@preset/a","models":["a/b"]"#, r#""model":"a/b","models":["@preset/a"]"#] {
        assert_eq!(fault(&format!(r#"{{{names},"state":"s","questions":{{}}}}"#)), models);
    }
    assert_eq!(fault(r#"{"model":"@preset/a","questions":{}}"#), "state: is required with typed questions");
    let without = fault(r#"{"model":"preset/a","state":"s","questions":{}}"#);
    assert_eq!(without, "questions: must have at least one question");
}

#[test]
fn config_has_models_and_typed_questions_and_is_written_as_read() {
    let questions = r#""questions":{"q":{"type":"noul","instructions":"?"}}"#;
    let read = config(&format!(r#"{{"model":"a/b","models":["a/c","a/b"],{questions}}}"#)).unwrap();
    assert_eq!(read.models, ["a/b", "a/c"]);
    let json = read.to_json();
    assert_eq!(json.text(), format!(r#"{{"models":["a/b","a/c"],{questions}}}"#));
    assert_eq!(config(json.text()), Ok(read));
    for (text, expected) in [
        (format!("{{{questions}}}"), "model: is required"),
        (format!(r#"{{"model":"@preset/a",{questions}}}"#), "questions: must be {} with a preset"),
        (r#"{"model":"@preset/a","questions":{}}"#.to_owned(), "model: must be a model, not a preset"),
        (r#"{"model":"a/b"}"#.to_owned(), "questions: is required"),
        (r#"{"model":"a/b","questions":{}}"#.to_owned(), "questions: must have at least one question"),
        (r#"{"model":"a/b","questions":{"q":1}}"#.to_owned(), "questions: must be an object that maps names"),
        ("[]".to_owned(), "model: is required"),
    ] {
        let fault = config(&text).unwrap_err();
        assert!(fault.starts_with(expected), "{text}: {fault}");
    }
    let long = "x".repeat(PresetConfig::MAX_BYTES);
    let text = format!(r#"{{"model":"a/b","questions":{{"q":{{"type":"noul","instructions":"{long}"}}}}}}"#);
    assert!(config(&text).unwrap_err().starts_with("questions: must take at most 65536 bytes"));
}
