//! Error kinds, by meaning.

named_enum! {
    /// The meaning of a failure, identical for every use case. A single table in the HTTP layer maps it to a status; this
    /// crate has no statuses.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ErrorKind {
        /// The request is malformed or breaks a documented rule.
        InvalidRequest = "invalid_request",
        /// Missing or invalid credentials.
        Unauthenticated = "unauthenticated",
        /// Credit, a key's limit or a guardrail's budget is exhausted.
        InsufficientCredits = "insufficient_credits",
        /// The caller is authenticated and lacks permission.
        Forbidden = "forbidden",
        /// The named record does not exist for this caller.
        NotFound = "not_found",
        /// The state conflicts with the request: it was changed concurrently, or a conflicting record exists.
        Conflict = "conflict",
        /// The record has another version than the caller accepts.
        PreconditionFailed = "precondition_failed",
        /// The operation needs the version that it changes.
        PreconditionRequired = "precondition_required",
        /// The payload, or a file, is larger than allowed.
        PayloadTooLarge = "payload_too_large",
        /// Too many requests of the caller.
        RateLimited = "rate_limited",
        /// A defect of this service.
        Internal = "internal",
        /// Every attempted provider failed.
        ProviderFailure = "provider_failure",
        /// A required dependency is temporarily unavailable; retrying later is useful.
        Unavailable = "unavailable",
        /// The deadline of the request passed.
        TimedOut = "timed_out",
        /// Every attempted provider is overloaded.
        ProviderOverloaded = "provider_overloaded",
        /// The client disconnected before the response.
        ClientDisconnected = "client_disconnected",
    }
}

/// A failure of a store (database, blob store, shared counter). "Not found" is no failure: ports return `Ok(None)`.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store rejected the operation or was unreachable, locked, read-only or full. Nothing was changed, or the
    /// change was rolled back.
    #[error("the store is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The store contains data that this version cannot read.
    #[error("stored data cannot be read: {0}")]
    Corrupt(String),
    /// A request of the same scope is stored already ([`crate::repetition`]). Nothing was changed.
    #[error("the request has taken effect before")]
    Repeated,
}

impl StoreError {
    /// Wraps an error of the store's technology.
    pub fn unavailable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unavailable(source.into())
    }

    /// Returns the meaning: a failed store is [`ErrorKind::Unavailable`]; unreadable data is a defect.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unavailable(_) => ErrorKind::Unavailable,
            Self::Corrupt(_) => ErrorKind::Internal,
            Self::Repeated => ErrorKind::Conflict,
        }
    }
}
