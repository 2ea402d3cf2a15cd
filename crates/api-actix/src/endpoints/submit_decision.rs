//! Decisions requests on every path and wire.

mod errors;
mod request;

use std::borrow::Cow;

use actix_web::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use domain::api_key::InferenceKey;
use domain::decision::{Decision, DecisionRequest, TakenTokens};
use domain::question::ProviderInput;
use domain::usage::{QuestionOutcomes, QuestionVerdict};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tokio_util::sync::CancellationToken;
use wires::client::DecisionResponse;
use wires::formats;
use wires::formats::ResponseFormat;

use self::errors::{ResponseMetadata, api_error};
use self::request::ReceivedRequest;
use crate::detection::Entry;
use crate::endpoints::prelude::*;
use crate::http::access_log::ChargeFields;
use crate::http::detach::box_in_place;
use crate::http::error::ErrorFormat;
use crate::openapi::decisions;

/// Creates the route of a path, by the formats that it accepts.
macro_rules! route {
    ($entry:expr, $pattern:literal, under_base: $under_base:literal) => {{
        let route = Route::any_key(Post, $pattern, tags::DECISIONS, |call, caller, payload| {
            Box::pin(handle(call, caller, $entry, payload))
        })
        .any_query()
        .with_body()
        .complete(|_| decisions::describe($entry, $under_base));
        let route = if $under_base { route } else { route.outside_base() };
        match $entry {
            Entry::Contract => route,
            entry => route.for_vendor_clients(ErrorFormat::for_entry(entry, entry.shape(), $under_base)),
        }
    }};
}

/// The contract's path.
pub(crate) const CONTRACT: Route = route!(Entry::Contract, "/api/alpha/decisions", under_base: true);
/// The path of the client packages.
pub(crate) const CONTRACT_OUTSIDE_BASE: Route = route!(Entry::Contract, "/api/alpha/decisions", under_base: false);
pub(crate) const SYSTEM_ONE: Route = route!(Entry::SystemOne, "/v1/systemone", under_base: false);
pub(crate) const SYSTEM_ONE_UNDER_BASE: Route = route!(Entry::SystemOne, "/systemone", under_base: true);
pub(crate) const ANY_SHAPE: Route = route!(Entry::AnyShape, "/v1/decisions", under_base: false);
pub(crate) const ANY_SHAPE_UNDER_BASE: Route = route!(Entry::AnyShape, "/decisions", under_base: true);
pub(crate) const GEMINI: Route = route!(Entry::Gemini, "/v1beta/decisions", under_base: false);

const GENERATION_ID: HeaderName = HeaderName::from_static("x-generation-id");
/// Reports that the questions were forwarded without validation.
const QUESTIONS: HeaderName = HeaderName::from_static("x-tollgate-questions");
/// The questions without a decision of a preset with stages: their names, separated by commas.
const ABSTAINED: HeaderName = HeaderName::from_static("x-tollgate-abstained");
/// The longest value of that header; the body names all.
const MAX_ABSTAINED_BYTES: usize = 4_096;
/// The characters of a name that are encoded.
const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const PROVIDER_NAME: HeaderName = HeaderName::from_static("x-provider-name");

async fn handle(call: &Call<'_>, caller: &Principal, entry: Entry, payload: Payload) -> Outcome {
    let key = caller.inference()?.clone();
    let ReceivedRequest { request, response_format, body_bytes } = request::receive(call, &key, entry, payload).await?;
    let answered = async {
        let (request, body_bytes) = if request.preset_slug().is_some() {
            // Boxed to keep the future of other requests small.
            Box::pin(resolve_preset(call, &key, request, body_bytes)).await?
        } else {
            (request, body_bytes)
        };
        let tokens = call.gateway.take_tokens(caller, body_bytes).await?;
        let metadata = call.wants_metadata().then(|| ResponseMetadata::new(&key, &request.model));
        let provider_input = Arc::clone(&request.provider_input);
        match (execute(call, key, request, tokens).await, metadata) {
            (Ok(decision), metadata) => {
                let metadata = metadata.map(|metadata| metadata.describe_answer(&decision));
                let response = view(call, &decision, &provider_input, metadata, &response_format);
                let (model, provider) = (Some(decision.model), decision.provider);
                // Set once per request.
                drop(call.access.charge.set(ChargeFields { model, provider, cost: decision.cost }));
                Ok(response)
            }
            (Err(error), Some(metadata)) => Err(metadata.add_to_error(error)),
            (Err(error), None) => Err(error),
        }
    };
    let format = ErrorFormat::for_entry(entry, Some(response_format.shape()), call.under_base);
    answered.await.map_err(|error| error.format(format))
}

/// Replaces the preset of a request. Its questions count as a part of the body, also for the memory of bodies.
async fn resolve_preset(
    call: &Call<'_>,
    key: &InferenceKey,
    request: DecisionRequest,
    body_bytes: usize,
) -> Result<(DecisionRequest, usize), ApiError> {
    let services = &call.gateway.services;
    let resolved = services.resolve_preset.execute(key, request).await;
    let request = resolved.map_err(|error| api_error(error, services.clock.now().timestamp_millis()))?;
    let bytes = request.provider_input.questions.json.text().len();
    if let Some(permit) = call.permit() {
        permit.memory().hold_part(bytes, request.question_structure_bytes())?;
    }
    Ok((request, body_bytes.saturating_add(bytes)))
}

/// Runs the decision. A disconnect cancels the provider's call but not the record of it.
async fn execute(
    call: &Call<'_>,
    key: InferenceKey,
    request: DecisionRequest,
    tokens: TakenTokens,
) -> Result<Decision, ApiError> {
    let left = CancellationToken::new();
    let connection = call.connection(left.clone());
    let submit = Arc::clone(&call.routed().submit_decision);
    let (clock, origin) = (Arc::clone(&call.gateway.services.clock), call.origin());
    let work = box_in_place(|| async move {
        let end = submit.execute(&key, origin, request, connection).await;
        tokens.settle(&end);
        end.map_err(|error| api_error(error, clock.now().timestamp_millis()))
    });
    call.run_detachable(work, left).with_deadline(call.time_left()).await
}

fn view(
    call: &Call<'_>,
    decision: &Decision,
    provider_input: &ProviderInput,
    metadata: Option<serde_json::Value>,
    response_format: &ResponseFormat,
) -> HttpResponse {
    let metadata = metadata.map(|metadata| (call.wire_names().service_metadata(), metadata));
    let questions = provider_input.questions.typed.as_deref();
    let response = DecisionResponse {
        decision,
        questions: questions.unwrap_or_default(),
        service_metadata: metadata.as_ref().map(|(name, value)| (*name, value)),
    };
    respond(decision, questions.is_none(), formats::write(response_format, &response))
}

fn respond(decision: &Decision, is_opaque: bool, body: String) -> HttpResponse {
    let mut response = HttpResponse::with_body(StatusCode::OK, body).map_into_boxed_body();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(id) = HeaderValue::from_str(decision.id.as_str()) {
        headers.insert(GENERATION_ID, id);
    }
    if let Ok(name) = HeaderValue::from_str(&printable(&decision.provider)) {
        headers.insert(PROVIDER_NAME, name);
    }
    if let Some(names) = abstained(&decision.outcomes) {
        headers.insert(ABSTAINED, names);
    }
    if is_opaque {
        headers.insert(QUESTIONS, HeaderValue::from_static("opaque"));
    }
    response
}

/// Returns the names of the questions without a decision, each encoded as in a URL, as far as they fit into a header.
fn abstained(outcomes: &QuestionOutcomes) -> Option<HeaderValue> {
    let mut names = String::new();
    for outcome in outcomes.all().iter().filter(|outcome| outcome.verdict == QuestionVerdict::Abstained) {
        let name = utf8_percent_encode(&outcome.question, NAME).to_string();
        if names.len() + name.len() >= MAX_ABSTAINED_BYTES {
            break;
        }
        if !names.is_empty() {
            names.push(',');
        }
        names.push_str(&name);
    }
    HeaderValue::from_str(&names).ok().filter(|names| !names.is_empty())
}

/// Returns the text as a valid header value.
fn printable(text: &str) -> Cow<'_, str> {
    let fits = |c: char| matches!(c, ' '..='~');
    if text.chars().all(fits) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|c| if fits(c) { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests;
