//! One request, as its endpoint sees it.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use actix_web::web::Payload;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::api_key::Principal;
use domain::audit::Actor;
use domain::decision::{AssetPart, ClientConnection, RequestOrigin};
use domain::error::ErrorKind;
use domain::ids::{ApiKeyId, RequestId};
use domain::system::WorkOwner;
use futures_util::poll;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::access_log::AccessFields;
use super::admission::{BodyLease, InFlightPermit, Owner};
use super::body::JsonBody;
use super::client::WireNames;
use super::detach::{DetachableWork, Work};
use super::error::ApiError;
use super::{envelope, parameters};
use crate::gateway::Gateway;
use crate::services::RoutedServices;

/// The maximum size of a body that is parsed on the worker thread, in bytes; parsing takes a few milliseconds at most.
/// A larger body would delay other requests of the thread.
const INLINE_PARSE_MAX_BYTES: usize = 512 << 10;

/// The maximum number of braces in a pattern.
pub(crate) const MAX_PARAMETERS: usize = 3;

/// The path segments matched by the braces, percent-encoded, in order; empty if there are fewer.
pub(crate) type Parameters<'p> = [&'p str; MAX_PARAMETERS];

/// One request, as its endpoint sees it.
pub(crate) struct Call<'a> {
    pub(crate) gateway: &'a Gateway,
    pub(crate) request: &'a HttpRequest,
    pub(crate) request_id: &'a RequestId,
    /// True if the base path precedes the pattern of the route.
    pub(crate) under_base: bool,
    /// The pattern of the route.
    pub(crate) pattern: &'static str,
    /// The path segments matched by the route's braces, percent-encoded, in order.
    pub(crate) parameters: Parameters<'a>,
    /// The owner of the in-flight permit and the body memory; open routes have none.
    pub(super) owner: Option<Owner>,
    /// The in-flight permit, taken once the body has arrived, and the begin of the request's time.
    pub(super) admitted: &'a OnceCell<Admitted>,
    /// The arrival of the request's head, on the wall clock and on the monotonic one.
    pub(super) arrived: (DateTime<Utc>, Duration),
    /// The fields of the access log.
    pub(crate) access: &'a AccessFields,
}

/// An admitted request.
pub(crate) struct Admitted {
    pub(super) permit: InFlightPermit,
    /// The begin of `limits.request_timeout_ms`: the arrival of the head, and the wait for the body later. Every stage
    /// of the request has what is left of this one deadline.
    pub(super) began: (DateTime<Utc>, Duration),
}

impl Call<'_> {
    /// Returns the first parameter of the path. A segment that is not valid UTF-8 names no record.
    pub(crate) fn id(&self) -> Result<Cow<'_, str>, ApiError> {
        parameters::segment(self.parameters[0]).ok_or_else(ApiError::not_found)
    }

    /// Returns the current use cases that depend on providers and endpoints.
    pub(crate) fn routed(&self) -> Arc<RoutedServices> {
        self.gateway.services.routed.current()
    }

    /// Reads the body and takes an in-flight permit. A body that is still arriving holds memory but no permit, so slow
    /// clients do not block others.
    pub(crate) async fn read_json(&self, payload: Payload) -> Result<JsonBody, ApiError> {
        Ok(self.read_body(payload, false).await?.0)
    }

    /// Reads a body like [`Self::read_json`]. `None` if the request has no body: many clients send its type always.
    pub(crate) async fn read_optional_json(&self, payload: Payload) -> Result<Option<JsonBody>, ApiError> {
        let headers = self.request.headers();
        let has_length = headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0");
        if has_length || headers.contains_key(TRANSFER_ENCODING) {
            return self.read_json(payload).await.map(Some);
        }
        self.enter(self.lease()?, Duration::ZERO)?;
        Ok(None)
    }

    /// Reads a body like [`Self::read_json`], or a form with further parts.
    pub(crate) async fn read_json_with_parts(&self, payload: Payload) -> Result<(JsonBody, Vec<AssetPart>), ApiError> {
        self.read_body(payload, true).await
    }

    async fn read_body(&self, payload: Payload, takes_form: bool) -> Result<(JsonBody, Vec<AssetPart>), ApiError> {
        let read = JsonBody::read(self.request, payload, self.gateway.body_bounds(), self.lease()?, takes_form);
        let (read, waited) = self.timed(read).await;
        let (body, parts, mut memory) = read?;
        memory.resize_for_processing(body.len() + parts.iter().map(|part| part.data.len()).sum::<usize>())?;
        self.enter(memory, waited)?;
        Ok((body, parts))
    }

    /// Runs a future, and returns how long it waited. A ready one needs no clock.
    pub(super) async fn timed<T>(&self, future: impl Future<Output = T>) -> (T, Duration) {
        let (mut future, clock) = (pin!(future), &self.gateway.services.clock);
        if let Poll::Ready(output) = poll!(&mut future) {
            return (output, Duration::ZERO);
        }
        let began = clock.monotonic();
        let output = future.await;
        (output, clock.monotonic().saturating_sub(began))
    }

    /// Takes an in-flight permit until the operation has ended and its answer is written. The request's time does not
    /// include how long its body was `waited` for.
    pub(super) fn enter(&self, memory: BodyLease, waited: Duration) -> Result<(), ApiError> {
        let permit = self.gateway.admission.enter(self.owner()?, memory)?;
        let (at, arrived) = self.arrived;
        let began = (at + waited, arrived.saturating_add(waited));
        // A second permit of the same request is released at once.
        drop(self.admitted.set(Admitted { permit, began }));
        Ok(())
    }

    /// Returns the in-flight permit; `None` before the body has arrived, and on open routes.
    pub(crate) fn permit(&self) -> Option<InFlightPermit> {
        self.admitted.get().map(|admitted| admitted.permit.clone())
    }

    pub(super) fn lease(&self) -> Result<BodyLease, ApiError> {
        Ok(self.gateway.body_memory.lease(self.owner()?.account()))
    }

    pub(super) fn owner(&self) -> Result<Owner, ApiError> {
        self.owner.ok_or_else(|| ApiError::from_kind(ErrorKind::Internal).caused_by("an open route has no places"))
    }

    /// Parses a body of that many bytes, on another thread if it is large.
    ///
    /// # Errors
    /// The error of `parse`; the time of the request passed, or too many large bodies wait.
    pub(crate) async fn parse<T: Send + 'static>(
        &self,
        owner: WorkOwner,
        bytes: usize,
        parse: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        if bytes <= INLINE_PARSE_MAX_BYTES {
            return parse();
        }
        let parsed = self.gateway.services.workers.get(owner, move |_| parse());
        let parsed = timeout(self.time_left(), parsed).await.map_err(|_| {
            let cause = "limits.request_timeout_ms passed while the body waited for a scan thread";
            ApiError::from_kind(ErrorKind::TimedOut).caused_by(cause)
        })?;
        parsed.map_err(ApiError::from_task_error)?
    }

    /// Runs work that continues after a disconnect; see [`crate::http::detach::DetachOnDisconnect::run_detachable`].
    /// The permit is held until the work ends, so that disconnecting clients cannot exceed their share.
    pub(crate) fn run_detachable<T: Send + 'static>(
        &self,
        work: Work<T>,
        left: CancellationToken,
    ) -> DetachableWork<'_, T> {
        self.gateway.detach.run_detachable(work, left, self.permit(), self.request_id)
    }

    /// Returns the connection of the client. `left` is cancelled when the client disconnects.
    pub(crate) fn connection(&self, left: CancellationToken) -> Arc<dyn ClientConnection> {
        Arc::new(RequestConnection { left, permit: self.permit() })
    }

    /// Returns the time left of the request's one deadline, `limits.request_timeout_ms` after its body has arrived.
    pub(crate) fn time_left(&self) -> Duration {
        let timeout = self.gateway.settings.request_timeout;
        let (_, began) = self.admitted.get().map_or(self.arrived, |admitted| admitted.began);
        timeout.saturating_sub(self.gateway.services.clock.monotonic().saturating_sub(began))
    }

    /// Returns the actor for the audit log: a key and its client address.
    pub(crate) fn actor_of(&self, key: ApiKeyId) -> Actor {
        Actor { name: format!("key:{key}"), source: self.access.client.map(|address| address.to_string()) }
    }

    /// Returns the actor for the audit log: the caller's key, or the operator.
    pub(crate) fn actor(&self, caller: &Principal) -> Actor {
        match caller {
            Principal::Inference(key) => self.actor_of(key.id()),
            Principal::Management(key) => self.actor_of(key.id()),
            Principal::Operator(by) => by.actor().clone(),
        }
    }

    /// Returns the origin of the request for its usage record.
    pub(crate) fn origin(&self) -> RequestOrigin {
        let client_address = self.access.client.filter(|_| self.gateway.settings.record_client_address);
        let began = self.admitted.get().map(|admitted| admitted.began);
        RequestOrigin { request_id: self.request_id.clone(), client_address, began }
    }

    /// Returns true if the caller asks for service metadata in the response.
    pub(crate) fn wants_metadata(&self) -> bool {
        envelope::wants_metadata(self.request.headers())
    }

    /// Returns the literal names for the response.
    pub(crate) fn wire_names(&self) -> WireNames {
        self.gateway.settings.wire_names.for_client(self.request.headers())
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
        self.permit.as_ref().is_none_or(|permit| permit.memory().hold_arriving_answer(bytes))
    }

    fn return_answer_memory(&self, bytes: usize) {
        if let Some(permit) = &self.permit {
            permit.memory().return_arriving_answer(bytes);
        }
    }
}
