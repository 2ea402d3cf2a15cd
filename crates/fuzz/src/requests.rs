//! Requests by every inbound wire, and on to every outbound wire.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use api_actix::detection::{Entry, read_bytes};
use domain::decision::{AssetPart, DecisionDraft, InvalidDecision};
use domain::json::Json;
use domain::question::{Answers, Attachments, ProviderInput, StateForm};
use wires::canonical::divide;
use wires::client::{BodyError, ErrorLocation, ErrorResponse};
use wires::formats::{ParsedRequest, ResponseFormat, Shape};
use wires::provider::WireCodec;
use wires::{gemini, openai, sglang, system_one};

use crate::answers::{self, check_unique_members, member};
use crate::{chat, codecs};

/// Reads a body by an entry. A request of another wire than `wanted` belongs to that wire's target.
///
/// # Errors
/// The violated property.
pub fn check(entry: Entry, wanted: Option<Shape>, body: &[u8]) -> Result<()> {
    match read_bytes(entry, body) {
        Err((_, BodyError::Invalid(fault))) => check_rejection(&fault),
        Err((_, fault)) => check_rejection(&InvalidDecision::new("", fault.to_string())),
        Ok(asked) if wanted.is_some_and(|wanted| asked.response_format.shape() != wanted) => Ok(()),
        Ok(ParsedRequest { draft, response_format }) => match draft.check() {
            Err(fault) => check_rejection(&fault),
            Ok(request) => {
                check_outbound(&request.provider_input)?;
                check_round_trip(&response_format, &request.provider_input)?;
                check_answerable(&request.provider_input)
            }
        },
    }
}

/// Checks that a body has the same meaning by wire detection and by the wire's own entry.
///
/// # Errors
/// The violated property.
pub fn check_dispatch(body: &[u8]) -> Result<()> {
    let Ok(found) = read_bytes(Entry::AnyShape, body) else { return Ok(()) };
    let own = match found.response_format.shape() {
        Shape::SystemOne => Entry::SystemOne,
        Shape::Gemini => Entry::Gemini,
        Shape::OpenAi | Shape::Sglang => return Ok(()),
    };
    let own = read_bytes(own, body).map_err(|(_, fault)| fault).context("its own entry refuses it")?;
    ensure!(found.response_format == own.response_format, "its own entry selects another response format");
    match (found.draft.check(), own.draft.check()) {
        (Ok(found), Ok(own)) => ensure!(found == own, "it is another request by its own entry"),
        (Err(found), Err(own)) => ensure!(found == own, "it has another fault by its own entry"),
        _ => ensure!(false, "one entry takes it and the other does not"),
    }
    Ok(())
}

/// Checks a draft whose members come from a JSON object. Beside the members of a body there are `form` and `parts`: the
/// format of the state, and the names of the form's file parts.
///
/// # Errors
/// The violated property.
pub fn check_draft(input: &[u8]) -> Result<()> {
    if let Err((_, BodyError::TooDeep | BodyError::LoneSurrogate)) = read_bytes(Entry::Contract, input) {
        // Drafts are built from text that passed this check.
        return Ok(());
    }
    let Some(object) = std::str::from_utf8(input).ok().and_then(|text| Json::parse(text).ok()) else { return Ok(()) };
    let get = |name: &str| member(&object, name);
    let parts = get("parts").and_then(|parts| parts.elements()).unwrap_or_default();
    let part = |name: &Json| AssetPart {
        name: name.as_string().unwrap_or_default(),
        media_type: Some(name.text().to_owned()),
        data: Arc::from(name.text().as_bytes()),
    };
    let form = get("form").and_then(|form| form.as_string());
    let draft = DecisionDraft {
        model: get("model"),
        models: get("models"),
        questions: get("questions"),
        typed: None,
        state: get("state"),
        state_form: match form.as_deref() {
            Some("items") => Some(StateForm::OpenAiItems),
            Some("parts") => Some(StateForm::GeminiParts),
            _ => None,
        },
        media_in_state: get("media").is_some(),
        assets: get("assets"),
        asset_parts: parts.iter().map(part).collect(),
        images: get("images"),
        provider: get("provider"),
        session_id: get("session_id"),
        session_id_header: get("header").and_then(|header| header.as_string()),
        trace: get("trace"),
        user: get("user"),
        partial: get("partial"),
    };
    match draft.check() {
        Err(fault) => check_rejection(&fault),
        Ok(request) => {
            ensure!(!request.model.is_empty(), "a request for no model");
            check_outbound(&request.provider_input)?;
            check_answerable(&request.provider_input)
        }
    }
}

/// Checks that every wire writes the error as valid JSON.
fn check_rejection(fault: &InvalidDecision) -> Result<()> {
    ensure!(!fault.fault.is_empty(), "a fault without a word");
    let (message, location) = (fault.to_string(), ErrorLocation::Member(fault.path.clone()));
    let metadata = serde_json::Map::new();
    let refusal = ErrorResponse {
        status: 400,
        message: &message,
        location: Some(&location),
        metadata: &metadata,
        amounts: &[],
        user_id: None,
        service_metadata: None,
        retry_after: Some(Duration::from_millis(1500)),
    };
    for write in [
        system_one::errors::write,
        openai::client_response::write_error,
        gemini::errors::write,
        sglang::client_response::write_error,
    ] {
        let body = Json::parse(&write(&refusal)).context("an error that is no JSON")?;
        check_unique_members(&body)?;
    }
    Ok(())
}

/// Checks that each outbound wire writes the input as JSON or rejects it.
pub(crate) fn check_outbound(provider_input: &Arc<ProviderInput>) -> Result<()> {
    for codec in codecs::all() {
        check_outbound_wire(codec.as_ref(), provider_input)
            .with_context(|| format!("written by {}", codec.wire().as_str()))?;
    }
    chat::check_outbound(provider_input).context("written for a chat model")
}

fn check_outbound_wire(codec: &dyn WireCodec, provider_input: &Arc<ProviderInput>) -> Result<()> {
    let division = divide(provider_input);
    let asked = if codec.refuses_single_outcomes() { division.remaining } else { Some(Arc::clone(provider_input)) };
    let Some(asked) = asked else { return Ok(()) };
    let Ok(payload) = codec.write("upstream/model", &asked) else { return Ok(()) };
    let bytes = payload.to_bytes();
    ensure!(payload.len_bytes() == u64::try_from(bytes.len())?, "its reported length is wrong");
    if payload.media_type() != "application/json" {
        return Ok(());
    }
    let body = Json::parse(std::str::from_utf8(&bytes)?).context("it is no JSON")?;
    check_unique_members(&body)?;
    let questions = member(&body, "questions").context("it has no questions")?;
    if asked.questions.typed.is_some() {
        let named = questions.members().map(|members| members.len());
        let count = named.or_else(|| questions.elements().map(|elements| elements.len()));
        ensure!(count == Some(asked.questions.count()), "a question is lost");
    }
    Ok(())
}

/// Checks that a request survives a round trip by one wire. The first trip may normalise it (text members come back as
/// strings); the second one must not change it.
fn check_round_trip(response_format: &ResponseFormat, provider_input: &Arc<ProviderInput>) -> Result<()> {
    let Some(once) = round_trip(response_format.shape(), provider_input)? else { return Ok(()) };
    let Some(twice) = round_trip(response_format.shape(), &once)? else { return Ok(()) };
    ensure!(once == twice, "it comes back as something else each time");
    Ok(())
}

/// Sends and receives by the same wire. Returns `None` if the wire cannot carry the input.
fn round_trip(form: Shape, provider_input: &Arc<ProviderInput>) -> Result<Option<Arc<ProviderInput>>> {
    if let Attachments::Assets(_) = provider_input.attachments {
        // Files may be sent as form parts, which another target reads.
        return Ok(None);
    }
    let Ok(out) = codecs::of_shape(form).write("upstream/model", provider_input) else { return Ok(None) };
    let entry = match form {
        Shape::SystemOne => Entry::Contract,
        Shape::Gemini => Entry::Gemini,
        Shape::OpenAi | Shape::Sglang => Entry::AnyShape,
    };
    let back = match read_bytes(entry, &out.to_bytes()) {
        Ok(back) => back,
        // The outbound format may need one more level than the inbound one.
        Err((_, BodyError::TooDeep)) => return Ok(None),
        Err((_, fault)) => return Err(fault).context("its own wire does not take it back"),
    };
    ensure!(back.response_format.shape() == form, "it comes back by another wire");
    Ok(Some(back.draft.check().context("it does not come back as a request")?.provider_input))
}

/// Checks that every inbound wire can answer the input.
pub(crate) fn check_answerable(provider_input: &Arc<ProviderInput>) -> Result<()> {
    let Some(questions) = &provider_input.questions.typed else { return Ok(()) };
    let made = answers::sample_answers(questions);
    let checked = Answers::check(&provider_input.questions, &made, answers::RULES);
    let checked = checked.map_err(anyhow::Error::msg).context("good answers are not believed")?;
    answers::check_every_wire(provider_input, &checked, answers::RULES)
}
