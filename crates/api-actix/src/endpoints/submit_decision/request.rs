//! The request of a client: its body, read into a checked request, and the session of its header.

use actix_web::http::header::{HeaderMap, HeaderName};
use domain::api_key::InferenceKey;
use domain::decision::{AssetPart, DecisionDraft, DecisionRequest};
use domain::system::WorkOwner;
use wires::client::ErrorLocation;
use wires::formats::ResponseFormat;

use crate::detection;
use crate::detection::Entry;
use crate::endpoints::prelude::*;
use crate::http::admission::InFlightPermit;
use crate::http::error::{ErrorFormat, SESSION_ID};

/// A request whose body has been read.
pub(super) struct ReceivedRequest {
    pub(super) request: DecisionRequest,
    pub(super) response_format: ResponseFormat,
    pub(super) body_bytes: usize,
}

/// Reads the body and parses it, on another thread if it is large.
pub(super) async fn receive(
    call: &Call<'_>,
    key: &InferenceKey,
    entry: Entry,
    payload: Payload,
) -> Result<ReceivedRequest, ApiError> {
    let (body, parts) = if entry.takes_parts() {
        call.read_json_with_parts(payload).await?
    } else {
        (call.read_json(payload).await?, Vec::new())
    };
    let unparsed = UnparsedDecision {
        entry,
        under_base: call.under_base,
        session: session_id(call.request.headers()),
        permit: call.permit(),
    };
    call.parse(WorkOwner::Workspace(key.workspace_id()), body.len(), move || unparsed.read(body, parts)).await
}

/// A request body before parsing, with the entry, the session header and the permit that apply to it.
struct UnparsedDecision {
    entry: Entry,
    under_base: bool,
    /// The session of the header, which applies only if the body has none.
    session: Result<Option<String>, ApiError>,
    permit: Option<InFlightPermit>,
}

impl UnparsedDecision {
    /// Parses the body into a request and its response format.
    fn read(self, body: JsonBody, parts: Vec<AssetPart>) -> Result<ReceivedRequest, ApiError> {
        let Self { entry, under_base, session, permit } = self;
        let in_format = |shape| ErrorFormat::for_entry(entry, shape, under_base);
        let hold = |bytes| permit.as_ref().map_or(Ok(()), |permit| permit.memory().hold_structures(bytes));
        let parsed = detection::read(entry, body.text()?, parts, hold);
        let parsed = parsed.map_err(|(shape, error)| error.format(in_format(shape)))?;
        let body_bytes = body.len();
        drop(body);
        let format = in_format(Some(parsed.response_format.shape()));
        let request = with_session(parsed.draft, session).and_then(|draft| {
            hold(draft.structure_bytes())?;
            Ok(draft.check()?)
        });
        let request = request.map_err(|error| error.format(format))?;
        Ok(ReceivedRequest { request, response_format: parsed.response_format, body_bytes })
    }
}

/// Returns the draft with the session of the header, which is validated only if the body has none.
pub(super) fn with_session(
    draft: DecisionDraft,
    session: Result<Option<String>, ApiError>,
) -> Result<DecisionDraft, ApiError> {
    let session_id_header = if draft.session_id.is_some() { None } else { session? };
    Ok(DecisionDraft { session_id_header, ..draft })
}

/// Reads the session id header.
pub(super) fn session_id(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let fault =
        |fault: &str| ApiError::invalid(format!("{SESSION_ID} {fault}")).location(ErrorLocation::Header(SESSION_ID));
    let mut values = headers.get_all(HeaderName::from_static(SESSION_ID));
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(fault("is in the request more than once"));
    }
    std::str::from_utf8(value.as_bytes()).map(|text| Some(text.to_owned())).map_err(|_| fault("is not UTF-8"))
}
