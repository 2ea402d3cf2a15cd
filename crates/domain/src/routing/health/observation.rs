//! Reports of attempts to the health of their endpoints.

use std::fmt;
use std::time::Duration;

use crate::ids::WorkspaceId;
use crate::routing::{AttemptFailure, AttemptFailureKind, FailureCause};

/// The result of an attempt, as it counts for its endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observation {
    /// A successful answer.
    Succeeded {
        /// The time from the call to the complete answer.
        latency: Duration,
        /// Input and output tokens together; 0 if the provider reported none.
        tokens: u64,
    },
    /// A failure.
    Failed {
        /// The class, which decides the workspaces that it counts for.
        class: FailureClass,
        /// The error for messages and logs.
        error: AttemptError,
    },
    /// No result for the endpoint: the client disconnected, or another attempt answered first.
    Neutral,
}

/// The class of a failure: its scope and weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// No connection: DNS, TCP or TLS failed. Counts for all workspaces at once.
    Connection,
    /// The provider rejected our credentials (401), or our account has no credit left. Leads to a back-off for all workspaces at once.
    Credentials,
    /// A failure that the content of the request can provoke: 4xx, 5xx, a malformed answer, a broken connection.
    Content,
    /// The deadline passed. As [`Self::Content`], with a weight.
    Timeout,
    /// 429, 503 or 529. As [`Self::Content`], with a back-off.
    Overloaded {
        /// The `Retry-After` of the provider.
        retry_after: Option<Duration>,
    },
}

/// The kind of a failure and its status, for messages and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptError {
    /// The kind.
    pub kind: AttemptFailureKind,
    /// The HTTP status of the provider, if it sent one.
    pub upstream_status: Option<u16>,
    /// The cause, if it is one that an operator can mend.
    pub cause: Option<FailureCause>,
}

impl AttemptError {
    /// Returns true if the provider rejected our credential or our account. A 403 without such a cause is not counted,
    /// because moderation answers it, so that content can provoke it.
    pub fn is_rejected_credential(&self) -> bool {
        self.kind == AttemptFailureKind::ProviderAuthFailed
            && (self.upstream_status != Some(403) || self.cause.is_some_and(FailureCause::is_of_account))
    }
}

impl From<&AttemptFailure> for AttemptError {
    fn from(failure: &AttemptFailure) -> Self {
        Self { kind: failure.kind, upstream_status: failure.upstream_status, cause: failure.cause }
    }
}

impl fmt::Display for AttemptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, self.upstream_status) {
            (_, Some(status)) if !(200..300).contains(&status) => write!(f, "{status}"),
            (AttemptFailureKind::TimedOut, _) => f.write_str("a timeout"),
            (AttemptFailureKind::ConnectFailed, _) => f.write_str("a connection error"),
            (AttemptFailureKind::ConnectionLost, _) => f.write_str("a lost connection"),
            (AttemptFailureKind::HttpError, _) => f.write_str("an HTTP error"),
            (_, Some(_)) | (AttemptFailureKind::InvalidResponse, _) => f.write_str("an invalid response"),
            (_, None) => f.write_str(self.kind.as_str()),
        }?;
        self.cause.map_or(Ok(()), |cause| write!(f, " ({})", cause.sentence()))
    }
}

/// The end of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptReport {
    /// The endpoint's index in the configuration.
    pub endpoint: usize,
    /// The workspace of the request.
    pub workspace: WorkspaceId,
    /// When the attempt began.
    pub began: Duration,
    /// The result.
    pub observation: Observation,
}

impl Observation {
    /// Returns true for a failure.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }
}

impl From<&AttemptFailure> for Observation {
    fn from(failure: &AttemptFailure) -> Self {
        let error = AttemptError::from(failure);
        let class = match failure.kind {
            AttemptFailureKind::ConnectFailed => FailureClass::Connection,
            AttemptFailureKind::ProviderAuthFailed if error.is_rejected_credential() => FailureClass::Credentials,
            AttemptFailureKind::ProviderAuthFailed
            | AttemptFailureKind::ConnectionLost
            | AttemptFailureKind::HttpError
            | AttemptFailureKind::InvalidResponse => FailureClass::Content,
            // A request that was not sent is no evidence about the endpoint.
            AttemptFailureKind::RejectedByProvider if failure.upstream_status.is_some() => FailureClass::Content,
            AttemptFailureKind::TimedOut => FailureClass::Timeout,
            AttemptFailureKind::Overloaded => FailureClass::Overloaded { retry_after: failure.retry_after },
            AttemptFailureKind::RejectedByProvider
            | AttemptFailureKind::NoUsableAnswer
            | AttemptFailureKind::MemoryExhausted
            | AttemptFailureKind::ClientDisconnected
            | AttemptFailureKind::Simulated(_) => return Self::Neutral,
        };
        Self::Failed { class, error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(401, None, true)]
    #[case(402, None, true)]
    #[case::moderation(403, None, false)]
    #[case(403, Some(FailureCause::KeyRejected), true)]
    #[case(400, Some(FailureCause::AccountExhausted), true)]
    #[case(429, Some(FailureCause::AccountExhausted), true)]
    #[case(400, None, false)]
    #[case(429, None, false)]
    fn account_trouble_counts_as_rejected_credential(
        #[case] status: u16,
        #[case] cause: Option<FailureCause>,
        #[case] expected: bool,
    ) {
        let by_status = AttemptFailure::from_status(status, None);
        let failure = match cause {
            None => by_status,
            Some(cause) => AttemptFailure { upstream_status: Some(status), ..AttemptFailure::of_cause(cause) },
        };
        let observation = Observation::from(&failure);
        let is_credentials = matches!(observation, Observation::Failed { class: FailureClass::Credentials, .. });
        assert_eq!((is_credentials, AttemptError::from(&failure).is_rejected_credential()), (expected, expected));
    }

    #[test]
    fn attempt_error_shows_status_and_cause() {
        let shown = |failure: &AttemptFailure| AttemptError::from(failure).to_string();
        assert_eq!(shown(&AttemptFailure::from_status(401, None)), "401");
        assert_eq!(
            shown(&AttemptFailure::from_status(402, None)),
            "402 (the account at the provider has no balance, credit or quota left)"
        );
        let unresolved = AttemptFailure::of_cause(FailureCause::NameNotFound);
        assert_eq!(shown(&unresolved), "a connection error (the host name was not found)");
    }
}
