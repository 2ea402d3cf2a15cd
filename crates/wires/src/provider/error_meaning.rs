//! The meaning of an error body.

use std::time::Duration;

use domain::routing::{AttemptFailure, AttemptFailureKind, FailureCause};

/// The meaning of a provider's error that says more than its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorMeaning {
    /// The kind of failure.
    pub kind: AttemptFailureKind,
    /// The cause, if an operator can mend it.
    pub cause: Option<FailureCause>,
    /// The time to wait before the next call.
    pub retry_after: Option<Duration>,
    /// The description, without text of the provider.
    pub detail: &'static str,
}

/// Reads the body of a response with this status. `None` if only the status counts.
pub type ReadError = fn(status: u16, body: &[u8]) -> Option<ErrorMeaning>;

impl ErrorMeaning {
    /// Returns the meaning of a cause.
    pub fn of_cause(cause: FailureCause) -> Self {
        let AttemptFailure { kind, .. } = AttemptFailure::of_cause(cause);
        Self { kind, cause: Some(cause), retry_after: None, detail: cause.sentence() }
    }

    /// Returns the failure with this meaning and the longer of the two waits.
    #[must_use]
    pub fn of(self, by_status: &AttemptFailure) -> AttemptFailure {
        AttemptFailure {
            kind: self.kind,
            cause: self.cause,
            retry_after: self.retry_after.max(by_status.retry_after),
            detail: self.detail.to_owned(),
            ..by_status.clone()
        }
    }
}
