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
    for slug in [format!("{}\\u0007", "x".repeat(10_000)), "a\\u0000b".to_owned(), "A".to_owned(), String::new()] {
        let hostile = format!(r#"{{"model":"@preset/{slug}","state":"s"}}"#);
        let error = resolve(&hostile, Some(PresetStatus::Active)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{slug}");
        assert!(error.to_string().len() < 150);
    }
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
        (format!("{{{questions}}}"), "models: is required, or stages"),
        (format!(r#"{{"models":[],{questions}}}"#), "models: is required, or stages"),
        (format!(r#"{{"model":"@preset/a",{questions}}}"#), "questions: must be {} with a preset"),
        (r#"{"model":"@preset/a","questions":{}}"#.to_owned(), "model: must be a model, not a preset"),
        (r#"{"model":"a/b"}"#.to_owned(), "questions: is required"),
        (r#"{"model":"a/b","questions":{}}"#.to_owned(), "questions: must have at least one question"),
        (r#"{"model":"a/b","questions":{"q":1}}"#.to_owned(), "questions: must be an object that maps names"),
        ("[]".to_owned(), "models: is required, or stages"),
    ] {
        let fault = config(&text).unwrap_err();
        assert!(fault.starts_with(expected), "{text}: {fault}");
    }
    let long = "x".repeat(PresetConfig::MAX_BYTES);
    let text = format!(r#"{{"model":"a/b","questions":{{"q":{{"type":"noul","instructions":"{long}"}}}}}}"#);
    assert!(config(&text).unwrap_err().starts_with("questions: must take at most 65536 bytes"));
}

#[test]
fn stages_are_read_as_they_were_written() {
    let questions =
        r#""questions":{"a":{"type":"noul","instructions":"?"},"b":{"type":"choice","criteria":{"x":null,"y":null}}}"#;
    let read = |stages: &str| config(&format!(r#"{{"stages":{stages},{questions}}}"#));
    let text =
        r#"[{"model":"a/b","accept":{"*": 0.80,"a":{"yes":0.95,"no":0.7},"b":{"*":1,"x":0.5}}},{"model":"a/c"}]"#;
    let found = read(text).unwrap();
    assert_eq!(found.models, ["a/b", "a/c"]);
    let cascade = found.cascade.as_ref().unwrap();
    let thresholds = &cascade.stages[0].accept.as_ref().unwrap().thresholds;
    let numbers: Vec<Vec<f64>> = thresholds.iter().map(|all| all.iter().map(|least| least.get()).collect()).collect();
    assert_eq!(numbers, [[0.95, 0.7], [0.5, 1.0]]);
    assert_eq!(cascade.otherwise, crate::preset::Otherwise::Answer);
    let json = found.to_json();
    assert!(json.text().contains(r#"{"*": 0.80,"a":{"yes":0.95,"no":0.7},"b":{"*":1,"x":0.5}}"#), "{}", json.text());
    assert_eq!(PresetConfig::read(&json), Ok(found), "sent back, it changes nothing");

    // Null means absent.
    let nulls = format!(r#"{{"stages":null,"otherwise":null,"models":null,"model":"a/b",{questions}}}"#);
    assert_eq!(config(&nulls), config(&format!(r#"{{"model":"a/b",{questions}}}"#)));
    let nulls = format!(r#"{{"stages":[{{"model":"a/b","accept":null}}],"otherwise":null,"model":null,{questions}}}"#);
    assert_eq!(config(&nulls), read(r#"[{"model":"a/b"}]"#));
    assert!(read("null").unwrap_err().starts_with("models: is required"));

    let one = |accept: &str| read(&format!(r#"[{{"model":"a/b","accept":{accept}}}]"#)).unwrap_err();
    for (accept, expected) in [
        ("0.8", "stages[0].accept: must be an object"),
        (r#"{"a":0.8}"#, r#"stages[0].accept["b"]: is required: add the question, or "*" for all others"#),
        (r#"{"*":0.8,"aa":0.8}"#, r#"stages[0].accept: unknown question "aa"; the nearest known question is "a""#),
        (r#"{"*":0.8,"*":0.9}"#, r#"stages[0].accept: has the member "*" more than once"#),
        (r#"{"*":1.1}"#, r#"stages[0].accept["*"]: must be a number from 0 to 1, or an object with one by decision"#),
        (
            r#"{"*":0.8,"b":{"*":1.1,"x":1}}"#,
            r#"stages[0].accept["b"]["*"]: must be a number from 0 to 1, or an object with one by decision"#,
        ),
        (r#"{"*":0.8,"a":{"yes":0.9}}"#, r#"stages[0].accept["a"]["no"]: is required: add it, or "*" for all others"#),
        (r#"{"*":0.8,"b":{"*":0.8,"z":1}}"#, r#"stages[0].accept["b"]: unknown decision "z""#),
    ] {
        assert_eq!(one(accept), expected, "{accept}");
    }
    for (stages, expected) in [
        ("[]", "stages: must be an array of 1 to 4 objects with model and accept"),
        ("{}", "stages: must be an array of 1 to 4 objects with model and accept"),
        (r#"[{"model":""}]"#, "stages[0].model: must be a non-empty string"),
        (
            r#"[{"model":"a/b","acept":{}}]"#,
            r#"stages[0]: unknown member "acept"; the nearest known member is "accept""#,
        ),
        (
            r#"[{"model":"a/b"},{"model":"a/c"}]"#,
            "stages[0].accept: is required: without thresholds a stage accepts every decision, and the next one is never asked",
        ),
    ] {
        assert_eq!(read(stages).unwrap_err(), expected, "{stages}");
    }
    let other = |members: &str| config(&format!("{{{members},{questions}}}")).unwrap_err();
    assert_eq!(
        other(r#""model":"a/b","stages":[{"model":"a/b"}]"#),
        "model: must be absent: the stages name their models"
    );
    assert_eq!(other(r#""model":"a/b","otherwise":"answer""#), "otherwise: requires stages");
    assert_eq!(other(r#""stages":[{"model":"a/b"}],"otherwise":"x""#), r#"otherwise: must be "answer" or "abstain""#);
    assert_eq!(other(r#""stages":[{"model":"@preset/x"}]"#), "stages[0].model: must be a model, not a preset");
}
