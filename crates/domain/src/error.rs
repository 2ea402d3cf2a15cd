//! What can go wrong, by meaning.

/// The meaning of a failure, the same for every use case. Exactly one table, in the HTTP layer, turns it into a
/// status; nothing in this crate knows statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request is malformed or breaks a documented rule.
    InvalidRequest,
    /// No credentials, or credentials that do not stand.
    Unauthenticated,
    /// Credit, a key's limit or a guardrail's budget is used up.
    InsufficientCredits,
    /// The caller is known and may not do this.
    Forbidden,
    /// The thing named does not exist for this caller.
    NotFound,
    /// What is there is not what the caller thinks it is: it was changed at the same time, or stands in the way.
    Conflict,
    /// The payload, or a file, is larger than allowed.
    PayloadTooLarge,
    /// Too many requests in the caller's window.
    RateLimited,
    /// A defect of this service.
    Internal,
    /// Every provider that was tried failed.
    ProviderFailure,
    /// Something this service needs is away for the moment; asking again later is right.
    Unavailable,
    /// The whole deadline passed.
    TimedOut,
    /// Every provider that was tried is overloaded.
    ProviderOverloaded,
    /// The client disconnected before the response; nobody reads this one.
    ClientDisconnected,
}

impl ErrorKind {
    /// Its name in records and in answers that hold the failure of a part.
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

/// How a store (database, blob store, shared counter) failed. "Not found" is not among these: ports say it with
/// `Ok(None)`.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store did not do it and said so, or could not be asked: away, locked, read-only, full. Nothing was
    /// changed, or what was changed has been undone.
    #[error("the store is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The store holds something that this version cannot read.
    #[error("stored data cannot be read: {0}")]
    Corrupt(String),
}

impl StoreError {
    /// Wraps the technology's own error.
    pub fn unavailable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unavailable(source.into())
    }

    /// Its meaning: a store that is away is [`ErrorKind::Unavailable`]; unreadable data is a defect.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unavailable(_) => ErrorKind::Unavailable,
            Self::Corrupt(_) => ErrorKind::Internal,
        }
    }
}
