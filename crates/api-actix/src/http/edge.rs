//! The entry point of every request: assigns the id, finds the route, authenticates the caller, calls the endpoint,
//! writes errors and logs.

use std::cell::OnceCell;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use actix_web::body::{BodySize, MessageBody as _};
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use domain::api_key::{AuthenticateError, InferenceKey, ManagementKey, Principal};
use domain::audit::Actor;
use domain::decision::{AssetPart, RequestOrigin};
use domain::error::ErrorKind;
use domain::ids::{ApiKeyId, RequestId};
use domain::usage::{Rejection, RejectionReason};
use futures_util::FutureExt;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::access_log::{AccessFields, RequestLabels, loggable_path};
use super::admission::InFlightPermit;
use super::admission_bound::Owner;
use super::authentication::{Credentials, authenticate};
use super::body::JsonBody;
use super::body_memory::BodyLease;
use super::client_address::client_address;
use super::connection::COPIED_BODY;
use super::denied_changes;
use super::detach::{DetachableWork, Work};
use super::envelope;
use super::error::ApiError;
use super::format::ErrorFormat;
use super::path_hint::path_hint;
use super::rate;
use super::recorder::InFlightRequest;
use super::routes::{Handler, KeyedHandler, OpenHandler, Outcome, Parameters, Route, RouteMatch};
use super::wire_names::WireNames;
use crate::gateway::Gateway;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The request id header that a vendor's client package reads.
const TYPESAFE_REQUEST_ID: HeaderName = HeaderName::from_static("x-typesafe-request-id");

/// One request, as its endpoint sees it.
pub(crate) struct Call<'a> {
    pub(crate) gateway: &'a Gateway,
    pub(crate) request: &'a HttpRequest,
    pub(crate) request_id: &'a RequestId,
    pub(crate) route: &'static Route,
    /// The path segments matched by the route's braces, percent-encoded, in order.
    pub(crate) parameters: Parameters<'a>,
    /// The owner of the in-flight permit and the body memory; open routes have none.
    owner: Option<Owner>,
    /// The in-flight permit, taken once the body has arrived, and the begin of the request's time.
    admitted: &'a OnceCell<Admitted>,
    /// The duration of authentication, which counts toward `limits.request_timeout_ms`.
    authenticated_in: Duration,
    /// The tracing span of the request.
    span: &'a Span,
    /// The fields of the access log.
    pub(crate) access: &'a AccessFields,
}

/// An admitted request.
pub(crate) struct Admitted {
    permit: InFlightPermit,
    /// The begin of `limits.request_timeout_ms`, on the monotonic clock: the last byte of the body, less the time of
    /// authentication. Every stage of the request has what is left of this one deadline.
    began: Duration,
}

impl Call<'_> {
    /// Reads the body and takes an in-flight permit. A body that is still arriving holds memory but no permit, so slow
    /// clients do not block others.
    pub(crate) async fn read_json(&self, payload: Payload) -> Result<JsonBody, ApiError> {
        let max_bytes = self.gateway.max_json_bytes;
        let (body, mut memory) = JsonBody::read(self.request, payload, max_bytes, self.lease()?).await?;
        memory.resize_for_processing(body.len())?;
        self.enter(memory)?;
        Ok(body)
    }

    /// Reads a body like [`Self::read_json`], or a form with further parts.
    pub(crate) async fn read_json_with_parts(&self, payload: Payload) -> Result<(JsonBody, Vec<AssetPart>), ApiError> {
        let max_bytes = self.gateway.max_json_bytes;
        let read = JsonBody::read_with_parts(self.request, payload, max_bytes, self.lease()?);
        let (body, parts, mut memory) = read.await?;
        memory.resize_for_processing(body.len() + parts.iter().map(|part| part.data.len()).sum::<usize>())?;
        self.enter(memory)?;
        Ok((body, parts))
    }

    /// Takes an in-flight permit until the operation has ended and its answer is written. Begins the request's time.
    fn enter(&self, memory: BodyLease) -> Result<(), ApiError> {
        let permit = self.gateway.admission.enter(self.owner()?, Some(memory))?;
        let began = self.gateway.services.clock.monotonic().saturating_sub(self.authenticated_in);
        // A second permit of the same request is released at once.
        drop(self.admitted.set(Admitted { permit, began }));
        Ok(())
    }

    /// Returns the in-flight permit; `None` before the body has arrived, and on open routes.
    pub(crate) fn permit(&self) -> Option<InFlightPermit> {
        self.admitted.get().map(|admitted| admitted.permit.clone())
    }

    fn lease(&self) -> Result<BodyLease, ApiError> {
        Ok(self.gateway.body_memory.lease(self.owner()?.account()))
    }

    fn owner(&self) -> Result<Owner, ApiError> {
        self.owner.ok_or_else(|| ApiError::from_kind(ErrorKind::Internal).caused_by("an open route has no places"))
    }

    /// Runs work that continues after a disconnect; see [`crate::http::detach::DetachOnDisconnect::run_detachable`].
    /// The permit is held until the work ends, so that disconnecting clients cannot exceed their share.
    pub(crate) fn run_detachable<T: Send + 'static>(
        &self,
        work: Work<T>,
        left: CancellationToken,
    ) -> DetachableWork<'_, T> {
        self.gateway.detach.run_detachable(work, left, self.permit(), self.span)
    }

    /// Returns the time left of the request's one deadline, `limits.request_timeout_ms` after its body has arrived.
    pub(crate) fn time_left(&self) -> Duration {
        let timeout = self.gateway.request_timeout;
        let taken = self.admitted.get().map_or(self.authenticated_in, |admitted| {
            self.gateway.services.clock.monotonic().saturating_sub(admitted.began)
        });
        timeout.saturating_sub(taken)
    }

    /// Returns the actor for the audit log: the management key and its client address.
    pub(crate) fn actor(&self, key: &ManagementKey) -> Actor {
        self.actor_of(key.id())
    }

    /// Returns the actor for any key.
    pub(crate) fn actor_of(&self, key: ApiKeyId) -> Actor {
        Actor { name: format!("key:{key}"), source: self.access.client.map(|address| address.to_string()) }
    }

    /// Returns the origin of the request for its usage record.
    pub(crate) fn origin(&self) -> RequestOrigin {
        let client_address = self.access.client.filter(|_| self.gateway.record_client_address);
        let began = self.admitted.get().map(|admitted| admitted.began);
        RequestOrigin { request_id: self.request_id.clone(), client_address, began }
    }

    /// Returns true if the caller asks for service metadata in the response.
    pub(crate) fn wants_metadata(&self) -> bool {
        envelope::wants_metadata(self.request.headers())
    }

    /// Returns the literal names for the response.
    pub(crate) fn wire_names(&self) -> WireNames {
        self.gateway.wire_names.for_client(self.request.headers())
    }
}

/// Answers one request. Every failure becomes an error response.
pub(crate) async fn serve(gateway: Arc<Gateway>, request: HttpRequest, payload: Payload) -> HttpResponse {
    let request_id = request_id(&gateway, &request);
    let matched = gateway.routes.find(&gateway.base_path, request.method(), request.path());
    let pattern = matched.map(|matched| matched.route.pattern);
    let services = &gateway.services;
    let in_flight = InFlightRequest::begin(&*services.recorder, &*services.clock, pattern, request.method());
    let client = client_address(&request, &gateway.trusted_proxies);
    let labels = RequestLabels {
        request_id: &request_id,
        method: request.method().as_str(),
        route: pattern,
        unknown_path: matched.is_none().then(|| loggable_path(request.path())),
        client,
    };
    // Requests served from memory take microseconds, so they get a span only on failure.
    let from_memory = matched.is_some_and(|matched| matched.route.is_answered_from_memory());
    let span = if from_memory { Span::none() } else { labels.span() };
    let access = AccessFields { client, ..AccessFields::default() };
    let admitted = OnceCell::new();
    let outcome = {
        // Pinned in place, because the large future would be copied with each move.
        let work = pin!(answer(&gateway, &request, payload, &request_id, matched, (&span, &access, &admitted)));
        let panicked = |_| Err(ApiError::from_kind(ErrorKind::Internal).caused_by("a handler panicked"));
        let mut work = pin!(AssertUnwindSafe(work).catch_unwind());
        // `Instrument` would own a clone of the span, and enter it once more at the end.
        let within_span = poll_fn(|cx| {
            let _within = span.enter();
            work.as_mut().poll(cx)
        });
        within_span.await.unwrap_or_else(panicked)
    };
    if let Err(error) = &outcome {
        error.add_to_access_log(&access);
        count_rejection(&gateway, &access, error);
    }
    let span = if from_memory && outcome.is_err() { labels.span() } else { span };
    let _within = span.enter();
    let format = matched.map_or(ErrorFormat::Contract, |matched| matched.route.error_format());
    let mut response =
        outcome.unwrap_or_else(|error| write_error(&error, format, &gateway, &request, &request_id, labels.route));
    if let Ok(value) = HeaderValue::from_str(request_id.as_str()) {
        if matched.is_some_and(|matched| matched.route.is_for_vendor_clients()) {
            response.headers_mut().insert(TYPESAFE_REQUEST_ID, value.clone());
        }
        response.headers_mut().insert(REQUEST_ID, value);
    }
    if let Some(Admitted { permit, .. }) = admitted.into_inner() {
        hold_until_written(&mut response, permit);
    }
    let (status, took) = (response.status().as_u16(), in_flight.took());
    labels.log_completion(&span, &access, status, took);
    in_flight.finish(status, took);
    response
}

/// Leaves the permit with the response, for the connection that writes it. An answer that the connection copies ends
/// its permit here.
fn hold_until_written(response: &mut HttpResponse, permit: InFlightPermit) {
    let bytes = match response.body().size() {
        BodySize::None => 0,
        BodySize::Sized(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX),
        BodySize::Stream => COPIED_BODY + 1,
    };
    if bytes > COPIED_BODY {
        permit.hold_answer(bytes);
        response.extensions_mut().insert(permit);
    }
}

/// Counts a rejected request of a known key.
fn count_rejection(gateway: &Gateway, access: &AccessFields, error: &ApiError) {
    let Some(recorder) = &gateway.services.rejections else { return };
    if let (Some(api_key), Some((status, reason))) = (access.api_key.get(), error.rejection()) {
        recorder.record(Rejection { api_key, workspace_id: access.workspace.get(), status, reason });
    }
}

/// Returns the client's request id if it is well-formed and unique, otherwise a new one.
fn request_id(gateway: &Gateway, request: &HttpRequest) -> RequestId {
    let mut given = request.headers().get_all(REQUEST_ID);
    let only = given.next().filter(|_| given.next().is_none());
    only.and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or_else(|| gateway.services.ids.request_id())
}

fn write_error(
    error: &ApiError,
    format: ErrorFormat,
    gateway: &Gateway,
    request: &HttpRequest,
    request_id: &RequestId,
    route: Option<&'static str>,
) -> HttpResponse {
    let repeats = |cause: String| !gateway.store_failures.admits(&cause, gateway.services.clock.monotonic());
    error.log(error.unavailable_cause().is_some_and(repeats));
    let headers = request.headers();
    let names_on_request = envelope::wants_metadata(headers).then(|| gateway.wire_names.for_client(headers));
    envelope::respond(error, request_id, route, format, names_on_request)
}

async fn answer(
    gateway: &Gateway,
    request: &HttpRequest,
    payload: Payload,
    request_id: &RequestId,
    matched: Option<RouteMatch<'_>>,
    (span, access, admitted): (&Span, &AccessFields, &OnceCell<Admitted>),
) -> Outcome {
    let RouteMatch { route, parameters } = matched.ok_or_else(|| {
        ApiError::unknown_path(path_hint(gateway.routes, &gateway.base_path, request.method(), request.path()))
    })?;
    let (owner, authenticated_in) = (None, Duration::ZERO);
    let call =
        Call { gateway, request, request_id, route, parameters, owner, admitted, authenticated_in, span, access };
    let check_method = || {
        let accepts = route.method.accepts(request.method());
        if accepts { Ok(()) } else { Err(ApiError::method_not_allowed(gateway.routes.allow(route))) }
    };
    match route.handler {
        Handler::Open(handler) => {
            check_method()?;
            match handler {
                OpenHandler::Memory(handle) => handle(&call),
                OpenHandler::Async(handle) => handle(&call).await,
            }
        }
        Handler::Keyed(handler) => {
            // Runs before any part of the request is read.
            gateway.admission.check_total()?;
            let accepted = if route.is_for_vendor_clients() { Credentials::AnyHeader } else { Credentials::Bearer };
            let began = Instant::now();
            let caller = authenticate(&gateway.services.authenticate, request.headers(), accepted);
            let caller = timeout(gateway.request_timeout, caller).await.map_err(|_| {
                let cause = "limits.request_timeout_ms passed while the key was looked up";
                ApiError::from_kind(ErrorKind::Unavailable).reason(RejectionReason::StoreTimeout).caused_by(cause)
            })?;
            let caller = caller.inspect_err(|error| note_suspended(access, error))?;
            access.api_key.set(Some(caller.id()));
            access.workspace.set(caller.inference().ok().map(InferenceKey::workspace_id));
            let call = Call { owner: Some(Owner::new(&caller)), authenticated_in: began.elapsed(), ..call };
            let outcome = async {
                rate::count_request(gateway, &caller).await?;
                check_method()?;
                if route.reads_body {
                    gateway.admission.check(call.owner()?)?;
                } else {
                    call.enter(call.lease()?)?;
                }
                match handler {
                    KeyedHandler::Memory(handle) => handle(&call),
                    KeyedHandler::AnyKey(handle) => handle(&call, &caller, payload).await,
                    KeyedHandler::Management(handle) => handle(&call, caller.management()?, payload).await,
                }
            };
            let outcome = outcome.await.inspect_err(|error| denied_changes::record(&call, &caller, error));
            outcome.map_err(|error| error.user_id(workspace_owner(&caller)))
        }
    }
}

/// Notes the caller whose workspace is suspended.
fn note_suspended(access: &AccessFields, error: &AuthenticateError) {
    if let AuthenticateError::WorkspaceSuspended { api_key, workspace_id, .. } = error {
        access.api_key.set(Some(*api_key));
        access.workspace.set(Some(*workspace_id));
    }
}

fn workspace_owner(caller: &Principal) -> Option<String> {
    caller.inference().ok().and_then(|key| key.owner_id().map(str::to_owned))
}
