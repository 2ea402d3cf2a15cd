//! Provider inputs from the bodies of requests. The tests of `adapters-provider` include this folder too.
#![allow(dead_code, reason = "each test target uses a part of it")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

pub mod provider_inputs;

use std::sync::Arc;

use domain::decision::{AssetPart, DecisionDraft, DecisionRequest};
use domain::json::Json;
use domain::question::{ProviderInput, QuestionKind, StateForm};

/// Returns the checked request of a caller's body. Besides the canonical members it may have members of other inbound
/// wires: `state_form`, `media_in_state`, and `booleans` with the names of options that represent booleans.
pub fn request(body: &str) -> DecisionRequest {
    request_with(body, Vec::new())
}

pub fn request_with(body: &str, asset_parts: Vec<AssetPart>) -> DecisionRequest {
    let members = Json::parse(body).unwrap().members().unwrap();
    let member = |name: &str| members.iter().find(|(member, _)| member == name).map(|(_, json)| json.clone());
    let state_form = member("state_form").map(|form| match form.as_string().unwrap().as_str() {
        "openai" => StateForm::OpenAiItems,
        other => {
            assert_eq!(other, "gemini");
            StateForm::GeminiParts
        }
    });
    let draft = DecisionDraft {
        model: member("model"),
        questions: member("questions"),
        state: member("state"),
        state_form,
        media_in_state: member("media_in_state").is_some(),
        assets: member("assets"),
        asset_parts,
        images: member("images"),
        provider: member("provider"),
        session_id: member("session_id"),
        trace: member("trace"),
        user: member("user"),
        ..DecisionDraft::default()
    };
    let mut request = draft.check().unwrap();
    let booleans = member("booleans").and_then(|names| names.elements()).unwrap_or_default();
    let booleans: Vec<String> = booleans.iter().map(|name| name.as_string().unwrap()).collect();
    let provider_input = Arc::make_mut(&mut request.provider_input);
    for question in provider_input.questions.typed.iter_mut().flat_map(Arc::make_mut) {
        if let QuestionKind::Choice { options } = &mut question.kind {
            for option in options.iter_mut().filter(|option| booleans.contains(&option.name)) {
                option.boolean = Some(option.name.starts_with("true"));
            }
        }
    }
    request
}

pub fn provider_input(body: &str) -> Arc<ProviderInput> {
    request(body).provider_input
}
