//! Error kinds, by meaning.

/// The meaning of a failure, identical for every use case. A single table in the HTTP layer maps it to a status; this
/// crate has no statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request is malformed or breaks a documented rule.
    InvalidRequest,
    /// Missing or invalid credentials.
    Unauthenticated,
    /// Credit, a key's limit or a guardrail's budget is exhausted.
    InsufficientCredits,
    /// The caller is authenticated and lacks permission.
    Forbidden,
    /// The named record does not exist for this caller.
    NotFound,
    /// The state conflicts with the request: it was changed concurrently, or a conflicting record exists.
    Conflict,
    /// The payload, or a file, is larger than allowed.
    PayloadTooLarge,
    /// Too many requests of the caller.
    RateLimited,
    /// A defect of this service.
    Internal,
    /// Every attempted provider failed.
    ProviderFailure,
    /// A required dependency is temporarily unavailable; retrying later is useful.
    Unavailable,
    /// The deadline of the request passed.
    TimedOut,
    /// Every attempted provider is overloaded.
    ProviderOverloaded,
    /// The client disconnected before the response.
    ClientDisconnected,
}

impl ErrorKind {
    /// Returns the name in records and in answers with a failed sub-request.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::Unauthenticated => "unauthenticated",
            Self::InsufficientCredits => "insufficient_credits",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::PayloadTooLarge => "payload_too_large",
            Self::RateLimited => "rate_limited",
            Self::Internal => "internal",
            Self::ProviderFailure => "provider_failure",
            Self::Unavailable => "unavailable",
            Self::TimedOut => "timed_out",
            Self::ProviderOverloaded => "provider_overloaded",
            Self::ClientDisconnected => "client_disconnected",
        }
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
        }
    }
}
