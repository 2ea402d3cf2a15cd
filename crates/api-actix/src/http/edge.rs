//! The entry point of every request: assigns the id, finds the route, authenticates the caller, calls the endpoint,
//! writes errors and logs. Requests whose head cannot be read reach no route.

use std::cell::OnceCell;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use actix_web::body::{BodySize, MessageBody as _};
use actix_web::http::Method;
use actix_web::http::header::{CACHE_CONTROL, HeaderName, HeaderValue};
use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use chrono::{DateTime, Utc};
use domain::api_key::{AuthenticateError, InferenceKey, Principal};
use domain::audit::DeniedChange;
use domain::error::ErrorKind;
use domain::ids::RequestId;
use domain::usage::{Rejection, RejectionReason};
use futures_util::{FutureExt, poll};
use http_server::{COPIED_BODY, HeadError, RejectHead, UntilWritten};
use tokio::time::{Instant, timeout};

use super::access_log::{AccessFields, Completion, REQUEST_ID};
use super::admission::{InFlightPermit, Owner};
use super::call::{Admitted, Call};
use super::client::{Credentials, authenticate, client_address};
use super::envelope;
use super::error::{ApiError, ErrorFormat};
use super::recorder::{Answer, InFlightRequest};
use super::response::CACHE_POLICY;
use super::routes::{Handler, KeyedHandler, OpenHandler, Outcome, Route, RouteMatch, RouteTable, path_hint};
use crate::gateway::Gateway;
use crate::operator::Door;

const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// The request id header that a vendor's client package reads.
const TYPESAFE_REQUEST_ID: HeaderName = HeaderName::from_static("x-typesafe-request-id");

/// Answers one request. Every failure becomes an error response.
pub(crate) async fn serve(
    gateway: Arc<Gateway>,
    routes: RouteTable,
    door: Door,
    request: HttpRequest,
    payload: Payload,
) -> HttpResponse {
    let arrived_at = gateway.services.clock.now();
    let request_id = request_id(&gateway, &request, arrived_at);
    let matched = routes.find(&gateway.settings.base_path, request.method(), request.path());
    let pattern = matched.map(|matched| matched.route.pattern);
    let services = &gateway.services;
    let in_flight = InFlightRequest::begin(&*services.recorder, &*services.clock, pattern, request.method());
    let client = client_address(&request, &gateway.settings.trusted_proxies);
    let access = AccessFields { client, ..AccessFields::default() };
    let admitted = OnceCell::new();
    let outcome = {
        // Pinned in place, because the large future would be copied with each move.
        let arrived = (arrived_at, in_flight.began);
        let origin = Origin { door: &door, request: &request, request_id: &request_id, arrived };
        let work = pin!(answer(&gateway, routes, origin, payload, matched, (&access, &admitted)));
        let panicked = |_| Err(ApiError::from_kind(ErrorKind::Internal).caused_by("a handler panicked"));
        REQUEST_ID.scope(request_id.clone(), AssertUnwindSafe(work).catch_unwind()).await.unwrap_or_else(panicked)
    };
    if let Err(error) = &outcome {
        error.add_to_access_log(&access);
        count_rejection(&gateway, &access, error);
    }
    let format = matched.map_or(ErrorFormat::Contract, |matched| matched.route.error_format());
    let mut response = outcome.unwrap_or_else(|error| {
        let write = || write_error(&error, format, &gateway, &request, &request_id, pattern);
        REQUEST_ID.sync_scope(request_id.clone(), write)
    });
    if matched.is_some_and(|matched| matched.route.is_private()) && !response.headers().contains_key(CACHE_CONTROL) {
        response.headers_mut().insert(CACHE_CONTROL, CACHE_POLICY);
    }
    if let Ok(value) = HeaderValue::from_str(request_id.as_str()) {
        if matched.is_some_and(|matched| matched.route.is_for_vendor_clients()) {
            response.headers_mut().insert(TYPESAFE_REQUEST_ID, value.clone());
        }
        response.headers_mut().insert(REQUEST_ID_HEADER, value);
    }
    if let Some(Admitted { permit, .. }) = admitted.into_inner() {
        hold_until_written(&mut response, permit);
    }
    let (status, took) = (response.status().as_u16(), in_flight.took());
    let (method, path) = (request.method().as_str(), request.path());
    let request_id = &request_id;
    let completion =
        Completion { at: arrived_at + took, request_id, method, route: pattern, path, status, latency: took };
    access.log_completion(services.access_log, &completion);
    in_flight.finish(status, took);
    response
}

/// Leaves the permit with the response, for the connection that writes it. An answer that the connection copies ends
/// its permit here, and so does one that holds its own memory until it is written, such as a download.
fn hold_until_written(response: &mut HttpResponse, permit: InFlightPermit) {
    if response.extensions().contains::<UntilWritten>() {
        return;
    }
    let bytes = match response.body().size() {
        BodySize::None => 0,
        BodySize::Sized(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX),
        BodySize::Stream => COPIED_BODY + 1,
    };
    if bytes > COPIED_BODY {
        permit.hold_answer(bytes);
        response.extensions_mut().insert(UntilWritten::new(permit));
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
fn request_id(gateway: &Gateway, request: &HttpRequest, at: DateTime<Utc>) -> RequestId {
    let mut given = request.headers().get_all(REQUEST_ID_HEADER);
    let only = given.next().filter(|_| given.next().is_none());
    only.and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or_else(|| gateway.services.ids.request_id(at))
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
    let names_on_request = envelope::wants_metadata(headers).then(|| gateway.settings.wire_names.for_client(headers));
    envelope::respond(error, request_id, route, format, names_on_request)
}

/// A request, its id and its arrival, and the listener that it came through.
struct Origin<'a> {
    door: &'a Door,
    request: &'a HttpRequest,
    request_id: &'a RequestId,
    arrived: (DateTime<Utc>, Duration),
}

async fn answer(
    gateway: &Gateway,
    routes: RouteTable,
    Origin { door, request, request_id, arrived }: Origin<'_>,
    payload: Payload,
    matched: Option<RouteMatch<'_>>,
    (access, admitted): (&AccessFields, &OnceCell<Admitted>),
) -> Outcome {
    let operator = door.operator(request)?;
    let RouteMatch { route, parameters } = matched.ok_or_else(|| {
        ApiError::unknown_path(path_hint(routes, &gateway.settings.base_path, request.method(), request.path()))
    })?;
    let call = Call {
        gateway,
        request,
        request_id,
        under_base: route.under_base,
        pattern: route.pattern,
        parameters,
        owner: None,
        admitted,
        arrived,
        access,
    };
    let check_method = || {
        let accepts = route.method.accepts(request.method());
        if accepts { Ok(()) } else { Err(ApiError::method_not_allowed(routes.allow(route))) }
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
            if operator.is_none() {
                // Runs before any part of the request is read.
                gateway.admission.check_total()?;
            }
            let caller = match operator {
                Some(operator) => operator,
                None => authenticate_key(gateway, request, route, access).await?,
            };
            access.api_key.set(caller.id());
            access.workspace.set(caller.inference().ok().map(InferenceKey::workspace_id));
            let call = Call { owner: Some(Owner::new(&caller)), ..call };
            let outcome = async {
                gateway.count_request(&caller).await?;
                check_method()?;
                if route.reads_body {
                    gateway.admission.check(call.owner()?)?;
                } else {
                    call.enter(call.lease()?, Duration::ZERO)?;
                }
                let check_query = || {
                    route.check_query(request.query_string())?;
                    route.check_conditions(request.headers())
                };
                match handler {
                    KeyedHandler::Memory(handle) => {
                        check_query()?;
                        handle(&call)
                    }
                    KeyedHandler::AnyKey(handle) => {
                        check_query()?;
                        handle(&call, &caller, payload).await
                    }
                    KeyedHandler::Management(handle) => {
                        let by = caller.authority(|key| call.actor_of(key))?;
                        check_query()?;
                        handle(&call, &by, payload).await
                    }
                }
            };
            let outcome = outcome.await.inspect_err(|error| record_denied_change(&call, route, &caller, error));
            outcome.map_err(|error| error.user_id(workspace_owner(&caller)))
        }
    }
}

/// Authenticates the key of a request.
async fn authenticate_key(
    gateway: &Gateway,
    request: &HttpRequest,
    route: &Route,
    access: &AccessFields,
) -> Result<Principal, ApiError> {
    let accepted = if route.is_for_vendor_clients() { Credentials::AnyHeader } else { Credentials::Bearer };
    let mut caller = pin!(authenticate(&gateway.services.authenticate, request.headers(), accepted));
    let caller = match poll!(&mut caller) {
        Poll::Ready(caller) => Ok(caller),
        // Only a key that is not cached needs a timer.
        Poll::Pending => timeout(gateway.settings.request_timeout, caller).await,
    };
    let caller = caller.map_err(|_| {
        let cause = "limits.request_timeout_ms passed while the key was looked up";
        ApiError::from_kind(ErrorKind::Unavailable).reason(RejectionReason::StoreTimeout).caused_by(cause)
    })?;
    Ok(caller.inspect_err(|error| note_suspended(access, error))?)
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

/// Records a denied management change. Server errors are not recorded.
fn record_denied_change(call: &Call<'_>, route: &Route, caller: &Principal, error: &ApiError) {
    let Some(denied_changes) = &call.gateway.services.denied_changes else { return };
    let status = error.parts().status;
    let Some(method) = change_method(call.request.method()) else { return };
    // Files are written and deleted with keys of both kinds.
    let writes_files = matches!(caller, Principal::Management(_)) && matches!(method, "PUT" | "DELETE");
    if status.is_client_error() && (route.is_audited() || writes_files) {
        let route = format!("{method} {}", route.pattern);
        denied_changes.record(DeniedChange { actor: call.actor(caller), route, status: status.as_u16() });
    }
}

/// Returns the name of a method that changes data. Unknown methods are text of the caller and are not recorded.
fn change_method(method: &Method) -> Option<&'static str> {
    match *method {
        Method::GET | Method::HEAD | Method::OPTIONS => None,
        Method::POST => Some("POST"),
        Method::PUT => Some("PUT"),
        Method::PATCH => Some("PATCH"),
        Method::DELETE => Some("DELETE"),
        _ => Some("other"),
    }
}

/// Writes the error response, counts it and logs it at debug level: anyone can send such requests.
pub(crate) struct HeadRejection {
    gateway: Arc<Gateway>,
    log_limit: LogLimit,
}

impl HeadRejection {
    pub(crate) fn new(gateway: Arc<Gateway>) -> Self {
        Self { gateway, log_limit: LogLimit::default() }
    }

    pub(crate) fn into_callback(self) -> RejectHead {
        Arc::new(move |fault, peer| self.respond(fault, peer))
    }

    fn respond(&self, fault: HeadError, peer: Option<SocketAddr>) -> HttpResponse {
        let services = &self.gateway.services;
        let request_id = services.ids.request_id(services.clock.now());
        let error = ApiError::head(fault);
        let mut response = envelope::respond(&error, &request_id, None, ErrorFormat::Contract, None);
        if let Ok(value) = HeaderValue::from_str(request_id.as_str()) {
            response.headers_mut().insert(HeaderName::from_static("x-request-id"), value);
        }
        let status = response.status().as_u16();
        services.recorder.record_answer(&Answer { route: None, method: "other", status, took: Duration::ZERO });
        if tracing::enabled!(tracing::Level::DEBUG)
            && let Some(suppressed) = self.log_limit.permit()
        {
            let address = peer.map(|peer| tracing::field::display(peer.ip().to_canonical()));
            tracing::debug!(
                request.id = %request_id,
                client.address = address,
                http.status = status,
                error = %fault,
                suppressed,
                "request rejected before routing"
            );
        }
        response
    }
}

/// The maximum number of lines in each [`WINDOW`].
const MAX_LINES: u32 = 10;
const WINDOW: Duration = Duration::from_secs(1);

/// Permits at most ten lines per second.
#[derive(Debug, Default)]
struct LogLimit(Mutex<Option<Window>>);

#[derive(Debug)]
struct Window {
    began: Instant,
    lines: u32,
    suppressed: u64,
}

impl LogLimit {
    /// Returns the number of lines suppressed since the last permitted one; `None` if this line must be suppressed.
    fn permit(&self) -> Option<u64> {
        let now = Instant::now();
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let window = window.get_or_insert(Window { began: now, lines: 0, suppressed: 0 });
        if now.duration_since(window.began) >= WINDOW {
            window.began = now;
            window.lines = 0;
        }
        if window.lines == MAX_LINES {
            window.suppressed += 1;
            return None;
        }
        window.lines += 1;
        Some(std::mem::take(&mut window.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn permit_grants_ten_lines_a_second_and_counts_the_others() {
        let limit = LogLimit::default();
        let granted = (0..300).filter_map(|_| limit.permit()).collect::<Vec<_>>();
        assert_eq!(granted, [0; 10]);
        tokio::time::advance(WINDOW).await;
        assert_eq!((limit.permit(), limit.permit()), (Some(290), Some(0)));
    }
}
