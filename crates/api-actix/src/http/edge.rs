//! Where every request comes in and every answer leaves: name it, find its route, let the caller in, hand it over,
//! wrap what failed, log.

use std::cell::OnceCell;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use domain::api_key::{ManagementKey, Principal};
use domain::audit::Actor;
use domain::decision::AssetPart;
use domain::error::ErrorKind;
use domain::ids::{ApiKeyId, RequestId};
use futures_util::FutureExt;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use super::admission::Place;
use super::admission_bound::Owner;
use super::authentication::{Credentials, authenticate};
use super::body::JsonBody;
use super::body_memory::BodyLease;
use super::client_address::client_address;
use super::envelope;
use super::error::ApiError;
use super::format::ErrorFormat;
use super::outlive::{Outlive, Work};
use super::path_hint::path_hint;
use super::rate;
use super::recorder::UnderWay;
use super::refusals;
use super::routes::{self, Matched, OpenRoute, Operation, Parameters, Route, Target};
use crate::endpoints::{
    assign_keys_to_guardrail, count_models, destinations, docs, get_generation, get_model, guardrails, health,
    list_model_endpoints, list_models, list_providers, promote_container_file, root, rotate_api_key, submit_decision,
};
use crate::gateway::Gateway;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The same under the name by which a vendor's client package finds it.
const TYPESAFE_REQUEST_ID: HeaderName = HeaderName::from_static("x-typesafe-request-id");

/// One request, as an endpoint sees it.
pub(crate) struct Call<'a> {
    pub(crate) gateway: &'a Gateway,
    pub(crate) request: &'a HttpRequest,
    pub(crate) request_id: &'a RequestId,
    pub(crate) route: &'static Route,
    /// The segments of the path that the route's braces took: still percent-encoded, in order.
    pub(crate) parameters: Parameters<'a>,
    /// The holder of its place and of its body; open routes have none.
    owner: Option<Owner>,
    /// Its place among those in flight, once its body is in.
    place: OnceCell<Place>,
    /// How long its authentication took, which counts toward `limits.request_timeout_ms`.
    authenticated_in: Duration,
    /// What is logged on its behalf is logged within.
    span: &'a Span,
}

impl Call<'_> {
    /// Reads the body and takes a place. A body that is still arriving holds memory and no place, so that slow ones
    /// keep nobody out.
    pub(crate) async fn read_json(&self, payload: Payload) -> Result<JsonBody, ApiError> {
        let max_bytes = self.gateway.max_json_bytes;
        let (body, memory) = JsonBody::read(self.request, payload, max_bytes, self.lease()?).await?;
        self.enter(Some(memory))?;
        Ok(body)
    }

    /// As [`Self::read_json`], or out of a form whose other parts come beside it.
    pub(crate) async fn read_json_with_parts(&self, payload: Payload) -> Result<(JsonBody, Vec<AssetPart>), ApiError> {
        let max_bytes = self.gateway.max_json_bytes;
        let read = JsonBody::read_with_parts(self.request, payload, max_bytes, self.lease()?);
        let (body, parts, memory) = read.await?;
        self.enter(Some(memory))?;
        Ok((body, parts))
    }

    /// Takes a place until the operation ends.
    fn enter(&self, memory: Option<BodyLease>) -> Result<(), ApiError> {
        let place = self.gateway.admission.enter(self.owner()?, memory)?;
        // A second place of one request is given back at once.
        drop(self.place.set(place));
        Ok(())
    }

    fn lease(&self) -> Result<BodyLease, ApiError> {
        Ok(self.gateway.body_memory.lease(self.owner()?.account()))
    }

    fn owner(&self) -> Result<Owner, ApiError> {
        self.owner.ok_or_else(|| ApiError::of(ErrorKind::Internal).caused_by("an open route has no places"))
    }

    /// As [`crate::http::outlive::Afterlife::outlive`]. The place is taken until the work ends, so that callers who
    /// leave early cannot have more of it done at once than those who stay.
    pub(crate) fn outlive<T: Send + 'static>(&self, work: Work<T>, left: CancellationToken) -> Outlive<'_, T> {
        self.gateway.afterlife.outlive(work, left, self.place.get().cloned(), self.span)
    }

    /// How long the request may take, once its body is there.
    pub(crate) fn time_left(&self) -> Duration {
        self.gateway.request_timeout.saturating_sub(self.authenticated_in)
    }

    /// Who manages, for the audit log: the key, and where it calls from.
    pub(crate) fn actor(&self, key: &ManagementKey) -> Actor {
        self.actor_of(key.id())
    }

    /// The same of any key.
    pub(crate) fn actor_of(&self, key: ApiKeyId) -> Actor {
        let source = client_address(self.request, &self.gateway.trusted_proxies);
        Actor { name: format!("key:{key}"), source: source.map(|address| address.to_string()) }
    }

    /// True where the caller asks to be told how its request was handled.
    pub(crate) fn wants_metadata(&self) -> bool {
        envelope::wants_metadata(self.request.headers(), self.gateway.wire_names)
    }
}

/// Answers one request, whatever happens.
pub(crate) async fn serve(gateway: Arc<Gateway>, request: HttpRequest, payload: Payload) -> HttpResponse {
    let request_id = request_id(&gateway, &request);
    let matched = routes::find(&gateway.base_path, request.method(), request.path());
    let pattern = matched.map(|matched| matched.route.pattern);
    let services = &gateway.services;
    let under_way = UnderWay::begin(&*services.recorder, &*services.clock, pattern, request.method());
    let named = Named {
        request_id: &request_id,
        method: request.method().as_str(),
        route: pattern,
        client: client_address(&request, &gateway.trusted_proxies),
    };
    // What is answered from memory in microseconds has nothing to tell on its way, so it gets a span only when it fails.
    let from_memory = matched.is_some_and(|matched| matched.route.target.is_answered_from_memory());
    let span = if from_memory { Span::none() } else { named.span() };
    let outcome = {
        // Pinned where it stays: what wraps it is moved, and it is large.
        let work = pin!(answer(&gateway, &request, payload, &request_id, matched, &span));
        let panicked = |_| Err(ApiError::of(ErrorKind::Internal).caused_by("a handler panicked"));
        AssertUnwindSafe(work).catch_unwind().instrument(span.clone()).await.unwrap_or_else(panicked)
    };
    let span = if from_memory && outcome.is_err() { named.span() } else { span };
    let _within = span.enter();
    let format = matched.map_or(ErrorFormat::Contract, |matched| ErrorFormat::of(matched.route));
    let mut response =
        outcome.unwrap_or_else(|error| failed(&error, format, &gateway, &request, &request_id, named.route));
    if let Ok(value) = HeaderValue::from_str(request_id.as_str()) {
        if matched.is_some_and(|matched| matched.route.is_of_a_vendor()) {
            response.headers_mut().insert(TYPESAFE_REQUEST_ID, value.clone());
        }
        response.headers_mut().insert(REQUEST_ID, value);
    }
    let (status, took) = (response.status().as_u16(), under_way.took());
    named.answered(&span, status, took);
    under_way.answered(status, took);
    response
}

/// What the log calls a request by.
struct Named<'a> {
    request_id: &'a RequestId,
    method: &'a str,
    route: Option<&'static str>,
    client: Option<IpAddr>,
}

impl Named<'_> {
    fn span(&self) -> Span {
        tracing::info_span!(
            "http.request",
            request.id = %self.request_id,
            http.method = self.method,
            http.route = self.route,
            client.address = self.client.map(tracing::field::display),
        )
    }

    /// The one line that every request leaves; it bears its names itself where no span does.
    fn answered(&self, span: &Span, status: u16, latency: Duration) {
        let latency_us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        if span.is_none() {
            tracing::info!(
                request.id = %self.request_id,
                http.method = self.method,
                http.route = self.route,
                client.address = self.client.map(tracing::field::display),
                http.status = status,
                latency_us,
                "answered"
            );
        } else {
            tracing::info!(http.status = status, latency_us, "answered");
        }
    }
}

/// The caller's own id where it is well formed and stands alone, else a fresh one.
fn request_id(gateway: &Gateway, request: &HttpRequest) -> RequestId {
    let mut given = request.headers().get_all(REQUEST_ID);
    let only = given.next().filter(|_| given.next().is_none());
    only.and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or_else(|| gateway.services.ids.request_id())
}

fn failed(
    error: &ApiError,
    format: ErrorFormat,
    gateway: &Gateway,
    request: &HttpRequest,
    request_id: &RequestId,
    route: Option<&'static str>,
) -> HttpResponse {
    error.log();
    let names = gateway.wire_names;
    let told = envelope::wants_metadata(request.headers(), names).then_some(names);
    envelope::respond(error, request_id, route, format, told)
}

async fn answer(
    gateway: &Gateway,
    request: &HttpRequest,
    payload: Payload,
    request_id: &RequestId,
    matched: Option<Matched<'_>>,
    span: &Span,
) -> Result<HttpResponse, ApiError> {
    let Matched { route, parameters } = matched
        .ok_or_else(|| ApiError::unknown_path(path_hint(&gateway.base_path, request.method(), request.path())))?;
    let (place, authenticated_in) = (OnceCell::new(), Duration::ZERO);
    let call = Call { gateway, request, request_id, route, parameters, owner: None, place, authenticated_in, span };
    let check_method = || {
        if route.method.takes(request.method()) { Ok(()) } else { Err(ApiError::method_not_allowed(route.allow())) }
    };
    match route.target {
        Target::Open(open) => {
            check_method()?;
            open_route(open, &call).await
        }
        Target::Operation(operation) => {
            // Before anything of the request is looked at.
            gateway.admission.check_all()?;
            let accepted = if route.is_of_a_vendor() { Credentials::AnyHeader } else { Credentials::Bearer };
            let began = Instant::now();
            let caller = authenticate(&gateway.services.authenticate, request.headers(), accepted);
            let caller = timeout(gateway.request_timeout, caller).await.map_err(|_| {
                let cause = "limits.request_timeout_ms passed while the key was looked up";
                ApiError::of(ErrorKind::Unavailable).caused_by(cause)
            })??;
            let call = Call { owner: Some(Owner::of(&caller)), authenticated_in: began.elapsed(), ..call };
            let outcome = async {
                rate::count_request(gateway, &caller)?;
                check_method()?;
                if operation.reads_body() {
                    gateway.admission.check(call.owner()?)?;
                } else {
                    call.enter(None)?;
                }
                perform(operation, &call, &caller, payload).await
            };
            let outcome = outcome.await.inspect_err(|error| refusals::note(&call, &caller, error));
            outcome.map_err(|error| error.user_id(owner_of(&caller)))
        }
    }
}

fn owner_of(caller: &Principal) -> Option<String> {
    caller.inference().ok().and_then(|key| key.owner_id().map(str::to_owned))
}

async fn open_route(route: OpenRoute, call: &Call<'_>) -> Result<HttpResponse, ApiError> {
    match route {
        OpenRoute::Root => Ok(root::describe(call)),
        OpenRoute::Live => Ok(health::live()),
        OpenRoute::Ready => health::ready(call).await,
        OpenRoute::OpenApi => Ok(docs::document(call)),
        OpenRoute::Docs => Ok(docs::page(call)),
    }
}

async fn perform(
    operation: Operation,
    call: &Call<'_>,
    caller: &Principal,
    payload: Payload,
) -> Result<HttpResponse, ApiError> {
    match operation {
        Operation::PromoteContainerFile => promote_container_file::handle(call, caller).await,
        Operation::SubmitDecision(entry) => submit_decision::handle(call, caller, entry, payload).await,
        Operation::AssignKeysToGuardrail => assign_keys_to_guardrail::handle(call, caller, payload).await,
        Operation::RotateApiKey => rotate_api_key::handle(call, caller).await,
        Operation::GetModel => get_model::handle(call),
        Operation::CountModels => count_models::handle(call),
        Operation::ListModels(default) => list_models::handle(call, default),
        Operation::ListModelEndpoints => list_model_endpoints::handle(call),
        Operation::ListProviders => list_providers::handle(call),
        Operation::GetGeneration => get_generation::handle(call, caller).await,
        Operation::Guardrails(operation) => guardrails::handle(operation, call, caller, payload).await,
        Operation::Destinations(operation) => destinations::handle(operation, call, caller, payload).await,
    }
}
