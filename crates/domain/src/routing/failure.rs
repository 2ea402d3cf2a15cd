//! What a failed attempt means for the next one, and what all of them together mean for the caller.

use std::time::Duration;

use crate::error::ErrorKind;
use crate::pricing::ReportedUsage;

/// How one attempt at one endpoint failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptFailureKind {
    /// No connection: DNS, TCP, TLS or a proxy on the way failed, or it took too long. Nothing was sent.
    ConnectFailed,
    /// A reset, 3xx (never followed), 402, 404, 408, 5xx, or an answer that is malformed, too large,
    /// not JSON or not to what was asked.
    Broken,
    /// 401 or 403: our credentials do not stand there.
    Unauthorised,
    /// 429, 503 or 529.
    Overloaded,
    /// The attempt's deadline passed.
    TimedOut,
    /// 400, 413 or 422: this provider will not take the request; another one may.
    Refused,
    /// The provider did its part, but the model was not answering the question; that lies in what it was asked about,
    /// and says nothing of the endpoint.
    NotAnswered,
    /// The caller left, so the attempt was given up.
    CallerGone,
    /// A sandbox model that exists to fail in this way; told to the caller as it is and never followed by another.
    Simulated(SimulatedFailure),
}

impl AttemptFailureKind {
    /// Its name in records and metadata.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConnectFailed => "connect_error",
            Self::Broken => "broken",
            Self::Unauthorised => "unauthorised",
            Self::Overloaded => "overloaded",
            Self::TimedOut => "timed_out",
            Self::Refused => "refused",
            Self::NotAnswered => "not_answered",
            Self::CallerGone => "caller_gone",
            Self::Simulated(_) => "simulated",
        }
    }
}

/// What a sandbox model can pretend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimulatedFailure {
    /// 402
    InsufficientCredits,
    /// 403
    Forbidden,
    /// 429
    RateLimited,
    /// 502
    ProviderFailure,
    /// 503
    Unavailable,
    /// 524
    TimedOut,
    /// 529
    ProviderOverloaded,
}

impl SimulatedFailure {
    /// Its meaning.
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::InsufficientCredits => ErrorKind::InsufficientCredits,
            Self::Forbidden => ErrorKind::Forbidden,
            Self::RateLimited => ErrorKind::RateLimited,
            Self::ProviderFailure => ErrorKind::ProviderFailure,
            Self::Unavailable => ErrorKind::Unavailable,
            Self::TimedOut => ErrorKind::TimedOut,
            Self::ProviderOverloaded => ErrorKind::ProviderOverloaded,
        }
    }
}

/// A failed attempt, as the provider adapter reports it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the attempt failed: {detail}")]
pub struct AttemptFailure {
    /// What it means.
    pub kind: AttemptFailureKind,
    /// The provider's HTTP status, where there was one.
    pub upstream_status: Option<u16>,
    /// How long the provider asked to wait.
    pub retry_after: Option<Duration>,
    /// Bytes of the request that may have reached the provider: 0 where it was never sent.
    pub sent_bytes: u64,
    /// What the provider says it used, where it said so in an answer that is no good.
    pub usage: Option<ReportedUsage>,
    /// A sentence of our own for logs and records. MUST NOT hold text of the provider's, which may repeat the
    /// caller's input or a secret.
    pub detail: String,
}

impl AttemptFailure {
    /// A failure without a status.
    pub fn new(kind: AttemptFailureKind, detail: impl Into<String>) -> Self {
        Self { kind, upstream_status: None, retry_after: None, sent_bytes: 0, usage: None, detail: detail.into() }
    }

    /// What an HTTP status of a provider means. `retry_after` is what its `Retry-After` said.
    pub fn from_status(status: u16, retry_after: Option<Duration>) -> Self {
        let kind = match status {
            400 | 413 | 422 => AttemptFailureKind::Refused,
            401 | 403 => AttemptFailureKind::Unauthorised,
            429 | 503 | 529 => AttemptFailureKind::Overloaded,
            _ => AttemptFailureKind::Broken,
        };
        Self {
            upstream_status: Some(status),
            retry_after,
            ..Self::new(kind, format!("the provider answered {status}"))
        }
    }
}

/// What failed attempts together mean for the caller, in their order:
///
/// - overloaded only where every attempt ended so, else the last other failure counts;
/// - refused only where all the others were refused too, else the last that was not;
/// - a deadline is a time-out, anything else a provider failure.
pub fn verdict(failures: &[AttemptFailureKind]) -> ErrorKind {
    use AttemptFailureKind as Kind;
    let last_other = |not: &[Kind]| failures.iter().rev().find(|kind| !not.contains(kind)).copied();
    match last_other(&[Kind::Overloaded, Kind::Refused]) {
        Some(Kind::TimedOut) => ErrorKind::TimedOut,
        Some(Kind::CallerGone) => ErrorKind::CallerGone,
        Some(Kind::Simulated(simulated)) => simulated.kind(),
        Some(_) => ErrorKind::ProviderFailure,
        None if last_other(&[Kind::Overloaded]).is_some() => ErrorKind::InvalidRequest,
        None if failures.is_empty() => ErrorKind::ProviderFailure,
        None => ErrorKind::ProviderOverloaded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AttemptFailureKind::{Broken, Overloaded, Refused, TimedOut, Unauthorised};
    use rstest::rstest;

    #[rstest]
    #[case(&[Broken], ErrorKind::ProviderFailure)]
    #[case(&[Unauthorised], ErrorKind::ProviderFailure)]
    #[case(&[Overloaded], ErrorKind::ProviderOverloaded)]
    #[case(&[Overloaded, Overloaded], ErrorKind::ProviderOverloaded)]
    #[case(&[TimedOut, Overloaded], ErrorKind::TimedOut)]
    #[case(&[Overloaded, Broken], ErrorKind::ProviderFailure)]
    #[case(&[TimedOut], ErrorKind::TimedOut)]
    #[case(&[Broken, TimedOut], ErrorKind::TimedOut)]
    #[case(&[TimedOut, Broken], ErrorKind::ProviderFailure)]
    #[case(&[AttemptFailureKind::NotAnswered], ErrorKind::ProviderFailure)]
    #[case(&[Refused], ErrorKind::InvalidRequest)]
    #[case(&[Refused, Refused], ErrorKind::InvalidRequest)]
    #[case(&[Refused, Overloaded], ErrorKind::InvalidRequest)]
    #[case(&[Refused, Broken], ErrorKind::ProviderFailure)]
    #[case(&[Broken, Refused], ErrorKind::ProviderFailure)]
    fn attempts_together(#[case] failures: &[AttemptFailureKind], #[case] expected: ErrorKind) {
        assert_eq!(verdict(failures), expected);
    }

    #[rstest]
    #[case(&[301, 302, 307, 402, 404, 405, 408, 418, 500, 501, 502, 504, 520], Broken)]
    #[case(&[401, 403], Unauthorised)]
    #[case(&[429, 503, 529], Overloaded)]
    #[case(&[400, 413, 422], Refused)]
    fn each_status_has_a_meaning(#[case] statuses: &[u16], #[case] expected: AttemptFailureKind) {
        for &status in statuses {
            assert_eq!(AttemptFailure::from_status(status, None).kind, expected, "{status}");
        }
    }
}
