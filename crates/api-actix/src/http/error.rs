//! API errors: a status, a public message and metadata, in the format of the route.

use std::borrow::Cow;
use std::error::Error;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{
    ACCEPT_ENCODING, ALLOW, CONTENT_RANGE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use domain::api_key::{AuthenticateError, WrongKeyKind};
use domain::authority::Restricted;
use domain::change::PreconditionFailed;
use domain::decision::InvalidDecision;
use domain::error::{ErrorKind, StoreError};
use domain::money::Usd;
use domain::rate::RateLimited;
use domain::system::TaskError;
use domain::usage::{RejectionReason, RejectionStatus};
use http_server::HeadError;
use serde_json::{Map, Value};
use wires::client::{BodyError, ErrorLocation};
use wires::formats::Shape;

use super::access_log::{AccessFields, ChargeFields};
use crate::detection::Entry;

/// Implements `From` for an error of a use case. Each variant has one line: `pass` hands on the error inside, `kind` has
/// the message of its kind, `said` its own sentence, `at` that sentence with the path of a member, and `with` the rest.
macro_rules! api_error {
    ($error:ident {
        $(pass: $($pass:ident),+;)?
        $(kind: $($kind:ident),+;)?
        $(said: $($said:ident),+;)?
        $(at $member:literal: $($at:ident),+;)*
        $(with |$plain:ident| $($pattern:pat => $value:expr),+;)?
    }) => {
        impl From<$error> for $crate::http::error::ApiError {
            fn from(error: $error) -> Self {
                let plain = Self::from_kind(error.kind());
                match error {
                    $($($error::$pass(inner) => inner.into(),)+)?
                    $($($error::$kind { .. } => plain,)+)?
                    $($($error::$said { .. } => plain.message(error.to_string()),)+)?
                    $($($error::$at { .. } => $crate::http::members::located(plain, $member, &error),)+)*
                    $($($pattern => {
                        #[allow(unused_variables, reason = "not every line needs it")]
                        let $plain = plain;
                        $value
                    })+)?
                }
            }
        }
    };
}
pub(crate) use api_error;

/// Returns the HTTP status of an error kind. This is the only such table.
pub(crate) fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::InvalidRequest => StatusCode::BAD_REQUEST,
        ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorKind::InsufficientCredits => StatusCode::PAYMENT_REQUIRED,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
        ErrorKind::PreconditionRequired => StatusCode::PRECONDITION_REQUIRED,
        ErrorKind::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorKind::ProviderFailure => StatusCode::BAD_GATEWAY,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::TimedOut => custom_status(524),
        ErrorKind::ProviderOverloaded => custom_status(529),
        ErrorKind::ClientDisconnected => custom_status(499),
    }
}

/// Returns a status without a constant; every number from 100 to 999 is valid.
fn custom_status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Returns the default message of an error kind.
pub(crate) fn default_message(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidRequest => "Invalid request parameters",
        ErrorKind::Unauthenticated => "Missing Authentication header",
        ErrorKind::InsufficientCredits => {
            "Insufficient credits. The operator of this gateway can add more with `tollgate workspace credit`"
        }
        ErrorKind::Forbidden => "Only management keys can perform this operation",
        ErrorKind::NotFound => "Resource not found",
        ErrorKind::Conflict => "The resource was changed at the same time. Read it again and repeat the change.",
        ErrorKind::PreconditionFailed => {
            "The resource has another version than If-Match names. Read it again and repeat the change."
        }
        ErrorKind::PreconditionRequired => "The operation needs If-Match",
        ErrorKind::PayloadTooLarge => "Request payload too large",
        ErrorKind::RateLimited => "Rate limit exceeded",
        ErrorKind::Internal => "Internal Server Error",
        ErrorKind::ProviderFailure | ErrorKind::ProviderOverloaded => "Provider returned error",
        ErrorKind::Unavailable => "Service temporarily unavailable",
        ErrorKind::TimedOut => "Request timed out. Please try again later.",
        ErrorKind::ClientDisconnected => "The client disconnected before the response",
    }
}

/// The only header whose value is a member of a Decisions request.
pub(crate) const SESSION_ID: &str = "x-session-id";

/// An error response to the client. Boxed, because it is large and rare.
#[derive(Debug)]
pub(crate) struct ApiError(Box<ErrorParts>);

/// The parts of an error: those that are sent, then those for the log.
#[derive(Debug)]
pub(crate) struct ErrorParts {
    pub(crate) status: StatusCode,
    message: Cow<'static, str>,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) amounts: Vec<(&'static str, Usd)>,
    pub(crate) service_metadata: Map<String, Value>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) user_id: Option<String>,
    pub(crate) location: Option<ErrorLocation>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) format: Option<ErrorFormat>,
    source: Option<Box<dyn Error + Send + Sync>>,
    charge: Option<ChargeFields>,
    reason: Option<RejectionReason>,
}

impl ApiError {
    fn with_status(status: StatusCode, message: Cow<'static, str>) -> Self {
        Self(Box::new(ErrorParts {
            status,
            message,
            metadata: Map::new(),
            amounts: Vec::new(),
            service_metadata: Map::new(),
            headers: Vec::new(),
            user_id: None,
            location: None,
            retry_after: None,
            format: None,
            source: None,
            charge: None,
            reason: None,
        }))
    }

    /// Creates an error with the default message. Unavailability carries `Retry-After: 1`.
    pub(crate) fn from_kind(kind: ErrorKind) -> Self {
        let error = Self::with_status(status_of(kind), Cow::Borrowed(default_message(kind)));
        if kind == ErrorKind::Unavailable { error.retry_after(Duration::from_secs(1)) } else { error }
    }

    /// Creates a 400 with a message that tells the correction. The message must not contain the caller's content.
    pub(crate) fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::with_status(StatusCode::BAD_REQUEST, cut(message.into()))
    }

    /// Creates a 400 for the body as a whole.
    pub(crate) fn invalid_body(message: impl Into<Cow<'static, str>>) -> Self {
        Self::invalid(message).location(ErrorLocation::Body)
    }

    /// Creates a 415 that lists the supported encodings.
    pub(crate) fn unsupported_encoding(accepted: &'static str) -> Self {
        let message =
            Cow::Owned(format!("Content-Encoding is not supported; send the body as it is, or in one of {accepted}"));
        Self::with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
            .header(ACCEPT_ENCODING, HeaderValue::from_static(accepted))
    }

    /// Creates a 416 for a range that begins behind the end of `size` bytes.
    pub(crate) fn range_not_satisfiable(size: u64) -> Self {
        let message = Cow::Owned(format!("Range begins behind the end of the file, which has {size} bytes"));
        Self::with_status(StatusCode::RANGE_NOT_SATISFIABLE, message).header(CONTENT_RANGE, format!("bytes */{size}"))
    }

    /// Creates the error of a request head that cannot be read.
    pub(crate) fn head(fault: HeadError) -> Self {
        Self::with_status(fault.status(), Cow::Owned(fault.to_string()))
    }

    /// Creates a 404 for an unknown path, with an optional hint at the right path.
    pub(crate) fn unknown_path(hint: Option<String>) -> Self {
        let error = Self::from_kind(ErrorKind::NotFound);
        match hint {
            Some(hint) => error.message(format!("Resource not found; {hint}")),
            None => error,
        }
    }

    /// Creates a 404 for a resource that does not exist.
    pub(crate) fn not_found() -> Self {
        Self::from_kind(ErrorKind::NotFound)
    }

    /// Creates a 405 with the `Allow` header.
    pub(crate) fn method_not_allowed(allow: String) -> Self {
        Self::with_status(StatusCode::METHOD_NOT_ALLOWED, Cow::Borrowed("Method not allowed")).header(ALLOW, allow)
    }

    /// Creates the error of work that did not finish on its worker thread.
    pub(crate) fn from_task_error(lost: TaskError) -> Self {
        let error = Self::from_kind(lost.kind()).caused_by(lost);
        if lost != TaskError::QueueFull {
            return error;
        }
        error
            .reason(RejectionReason::ScanQueueFull)
            .message(
                "Rate limit exceeded: too many large requests of this workspace wait to be read and filtered; wait for \
                 one to end",
            )
            .retry_after(Duration::from_secs(1))
            .metadata("scope", "workspace")
            .metadata("unit", "queued_scans")
    }

    /// Replaces the message.
    pub(crate) fn message(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.0.message = cut(message.into());
        self
    }

    /// Adds a member to `error.metadata`.
    pub(crate) fn metadata(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.0.metadata.insert(name.to_owned(), cut_strings(value.into()));
        self
    }

    /// Adds a USD amount to `error.metadata`, as a number with all its digits.
    pub(crate) fn amount(mut self, name: &'static str, amount: Usd) -> Self {
        self.0.amounts.retain(|(other, _)| *other != name);
        self.0.amounts.push((name, amount));
        self
    }

    /// Adds a member to the service metadata, which is sent on request only.
    pub(crate) fn service_metadata(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.0.service_metadata.insert(name.to_owned(), cut_strings(value.into()));
        self
    }

    /// Adds a header; a value that is not a valid header value is left out.
    pub(crate) fn header(mut self, name: HeaderName, value: impl TryInto<HeaderValue>) -> Self {
        if let Ok(value) = value.try_into() {
            self.0.headers.retain(|(other, _)| *other != name);
            self.0.headers.push((name, value));
        }
        self
    }

    /// Sets `Retry-After`, in whole seconds, rounded up, at least one.
    pub(crate) fn retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self.header(RETRY_AFTER, HeaderValue::from(whole_seconds(wait)))
    }

    /// Adds the rate limit headers. `reset_at_ms` is in Unix epoch milliseconds.
    pub(crate) fn rate_limit(self, limit: u32, remaining: u32, retry_after: Duration, reset_at_ms: i64) -> Self {
        self.retry_after(retry_after)
            .header(HeaderName::from_static("x-ratelimit-limit"), HeaderValue::from(limit))
            .header(HeaderName::from_static("x-ratelimit-remaining"), HeaderValue::from(remaining))
            .header(HeaderName::from_static("x-ratelimit-reset"), HeaderValue::from(reset_at_ms))
    }

    /// Sets the location of the error in the request.
    pub(crate) fn location(mut self, location: ErrorLocation) -> Self {
        self.0.location = Some(match location {
            ErrorLocation::Member(path) => ErrorLocation::Member(cut(path.into()).into_owned()),
            location => location,
        });
        self
    }

    /// Overrides the error format of the route.
    pub(crate) fn format(mut self, format: ErrorFormat) -> Self {
        self.0.format = Some(format);
        self
    }

    /// Sets the envelope's `user_id`.
    pub(crate) fn user_id(mut self, user_id: Option<String>) -> Self {
        self.0.user_id = self.0.user_id.or(user_id);
        self
    }

    /// Sets the cause, which is logged and never sent.
    pub(crate) fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Sets the model, the provider and the charge for the access log.
    pub(crate) fn charge(mut self, charge: ChargeFields) -> Self {
        self.0.charge = Some(charge);
        self
    }

    /// Sets the reason of a rejection, for the access log and the counts of rejected requests.
    pub(crate) fn reason(mut self, reason: RejectionReason) -> Self {
        self.0.reason = Some(reason);
        self
    }

    /// Adds its fields to those of the access log.
    pub(crate) fn add_to_access_log(&self, fields: &AccessFields) {
        if let Some(charge) = &self.0.charge {
            // An answer without an error may have set it before.
            drop(fields.charge.set(charge.clone()));
        }
        fields.reason.set(self.rejection_reason());
    }

    /// Returns the status and the reason of a rejection; `None` for any other error.
    pub(crate) fn rejection(&self) -> Option<(RejectionStatus, RejectionReason)> {
        let status = RejectionStatus::from_code(self.0.status.as_u16())?;
        Some((status, self.0.reason.unwrap_or(RejectionReason::Other)))
    }

    /// Returns the reason for the access log. A rejection always has one.
    fn rejection_reason(&self) -> Option<RejectionReason> {
        self.0.reason.or_else(|| self.rejection().map(|(_, reason)| reason))
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> StatusCode {
        self.0.status
    }

    /// Returns true for a 409.
    pub(crate) fn is_conflict(&self) -> bool {
        self.0.status == StatusCode::CONFLICT
    }

    /// Returns the message.
    pub(crate) fn text(&self) -> &str {
        &self.0.message
    }

    pub(crate) fn parts(&self) -> &ErrorParts {
        &self.0
    }

    /// Returns the text of the innermost cause of a 503, such as a full disk, without numbers, which differ each time.
    pub(crate) fn unavailable_cause(&self) -> Option<String> {
        let unavailable = self.0.status == StatusCode::SERVICE_UNAVAILABLE;
        let mut cause: &(dyn Error + 'static) = self.0.source.as_deref().filter(|_| unavailable)?;
        while let Some(source) = cause.source() {
            cause = source;
        }
        Some(cause.to_string().replace(|character: char| character.is_ascii_digit(), ""))
    }

    /// Logs the chain of causes, once. Called while the request's id is set. A repeated error is logged at debug level.
    pub(crate) fn log(&self, is_repeated: bool) {
        let parts = &*self.0;
        let cause = parts.source.as_deref().map(|cause| cause as &(dyn Error + 'static));
        let status = parts.status.as_u16();
        if parts.status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(http.status = status, error = cause, "request failed: internal error");
        } else if parts.status.is_server_error() && is_repeated {
            tracing::debug!(http.status = status, error = cause, "request failed");
        } else if parts.status.is_server_error() {
            tracing::warn!(http.status = status, error = cause, "request failed");
        } else {
            // The message is left out, because it may quote member names of the caller.
            tracing::debug!(http.status = status, error = cause, "request rejected");
        }
    }
}

/// The longest message, path of a member, or string of metadata, in bytes.
const MAX_TEXT_BYTES: usize = 2_048;
/// The bytes that are left of the beginning and of the end of a longer one.
const LEFT_BYTES: (usize, usize) = (1_024, 512);

/// Cuts a long text in the middle: it repeats names of the request, and its end tells the fault.
fn cut(text: Cow<'static, str>) -> Cow<'static, str> {
    if text.len() <= MAX_TEXT_BYTES {
        return text;
    }
    let (head, tail) = LEFT_BYTES;
    let (end, begin) = (text.floor_char_boundary(head), text.ceil_char_boundary(text.len() - tail));
    Cow::Owned(format!("{}…{}", &text[..end], &text[begin..]))
}

/// Cuts the long strings of metadata.
fn cut_strings(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(cut(text.into()).into_owned()),
        Value::Array(elements) => elements.into_iter().map(cut_strings).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, cut_strings(value))).collect(),
        other => other,
    }
}

impl From<BodyError> for ApiError {
    fn from(fault: BodyError) -> Self {
        match fault {
            BodyError::Invalid(invalid) => invalid.into(),
            BodyError::Duplicate(name) => {
                Self::invalid(fault.to_string()).location(ErrorLocation::Member(name.to_owned()))
            }
            other => Self::invalid_body(other.to_string()),
        }
    }
}

impl From<InvalidDecision> for ApiError {
    fn from(fault: InvalidDecision) -> Self {
        let message = fault.to_string();
        let location = if fault.path == SESSION_ID {
            ErrorLocation::Header(SESSION_ID)
        } else {
            ErrorLocation::Member(fault.path)
        };
        Self::invalid(message).location(location)
    }
}

impl From<AuthenticateError> for ApiError {
    fn from(error: AuthenticateError) -> Self {
        match error {
            AuthenticateError::Missing | AuthenticateError::Invalid => Self::from_kind(error.kind())
                .message(error.to_string())
                .header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")),
            AuthenticateError::WorkspaceSuspended { ref owner_id, .. } => {
                let suspended = Self::from_kind(error.kind()).reason(RejectionReason::WorkspaceSuspended);
                suspended.message(error.to_string()).user_id(owner_id.clone())
            }
            AuthenticateError::Store(_) => {
                Self::from_kind(error.kind()).reason(RejectionReason::StoreUnavailable).caused_by(error)
            }
        }
    }
}

impl From<WrongKeyKind> for ApiError {
    fn from(error: WrongKeyKind) -> Self {
        Self::from_kind(error.kind()).reason(RejectionReason::WrongKeyKind).message(error.to_string())
    }
}

impl From<Restricted> for ApiError {
    fn from(error: Restricted) -> Self {
        Self::from_kind(error.kind())
            .reason(RejectionReason::ManagementKeyRestricted)
            .message(error.to_string())
            .metadata("reason", RejectionReason::ManagementKeyRestricted.as_str())
            .metadata("needs", error.needs.as_str())
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let unavailable = error.kind() == ErrorKind::Unavailable;
        let created = Self::from_kind(error.kind()).caused_by(error);
        if unavailable { created.reason(RejectionReason::StoreUnavailable) } else { created }
    }
}

impl From<PreconditionFailed> for ApiError {
    fn from(error: PreconditionFailed) -> Self {
        Self::from_kind(error.kind())
    }
}

impl ApiError {
    /// Creates a 429 with the exceeded limit and the retry delay. `now_ms` is in Unix epoch milliseconds.
    pub(crate) fn rate_limited(limited: RateLimited, now_ms: i64) -> Self {
        let wait_ms = i64::try_from(limited.retry_after.as_millis()).unwrap_or(i64::MAX);
        let RateLimited { scope, unit, limit, remaining, retry_after } = limited;
        Self::from_kind(ErrorKind::RateLimited)
            .reason(RejectionReason::RateLimited)
            .rate_limit(limit, remaining, retry_after, now_ms.saturating_add(wait_ms))
            .metadata("scope", scope.as_str())
            .metadata("unit", unit.as_str())
            .metadata("limit", limit)
    }
}

/// Rounds up to whole seconds, at least one.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1)
}

/// The format of an error response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    /// The service's own envelope.
    Contract,
    /// System One's format, in which an invalid request is 422.
    SystemOne,
    /// System One's format on the service's own paths, where an invalid request is 400.
    SystemOneUnderBase,
    /// OpenAI's.
    OpenAi,
    /// Gemini's.
    Gemini,
    /// SGLang's.
    Sglang,
}

impl ErrorFormat {
    /// Returns the error format of a Decisions request. If the path serves several wires and the body is unknown, the
    /// most common wire decides.
    pub(crate) const fn for_entry(entry: Entry, shape: Option<Shape>, under_base: bool) -> Self {
        match (entry, shape) {
            (Entry::Contract, _) => Self::Contract,
            (_, Some(Shape::SystemOne)) if under_base => Self::SystemOneUnderBase,
            (_, Some(Shape::SystemOne)) => Self::SystemOne,
            (_, Some(Shape::OpenAi) | None) => Self::OpenAi,
            (_, Some(Shape::Gemini)) => Self::Gemini,
            (_, Some(Shape::Sglang)) => Self::Sglang,
        }
    }

    /// Maps the status to this format. `lies_in_request` is true for an error with a location in the request.
    pub(crate) fn status(self, status: StatusCode, lies_in_request: bool) -> StatusCode {
        match self {
            Self::SystemOne if status == StatusCode::BAD_REQUEST && lies_in_request => StatusCode::UNPROCESSABLE_ENTITY,
            _ => status,
        }
    }

    /// Returns the retry delay to send with temporary failures; vendor clients read it from the body.
    pub(crate) fn retry_after(self, status: StatusCode, known: Option<Duration>) -> Option<Duration> {
        if self == Self::Contract {
            return None;
        }
        let passes = matches!(status.as_u16(), 429 | 503 | 529);
        known.or(passes.then_some(Duration::from_secs(1)))
    }
}

#[cfg(test)]
mod tests;
