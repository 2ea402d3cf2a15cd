use super::*;
use crate::decision::DecisionDraft;
use crate::guardrail::{Guardrail, GuardrailName, GuardrailRules};
use crate::ids::GuardrailId;
use crate::json::Json;
use crate::question::{Asset, ChoiceOption, ProviderInput, Question, StateForm};
use crate::testing::SequentialIds;
use std::sync::Arc;

fn request() -> DecisionRequest {
    let draft = DecisionDraft {
        model: Json::parse("\"acme/judge\"").ok(),
        questions: Json::parse(r#"{"q":{"type":"noul","instructions":"?"}}"#).ok(),
        state: Json::parse("\"s\"").ok(),
        ..DecisionDraft::default()
    };
    draft.check().unwrap()
}

fn key_of(request: &DecisionRequest) -> CallKey {
    let workspace = WorkspaceId::from_uuid(SequentialIds::uuid(1));
    CallKey::new(workspace, None, (&"acme/judge".parse().unwrap(), false), Usd::ZERO, request)
}

fn with_provider_input(change: impl FnOnce(&mut ProviderInput)) -> DecisionRequest {
    let mut request = request();
    let mut provider_input = (*request.provider_input).clone();
    change(&mut provider_input);
    request.provider_input = Arc::new(provider_input);
    request
}

fn asset(name: &str, data: &[u8], media_type: Option<&str>) -> Asset {
    let entry = Json::parse(r#"{"part":"p"}"#).unwrap();
    Asset { name: name.to_owned(), entry, data: Arc::from(data), media_type: media_type.map(str::to_owned) }
}

fn choice(boolean: Option<bool>) -> DecisionRequest {
    let options = vec![ChoiceOption { boolean, ..ChoiceOption::new("true", None) }, ChoiceOption::new("other", None)];
    let question = Question::canonical("q", None, QuestionKind::Choice { options }, "q").unwrap();
    with_provider_input(|provider_input| provider_input.questions = Questions::from_typed(vec![question]))
}

#[test]
fn key_differs_when_anything_differs_that_reaches_a_provider_or_chooses_one() {
    let images = |text: &str| Attachments::Images(Json::parse(text).unwrap());
    let assets = |assets: &[Asset]| Attachments::Assets(assets.to_vec());
    let mut ordered = request();
    ordered.preferences.order = vec!["a".to_owned()];
    let mut ignoring = request();
    ignoring.preferences.ignore = vec!["a".to_owned()];
    let different = [
        request(),
        DecisionRequest { model: "judge".to_owned(), ..request() },
        DecisionRequest { fallback_models: vec!["x".to_owned()], ..request() },
        DecisionRequest { fallback_models: vec!["x".to_owned(), "y".to_owned()], ..request() },
        DecisionRequest { partial: true, ..request() },
        ordered,
        ignoring,
        with_provider_input(|provider_input| provider_input.state = None),
        with_provider_input(|provider_input| provider_input.state = Json::parse("\"s2\"").ok()),
        with_provider_input(|provider_input| provider_input.state_form = StateForm::OpenAiItems),
        with_provider_input(|provider_input| provider_input.attachments = Attachments::InState),
        with_provider_input(|provider_input| provider_input.attachments = images("[1]")),
        with_provider_input(|provider_input| provider_input.attachments = images("[2]")),
        with_provider_input(|provider_input| provider_input.attachments = assets(&[asset("a", b"1", None)])),
        with_provider_input(|provider_input| provider_input.attachments = assets(&[asset("a", b"2", None)])),
        with_provider_input(|provider_input| provider_input.attachments = assets(&[asset("b", b"1", None)])),
        with_provider_input(|provider_input| provider_input.attachments = assets(&[asset("a", b"1", Some(""))])),
        with_provider_input(|provider_input| {
            provider_input.attachments = assets(&[asset("a", b"1", None), asset("a", b"1", None)]);
        }),
        choice(None),
        choice(Some(true)),
    ];
    let mut keys: Vec<CallKey> = different.iter().map(key_of).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), different.len());
    let one = &different[0];
    let workspace = |number| WorkspaceId::from_uuid(SequentialIds::uuid(number));
    let (judge, other) = ("acme/judge".parse().unwrap(), "acme/other".parse().unwrap());
    let key = |workspace, route, ceiling| CallKey::new(workspace, None, route, ceiling, one);
    assert_eq!(key(workspace(1), (&judge, false), Usd::ZERO), key_of(one));
    assert_ne!(key(workspace(2), (&judge, false), Usd::ZERO), key_of(one));
    assert_ne!(key(workspace(1), (&other, false), Usd::ZERO), key_of(one));
    assert_ne!(key(workspace(1), (&judge, true), Usd::ZERO), key_of(one), "it is charged otherwise");
    assert_ne!(key(workspace(1), (&judge, false), Usd::from_pico(1)), key_of(one), "it holds another ceiling");
}

#[test]
fn key_differs_when_guardrails_or_their_versions_differ() {
    let guardrail = |number: u64, version: u32| Guardrail {
        id: GuardrailId::from_uuid(SequentialIds::uuid(number)),
        workspace_id: WorkspaceId::from_uuid(SequentialIds::uuid(1)),
        name: GuardrailName::try_new("g").unwrap(),
        budget: None,
        rules: GuardrailRules::default(),
        version,
        created_at: chrono::DateTime::UNIX_EPOCH,
        updated_at: None,
    };
    let under = |guardrails: &[Guardrail]| {
        let policy = Policy::compile(guardrails.to_vec()).unwrap();
        let workspace = WorkspaceId::from_uuid(SequentialIds::uuid(1));
        CallKey::new(workspace, Some(&policy), (&"acme/judge".parse().unwrap(), false), Usd::ZERO, &request())
    };
    let one = guardrail(5, 1);
    let mut keys = vec![key_of(&request())];
    keys.push(under(std::slice::from_ref(&one)));
    keys.push(under(&[guardrail(5, 2)]));
    keys.push(under(&[guardrail(6, 1)]));
    keys.push(under(&[one.clone(), guardrail(6, 1)]));
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 5);
    assert_eq!(under(std::slice::from_ref(&one)), under(&[one]));
}

#[test]
fn key_is_equal_when_only_labels_differ() {
    let other = DecisionRequest {
        session_id: Some("s".to_owned()),
        user: Some("u".to_owned()),
        trace: Json::parse("{}").ok(),
        ..request()
    };
    assert_eq!(key_of(&request()), key_of(&other));
}
