//! The one way in which anything fails towards the client: a status, a message that may be shown, and metadata.

use std::borrow::Cow;
use std::error::Error;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{ACCEPT_ENCODING, ALLOW, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use domain::api_key::{AuthenticateError, WrongKeyKind};
use domain::decision::InvalidDecision;
use domain::error::{ErrorKind, StoreError};
use domain::money::Usd;
use domain::rate::RateLimited;
use domain::system::WorkLost;
use serde_json::{Map, Value};

use super::connection::HeadFault;
use super::format::ErrorFormat;
use crate::wires::{BodyFault, Place};

/// The only table from the meaning of a failure to its status.
pub(crate) fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::InvalidRequest => StatusCode::BAD_REQUEST,
        ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorKind::InsufficientCredits => StatusCode::PAYMENT_REQUIRED,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorKind::ProviderFailure => StatusCode::BAD_GATEWAY,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::TimedOut => beyond_the_registry(524),
        ErrorKind::ProviderOverloaded => beyond_the_registry(529),
        ErrorKind::ClientDisconnected => beyond_the_registry(499),
    }
}

/// A status that has no constant; every number from 100 to 999 is one.
fn beyond_the_registry(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// What the interface says at each status. Where it leaves the words open, this is the sentence.
pub(crate) fn message_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidRequest => "Invalid request parameters",
        ErrorKind::Unauthenticated => "Missing Authentication header",
        ErrorKind::InsufficientCredits => {
            "Insufficient credits. The operator of this gateway can add more with `tollgate workspace credit`"
        }
        ErrorKind::Forbidden => "Only management keys can perform this operation",
        ErrorKind::NotFound => "Resource not found",
        ErrorKind::Conflict => "The resource was changed at the same time. Read it again and repeat the change.",
        ErrorKind::PayloadTooLarge => "Request payload too large",
        ErrorKind::RateLimited => "Rate limit exceeded",
        ErrorKind::Internal => "Internal Server Error",
        ErrorKind::ProviderFailure | ErrorKind::ProviderOverloaded => "Provider returned error",
        ErrorKind::Unavailable => "Service temporarily unavailable",
        ErrorKind::TimedOut => "Request timed out. Please try again later.",
        ErrorKind::ClientDisconnected => "The caller left before the answer",
    }
}

/// The one header whose value is a member of a request.
pub(crate) const SESSION_ID: &str = "x-session-id";

/// A failure on its way to the client. Boxed, because it is large and rare.
#[derive(Debug)]
pub(crate) struct ApiError(Box<Parts>);

#[derive(Debug)]
struct Parts {
    status: StatusCode,
    message: Cow<'static, str>,
    metadata: Map<String, Value>,
    amounts: Vec<(&'static str, Usd)>,
    service_metadata: Map<String, Value>,
    headers: Vec<(HeaderName, HeaderValue)>,
    user_id: Option<String>,
    place: Option<Place>,
    retry_after: Option<Duration>,
    format: Option<ErrorFormat>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl ApiError {
    fn with_status(status: StatusCode, message: Cow<'static, str>) -> Self {
        Self(Box::new(Parts {
            status,
            message,
            metadata: Map::new(),
            amounts: Vec::new(),
            service_metadata: Map::new(),
            headers: Vec::new(),
            user_id: None,
            place: None,
            retry_after: None,
            format: None,
            source: None,
        }))
    }

    /// With the interface's own words; one that asks the client to come back says when.
    pub(crate) fn of(kind: ErrorKind) -> Self {
        let error = Self::with_status(status_of(kind), Cow::Borrowed(message_of(kind)));
        if kind == ErrorKind::Unavailable { error.retry_after(Duration::from_secs(1)) } else { error }
    }

    /// 400 with a sentence that says what to mend. It must hold nothing of the caller's content.
    pub(crate) fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::with_status(StatusCode::BAD_REQUEST, message.into())
    }

    /// 400 for a body that is at fault as a whole.
    pub(crate) fn invalid_body(message: impl Into<Cow<'static, str>>) -> Self {
        Self::invalid(message).place(Place::Body)
    }

    /// 415, naming what encodings of a body are read.
    pub(crate) fn unsupported_encoding(accepted: &'static str) -> Self {
        let message =
            Cow::Owned(format!("Content-Encoding is not supported; send the body as it is, or in one of {accepted}"));
        Self::with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
            .header(ACCEPT_ENCODING, HeaderValue::from_static(accepted))
    }

    /// A request whose head cannot be read.
    pub(crate) fn head(fault: HeadFault) -> Self {
        Self::with_status(fault.status(), Cow::Owned(fault.to_string()))
    }

    /// 404 for an unknown path, with a hint where the right one can be guessed.
    pub(crate) fn unknown_path(hint: Option<String>) -> Self {
        let error = Self::of(ErrorKind::NotFound);
        match hint {
            Some(hint) => error.message(format!("Resource not found; {hint}")),
            None => error,
        }
    }

    /// 404 for anything that does not exist.
    pub(crate) fn not_found() -> Self {
        Self::of(ErrorKind::NotFound)
    }

    /// 405, naming what the path does take.
    pub(crate) fn method_not_allowed(allow: String) -> Self {
        Self::with_status(StatusCode::METHOD_NOT_ALLOWED, Cow::Borrowed("Method not allowed")).header(ALLOW, allow)
    }

    /// A failure of a store, logged with its cause.
    pub(crate) fn store(error: StoreError) -> Self {
        Self::of(error.kind()).caused_by(error)
    }

    /// Work on a worker thread that did not end.
    pub(crate) fn work_lost(lost: WorkLost) -> Self {
        let error = Self::of(lost.kind()).caused_by(lost);
        if lost != WorkLost::QueueFull {
            return error;
        }
        error
            .message(
                "Rate limit exceeded: too many large requests of this workspace wait to be read and filtered; wait for \
                 one to end",
            )
            .retry_after(Duration::from_secs(1))
            .metadata("scope", "workspace")
            .metadata("unit", "queued_scans")
    }

    /// Another sentence than the status' own.
    pub(crate) fn message(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.0.message = message.into();
        self
    }

    /// One more member of `error.metadata`.
    pub(crate) fn metadata(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.0.metadata.insert(name.to_owned(), value.into());
        self
    }

    /// One more member of `error.metadata`: money in USD, a number with every digit that it has.
    pub(crate) fn amount(mut self, name: &'static str, amount: Usd) -> Self {
        self.0.amounts.retain(|(other, _)| *other != name);
        self.0.amounts.push((name, amount));
        self
    }

    /// One more member of what is told only to those who ask for it.
    pub(crate) fn service_metadata(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.0.service_metadata.insert(name.to_owned(), value.into());
        self
    }

    /// One more header; a value that no header can hold is left out.
    pub(crate) fn header(mut self, name: HeaderName, value: impl TryInto<HeaderValue>) -> Self {
        if let Ok(value) = value.try_into() {
            self.0.headers.retain(|(other, _)| *other != name);
            self.0.headers.push((name, value));
        }
        self
    }

    /// `Retry-After` in whole seconds, rounded up, at least one.
    pub(crate) fn retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self.header(RETRY_AFTER, HeaderValue::from(whole_seconds(wait)))
    }

    /// The headers that go with a refusal by a rate limit. `reset_at_ms` is in Unix epoch milliseconds.
    pub(crate) fn rate_limit(self, limit: u32, remaining: u32, retry_after: Duration, reset_at_ms: i64) -> Self {
        self.retry_after(retry_after)
            .header(HeaderName::from_static("x-ratelimit-limit"), HeaderValue::from(limit))
            .header(HeaderName::from_static("x-ratelimit-remaining"), HeaderValue::from(remaining))
            .header(HeaderName::from_static("x-ratelimit-reset"), HeaderValue::from(reset_at_ms))
    }

    /// Where in the request the fault lies.
    pub(crate) fn place(mut self, place: Place) -> Self {
        self.0.place = Some(place);
        self
    }

    /// In which form it is told, where that is not the route's own.
    pub(crate) fn format(mut self, format: ErrorFormat) -> Self {
        self.0.format = Some(format);
        self
    }

    /// The envelope's `user_id`.
    pub(crate) fn user_id(mut self, user_id: Option<String>) -> Self {
        self.0.user_id = self.0.user_id.or(user_id);
        self
    }

    /// What lies behind it: logged, never sent.
    pub(crate) fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> StatusCode {
        self.0.status
    }

    pub(crate) fn view(&self) -> ErrorView<'_> {
        ErrorView {
            status: self.0.status,
            message: &self.0.message,
            metadata: &self.0.metadata,
            amounts: &self.0.amounts,
            service_metadata: &self.0.service_metadata,
            user_id: self.0.user_id.as_deref(),
            headers: &self.0.headers,
            place: self.0.place.as_ref(),
            retry_after: self.0.retry_after,
            format: self.0.format,
        }
    }

    /// Writes the chain of causes, once. Called inside the request's span, which names the request.
    pub(crate) fn log(&self) {
        let parts = &*self.0;
        let cause = parts.source.as_deref().map(|cause| cause as &(dyn Error + 'static));
        let status = parts.status.as_u16();
        if parts.status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(http.status = status, error = cause, "a request failed by a defect");
        } else if parts.status.is_server_error() {
            tracing::warn!(http.status = status, error = cause, "a request failed");
        } else {
            // Without the message, which may name members by the caller's own words.
            tracing::debug!(http.status = status, error = cause, "a request was refused");
        }
    }
}

/// What of a failure the client sees.
pub(crate) struct ErrorView<'a> {
    pub(crate) status: StatusCode,
    pub(crate) message: &'a str,
    pub(crate) metadata: &'a Map<String, Value>,
    pub(crate) amounts: &'a [(&'static str, Usd)],
    pub(crate) service_metadata: &'a Map<String, Value>,
    pub(crate) user_id: Option<&'a str>,
    pub(crate) headers: &'a [(HeaderName, HeaderValue)],
    pub(crate) place: Option<&'a Place>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) format: Option<ErrorFormat>,
}

impl From<BodyFault> for ApiError {
    fn from(fault: BodyFault) -> Self {
        match fault {
            BodyFault::Invalid(invalid) => invalid.into(),
            BodyFault::Twice(name) => Self::invalid(fault.to_string()).place(Place::Member(name.to_owned())),
            other => Self::invalid_body(other.to_string()),
        }
    }
}

impl From<InvalidDecision> for ApiError {
    fn from(fault: InvalidDecision) -> Self {
        let message = fault.to_string();
        let place = if fault.path == SESSION_ID { Place::Header(SESSION_ID) } else { Place::Member(fault.path) };
        Self::invalid(message).place(place)
    }
}

impl From<AuthenticateError> for ApiError {
    fn from(error: AuthenticateError) -> Self {
        match error {
            AuthenticateError::Missing | AuthenticateError::Invalid => Self::of(error.kind())
                .message(error.to_string())
                .header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")),
            AuthenticateError::WorkspaceSuspended { ref owner_id } => {
                Self::of(error.kind()).message(error.to_string()).user_id(owner_id.clone())
            }
            AuthenticateError::Store(_) => Self::of(error.kind()).caused_by(error),
        }
    }
}

impl From<WrongKeyKind> for ApiError {
    fn from(error: WrongKeyKind) -> Self {
        Self::of(error.kind()).message(error.to_string())
    }
}

impl ApiError {
    /// 429 with when to come back and what it was that refused. `now_ms` is in Unix epoch milliseconds.
    pub(crate) fn rate_limited(limited: RateLimited, now_ms: i64) -> Self {
        let wait_ms = i64::try_from(limited.retry_after.as_millis()).unwrap_or(i64::MAX);
        let RateLimited { scope, unit, limit, remaining, retry_after } = limited;
        Self::of(ErrorKind::RateLimited)
            .rate_limit(limit, remaining, retry_after, now_ms.saturating_add(wait_ms))
            .metadata("scope", scope.as_str())
            .metadata("unit", unit.as_str())
            .metadata("limit", limit)
    }
}

/// Rounded up, at least one.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests;
