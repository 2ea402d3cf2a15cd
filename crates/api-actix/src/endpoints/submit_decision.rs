//! Decisions requests on every path and wire.

mod refused;
mod told;

use std::borrow::Cow;
use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use actix_web::web::Payload;
use async_trait::async_trait;
use domain::api_key::{InferenceKey, Principal};
use domain::decision::{
    AssetPart, ClientConnection, Decision, DecisionDraft, DecisionRequest, DraftBounds, TakenTokens,
};
use domain::error::ErrorKind;
use domain::system::WorkOwner;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::refused::refusal;
use self::told::Told;
use crate::http::body::JsonBody;
use crate::http::edge::Call;
use crate::http::error::{ApiError, SESSION_ID};
use crate::http::format::ErrorFormat;
use crate::http::outlive::in_place;
use crate::http::rate;
use crate::wires::Answered;
use crate::wires::Place;
use crate::wires::dispatch::{self, Entry, Manner};

const GENERATION_ID: HeaderName = HeaderName::from_static("x-generation-id");
/// The maximum size of a body that is parsed on the worker thread, in bytes; parsing takes a few milliseconds at most.
/// A larger body would delay other requests of the thread.
const PROMPT: usize = 512 << 10;
/// Reports that the questions were forwarded without validation.
const QUESTIONS: HeaderName = HeaderName::from_static("x-tollgate-questions");
const PROVIDER_NAME: HeaderName = HeaderName::from_static("x-provider-name");

pub(crate) async fn handle(
    call: &Call<'_>,
    caller: &Principal,
    entry: Entry,
    payload: Payload,
) -> Result<HttpResponse, ApiError> {
    let key = caller.inference()?.clone();
    let (body, parts) = if entry.takes_parts() {
        call.read_json_with_parts(payload).await?
    } else {
        (call.read_json(payload).await?, Vec::new())
    };
    let body_bytes = body.len();
    let came = Came {
        entry,
        under_base: call.route.under_base,
        session: session_id(call.request.headers()),
        bounds: call.gateway.draft_bounds,
    };
    let (request, manner) = if body_bytes <= PROMPT {
        came.read(body, parts)?
    } else {
        let owner = WorkOwner::Workspace(key.workspace_id());
        let read = call.gateway.services.workers.get(owner, move |_| came.read(body, parts));
        let read = timeout(call.time_left(), read).await.map_err(|_| {
            let cause = "limits.request_timeout_ms passed while the body waited for a thread to read it";
            ApiError::of(ErrorKind::TimedOut).caused_by(cause)
        })?;
        read.map_err(ApiError::from_task_error)??
    };
    let format = ErrorFormat::of_entry(entry, Some(manner.shape()), call.route.under_base);
    let answered = async {
        let tokens = rate::take_tokens(call.gateway, caller, body_bytes)?;
        decide(call, key, request, tokens, &manner).await
    };
    answered.await.map_err(|error| error.format(format))
}

/// A request body before parsing, with the entry, the session header and the bounds that apply to it.
struct Came {
    entry: Entry,
    under_base: bool,
    /// The session of the header, which applies only if the body has none.
    session: Result<Option<String>, ApiError>,
    bounds: DraftBounds,
}

impl Came {
    /// Parses the body into a request and its response format.
    fn read(self, body: JsonBody, parts: Vec<AssetPart>) -> Result<(DecisionRequest, Manner), ApiError> {
        let Self { entry, under_base, session, bounds } = self;
        let in_format = |shape| ErrorFormat::of_entry(entry, shape, under_base);
        let asked = dispatch::read(entry, body.text()?, parts);
        let asked = asked.map_err(|(shape, fault)| ApiError::from(fault).format(in_format(shape)))?;
        drop(body);
        let format = in_format(Some(asked.manner.shape()));
        let request = with_session(asked.draft, session).and_then(|draft| Ok(draft.check_within(bounds)?));
        Ok((request.map_err(|error| error.format(format))?, asked.manner))
    }
}

/// Runs the decision and writes the response.
async fn decide(
    call: &Call<'_>,
    key: InferenceKey,
    request: DecisionRequest,
    tokens: TakenTokens,
    manner: &Manner,
) -> Result<HttpResponse, ApiError> {
    let told = call.wants_metadata().then(|| Told::of(&key, &request.model));
    let provider_input = Arc::clone(&request.provider_input);
    let left = CancellationToken::new();
    let presence: Arc<dyn ClientConnection> = Arc::new(Presence(left.clone()));
    let submit = Arc::clone(&call.gateway.services.submit_decision);
    let (now, request_id) = (call.gateway.services.clock.now(), call.request_id.clone());
    let work = in_place(|| async move {
        let end = submit.execute(&key, request_id, request, presence).await;
        tokens.settle(&end);
        end.map_err(|error| refusal(error, now.timestamp_millis()))
    });
    // A disconnect cancels the provider's call but not the record of it.
    match (call.outlive(work, left).within(call.time_left()).await, told) {
        (Ok(decision), told) => {
            let told = told.map(|told| (call.gateway.wire_names.service_metadata(), told.of_answer(&decision)));
            let answered = Answered {
                decision: &decision,
                questions: provider_input.questions.typed.as_deref().unwrap_or_default(),
                told: told.as_ref().map(|(name, value)| (*name, value)),
            };
            let mut response = view(&decision, dispatch::write(manner, &answered));
            if provider_input.questions.typed.is_none() {
                response.headers_mut().insert(QUESTIONS, HeaderValue::from_static("opaque"));
            }
            Ok(response)
        }
        (Err(error), Some(told)) => Err(told.of_refusal(error)),
        (Err(error), None) => Err(error),
    }
}

/// The client is connected until the token is cancelled, which happens when the handler is dropped.
struct Presence(CancellationToken);

#[async_trait]
impl ClientConnection for Presence {
    async fn disconnected(&self) {
        self.0.cancelled().await;
    }
}

/// Returns the draft with the session of the header, which is validated only if the body has none.
fn with_session(draft: DecisionDraft, session: Result<Option<String>, ApiError>) -> Result<DecisionDraft, ApiError> {
    let session_id_header = if draft.session_id.is_some() { None } else { session? };
    Ok(DecisionDraft { session_id_header, ..draft })
}

/// Reads the session id header.
fn session_id(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let fault = |fault: &str| ApiError::invalid(format!("{SESSION_ID} {fault}")).place(Place::Header(SESSION_ID));
    let mut values = headers.get_all(HeaderName::from_static(SESSION_ID));
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(fault("stands in the request more than once"));
    }
    std::str::from_utf8(value.as_bytes()).map(|text| Some(text.to_owned())).map_err(|_| fault("is not UTF-8"))
}

fn view(decision: &Decision, body: String) -> HttpResponse {
    let mut response = HttpResponse::with_body(StatusCode::OK, body).map_into_boxed_body();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(id) = HeaderValue::from_str(decision.id.as_str()) {
        headers.insert(GENERATION_ID, id);
    }
    if let Ok(name) = HeaderValue::from_str(&printable(&decision.provider)) {
        headers.insert(PROVIDER_NAME, name);
    }
    response
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
