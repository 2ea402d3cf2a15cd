//! Decisions requests on every path and wire.

mod errors;
mod response_metadata;

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

use self::errors::api_error;
use self::response_metadata::ResponseMetadata;
use crate::detection::{self, Entry};
use crate::http::access_log::ChargeFields;
use crate::http::admission::InFlightPermit;
use crate::http::body::JsonBody;
use crate::http::call::Call;
use crate::http::detach::box_in_place;
use crate::http::error::{ApiError, SESSION_ID};
use crate::http::format::ErrorFormat;
use crate::http::rate;
use crate::http::routes::{Handler, KeyedHandler, Method, Route};
use crate::openapi::{decisions, tags};
use wires::client::DecisionResponse;
use wires::client::ErrorLocation;
use wires::formats::{self, ResponseFormat};

/// Creates the route of a path, by the formats that it accepts.
macro_rules! route {
    ($entry:expr, $pattern:literal, under_base: $under_base:literal) => {{
        let route = Route::new(
            Method::Post,
            $pattern,
            Handler::Keyed(KeyedHandler::AnyKey(|call, caller, payload| {
                Box::pin(handle(call, caller, $entry, payload))
            })),
            tags::DECISIONS,
            || decisions::describe($entry, $under_base),
        )
        .with_body()
        .with_schemas(decisions::schemas);
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
/// The maximum size of a body that is parsed on the worker thread, in bytes; parsing takes a few milliseconds at most.
/// A larger body would delay other requests of the thread.
const INLINE_PARSE_MAX_BYTES: usize = 512 << 10;
/// The maximum size of a body whose parsed form takes little memory in any case, in bytes.
const UNCOUNTED_BODY_MAX_BYTES: usize = 64 << 10;
/// Reports that the questions were forwarded without validation.
const QUESTIONS: HeaderName = HeaderName::from_static("x-tollgate-questions");
const PROVIDER_NAME: HeaderName = HeaderName::from_static("x-provider-name");

async fn handle(call: &Call<'_>, caller: &Principal, entry: Entry, payload: Payload) -> Result<HttpResponse, ApiError> {
    let key = caller.inference()?.clone();
    let (body, parts) = if entry.takes_parts() {
        call.read_json_with_parts(payload).await?
    } else {
        (call.read_json(payload).await?, Vec::new())
    };
    let body_bytes = body.len();
    let unparsed = UnparsedDecision {
        entry,
        under_base: call.under_base,
        session: session_id(call.request.headers()),
        bounds: call.gateway.draft_bounds,
        permit: call.permit(),
    };
    let (request, response_format) = if body_bytes <= INLINE_PARSE_MAX_BYTES {
        unparsed.read(body, parts)?
    } else {
        let owner = WorkOwner::Workspace(key.workspace_id());
        let read = call.gateway.services.workers.get(owner, move |_| unparsed.read(body, parts));
        let read = timeout(call.time_left(), read).await.map_err(|_| {
            let cause = "limits.request_timeout_ms passed while the body waited for a scan thread";
            ApiError::from_kind(ErrorKind::TimedOut).caused_by(cause)
        })?;
        read.map_err(ApiError::from_task_error)??
    };
    let format = ErrorFormat::for_entry(entry, Some(response_format.shape()), call.under_base);
    let response = async {
        let tokens = rate::take_tokens(call.gateway, caller, body_bytes).await?;
        decide(call, key, request, tokens, &response_format).await
    };
    response.await.map_err(|error| error.format(format))
}

/// A request body before parsing, with the entry, the session header and the bounds that apply to it.
struct UnparsedDecision {
    entry: Entry,
    under_base: bool,
    /// The session of the header, which applies only if the body has none.
    session: Result<Option<String>, ApiError>,
    bounds: DraftBounds,
    permit: Option<InFlightPermit>,
}

impl UnparsedDecision {
    /// Parses the body into a request and its response format.
    fn read(self, body: JsonBody, parts: Vec<AssetPart>) -> Result<(DecisionRequest, ResponseFormat), ApiError> {
        let Self { entry, under_base, session, bounds, permit } = self;
        let in_format = |shape| ErrorFormat::for_entry(entry, shape, under_base);
        let text = body.text()?;
        hold_questions(permit.as_ref(), text).map_err(|error| error.format(in_format(entry.shape())))?;
        let parsed = detection::read(entry, text, parts);
        let parsed = parsed.map_err(|(shape, fault)| ApiError::from(fault).format(in_format(shape)))?;
        drop(body);
        let format = in_format(Some(parsed.response_format.shape()));
        let request = with_session(parsed.draft, session).and_then(|draft| {
            permit.map_or(Ok(()), |permit| permit.hold_structures(draft.structure_bytes()))?;
            Ok(draft.check_within(bounds)?)
        });
        Ok((request.map_err(|error| error.format(format))?, parsed.response_format))
    }
}

/// Holds the memory of the questions of a large body before they are parsed.
pub(super) fn hold_questions(permit: Option<&InFlightPermit>, body: &str) -> Result<(), ApiError> {
    let permit = permit.filter(|_| body.len() > UNCOUNTED_BODY_MAX_BYTES);
    permit.map_or(Ok(()), |permit| permit.hold_structures(detection::question_bytes(body)))
}

/// Runs the decision and writes the response.
async fn decide(
    call: &Call<'_>,
    key: InferenceKey,
    request: DecisionRequest,
    tokens: TakenTokens,
    response_format: &ResponseFormat,
) -> Result<HttpResponse, ApiError> {
    let service_metadata = call.wants_metadata().then(|| ResponseMetadata::new(&key, &request.model));
    let provider_input = Arc::clone(&request.provider_input);
    let left = CancellationToken::new();
    let connection: Arc<dyn ClientConnection> =
        Arc::new(RequestConnection { left: left.clone(), permit: call.permit() });
    let submit = Arc::clone(&call.gateway.services.routed.current().submit_decision);
    let (now, origin) = (call.gateway.services.clock.now(), call.origin());
    let work = box_in_place(|| async move {
        let end = submit.execute(&key, origin, request, connection).await;
        tokens.settle(&end);
        end.map_err(|error| api_error(error, now.timestamp_millis()))
    });
    // A disconnect cancels the provider's call but not the record of it.
    match (call.run_detachable(work, left).with_deadline(call.time_left()).await, service_metadata) {
        (Ok(decision), service_metadata) => {
            let charge = ChargeFields {
                model: Some(decision.model.clone()),
                provider: decision.provider.clone(),
                cost: decision.cost,
            };
            // Set once per request.
            drop(call.access.charge.set(charge));
            let service_metadata = service_metadata.map(|service_metadata| {
                (call.wire_names().service_metadata(), service_metadata.describe_answer(&decision))
            });
            let response = DecisionResponse {
                decision: &decision,
                questions: provider_input.questions.typed.as_deref().unwrap_or_default(),
                service_metadata: service_metadata.as_ref().map(|(name, value)| (*name, value)),
            };
            let mut response = view(&decision, formats::write(response_format, &response));
            if provider_input.questions.typed.is_none() {
                response.headers_mut().insert(QUESTIONS, HeaderValue::from_static("opaque"));
            }
            Ok(response)
        }
        (Err(error), Some(service_metadata)) => Err(service_metadata.add_to_error(error)),
        (Err(error), None) => Err(error),
    }
}

/// The connection of one request.
struct RequestConnection {
    /// Cancelled when the handler is dropped, because the client disconnected.
    left: CancellationToken,
    permit: Option<InFlightPermit>,
}

#[async_trait]
impl ClientConnection for RequestConnection {
    async fn disconnected(&self) {
        self.left.cancelled().await;
    }

    fn take_answer_memory(&self, bytes: usize) -> bool {
        self.permit.as_ref().is_none_or(|permit| permit.hold_arriving_answer(bytes))
    }

    fn return_answer_memory(&self, bytes: usize) {
        if let Some(permit) = &self.permit {
            permit.return_arriving_answer(bytes);
        }
    }
}

/// Returns the draft with the session of the header, which is validated only if the body has none.
fn with_session(draft: DecisionDraft, session: Result<Option<String>, ApiError>) -> Result<DecisionDraft, ApiError> {
    let session_id_header = if draft.session_id.is_some() { None } else { session? };
    Ok(DecisionDraft { session_id_header, ..draft })
}

/// Reads the session id header.
fn session_id(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let fault =
        |fault: &str| ApiError::invalid(format!("{SESSION_ID} {fault}")).location(ErrorLocation::Header(SESSION_ID));
    let mut values = headers.get_all(HeaderName::from_static(SESSION_ID));
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(fault("is in the request more than once"));
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
